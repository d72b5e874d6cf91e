import { typeByte, typeByteOf } from "../bson/bson-types.ts";
import { encodeValue, invert } from "../bson/index-keys.ts";
import type { Bound, Predicates } from "./predicates.ts";

/** Keys from `low` (inclusive) to `high` (exclusive). */
export type KeyRange = { low: Uint8Array; high: Uint8Array };

/** More ranges than this (long `$in` lists multiplied) are not worth it: the last list is then tested per document. */
export const maxRanges = 2_000;

const everything: KeyRange = { low: new Uint8Array(0), high: new Uint8Array([0xff]) };

/** The first key after all keys that begin with `prefix`. */
export function successor(prefix: Uint8Array): Uint8Array {
  let end = prefix.length;
  while (end > 0 && prefix[end - 1] === 0xff) end--;
  if (end === 0) return everything.high;
  const next = Buffer.from(prefix.subarray(0, end));
  next[end - 1] = (next[end - 1] ?? 0) + 1;
  return next;
}

/** All keys that begin with `prefix`. */
export function prefixRange(prefix: Uint8Array): KeyRange {
  return prefix.length === 0 ? everything : { low: prefix, high: successor(prefix) };
}

/** `prefixes`, each continued by each of the values, in the order of the keys and without repeats. */
export function extendPrefixes(
  prefixes: readonly Uint8Array[],
  values: readonly unknown[],
  isDescending: boolean,
): Uint8Array[] {
  const parts = new Map<string, Buffer>();
  for (const value of values) {
    const part = encodeValue(value, isDescending);
    parts.set(part.toString("latin1"), part);
  }
  const sorted = [...parts.values()].sort(Buffer.compare);
  return prefixes.flatMap((prefix) =>
    sorted.map((part) => (prefix.length === 0 ? part : Buffer.concat([prefix, part]))),
  );
}

/** The keys that begin with `prefix` and whose next part lies between the two ends; undefined when no value does. */
export function boundedRange(
  prefix: Uint8Array,
  { from, to }: Pick<Predicates, "from" | "to">,
  isDescending: boolean,
): KeyRange | undefined {
  const type = typeByteOf((from ?? to)?.value);
  if (from && to && typeByteOf(to.value) !== type) return undefined;
  // NaN is filed before all other numbers, and is in no range of them.
  const lowest = type === typeByte.number ? { value: Number.NEGATIVE_INFINITY, isInclusive: true } : undefined;
  const ends = { first: from ?? lowest, last: to };
  const [first, last] = isDescending ? [ends.last, ends.first] : [ends.first, ends.last];
  const bracket = new Uint8Array([type]);
  if (isDescending) invert(bracket, 0, 1);
  const keyOf = (bound: Bound) => encodeValue(bound.value, isDescending);
  const low = first === undefined ? bracket : first.isInclusive ? keyOf(first) : successor(keyOf(first));
  const high = last === undefined ? successor(bracket) : last.isInclusive ? successor(keyOf(last)) : keyOf(last);
  return { low: Buffer.concat([prefix, low]), high: Buffer.concat([prefix, high]) };
}
