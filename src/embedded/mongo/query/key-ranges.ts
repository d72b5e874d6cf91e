import { encodeValue, turn, typeByteOf } from "../storage/index-keys.ts";
import type { Predicates } from "./predicates.ts";

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

/** The keys that begin with `prefix` and whose next part lies between the two ends. */
export function boundedRange(
  prefix: Uint8Array,
  bounds: Pick<Predicates, "from" | "to">,
  isDescending: boolean,
): KeyRange | undefined {
  const sample = (bounds.from ?? bounds.to)?.value;
  const type = typeByteOf(sample);
  if (bounds.from && bounds.to && typeByteOf(bounds.to.value) !== type) return undefined; // nothing is of two types
  const low = edge(bounds.from, isDescending) ?? bracket(type, isDescending, "start");
  const high = edge(bounds.to, isDescending) ?? bracket(type, isDescending, "end");
  const range = isDescending
    ? {
        low: bounds.to?.isInclusive === false ? successor(high) : high,
        high: bounds.from ? (bounds.from.isInclusive ? successor(low) : low) : low,
      }
    : {
        low: bounds.from?.isInclusive === false ? successor(low) : low,
        high: bounds.to?.isInclusive === true ? successor(high) : high,
      };
  return { low: Buffer.concat([prefix, range.low]), high: Buffer.concat([prefix, range.high]) };
}

function edge(bound: Predicates["from"], isDescending: boolean): Uint8Array | undefined {
  return bound && encodeValue(bound.value, isDescending);
}

/** Where the keys of a type begin or end, in the order of the values. */
function bracket(type: number, isDescending: boolean, side: "start" | "end"): Uint8Array {
  if (side === "start" && type === numberType) return lowestNumber(isDescending);
  const bytes = new Uint8Array([type]);
  if (isDescending) turn(bytes, 0, 1);
  // Descending keys of a type begin with the turned byte: its highest values come first.
  const isAtByte = isDescending ? side === "end" : side === "start";
  return isAtByte ? bytes : successor(bytes);
}

const numberType = typeByteOf(0);

/** A range of numbers begins at minus infinity: NaN is filed before it, and no comparison is true of NaN. */
function lowestNumber(isDescending: boolean): Uint8Array {
  const key = encodeValue(Number.NEGATIVE_INFINITY, isDescending);
  return isDescending ? successor(key) : key;
}
