import { createHash } from "node:crypto";
import canonicalize from "canonicalize";

/** Fields of an event's data that waits are found by; data with more is compared with each wait of its name. */
const MAX_KEYS = 1_000;

/** The key of waits that name no single field. */
const ANY = "";

/** Whether data has the fields that `match` names: objects field by field, all else (lists too) as a whole. */
export function fits(match: unknown, data: unknown): boolean {
  if (!isObject(match)) return canonicalize(match) === canonicalize(data);
  if (!isObject(data)) return false;
  return Object.entries(match).every(([name, value]) => Object.hasOwn(data, name) && fits(value, data[name]));
}

/** The key that a wait is found by: its first field whose value is no object, as a short text. */
export const matchKeyOf = (match: unknown): string => keysIn(match, "").next().value ?? ANY;

/** The keys of waits that an event may end; undefined: it has more fields than a query may name. */
export function keysOf(data: unknown): string[] | undefined {
  const keys = new Set([ANY]);
  for (const key of keysIn(data, "")) {
    keys.add(key);
    if (keys.size > MAX_KEYS) return undefined;
  }
  return [...keys];
}

/** A key for each field whose value is no object. */
function* keysIn(value: unknown, path: string): Generator<string> {
  if (isObject(value)) {
    for (const [name, field] of Object.entries(value)) yield* keysIn(field, `${path}/${JSON.stringify(name)}`);
  } else if (path !== "") {
    yield createHash("sha256")
      .update(`${path}=${canonicalize(value)}`)
      .digest("base64url")
      .slice(0, 16);
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
