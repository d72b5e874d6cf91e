/**
 * A JSON value as CEL has it: whole numbers are ints, so that `input.count + 1` adds; objects are maps, since the language tells
 * what a value is by its constructor, and a key of an object may be called that.
 */
export function toCel(value: unknown): unknown {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(toCel);
  if (typeof value === "object" && value !== null) {
    return new Map(Object.entries(value).map(([key, one]) => [key, toCel(one)]));
  }
  return value ?? null;
}

/** What an expression gives, as JSON has it. Times are ISO 8601, bytes base64, other things of CEL's own their text. */
export function fromCel(value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value !== "object" || value === null) return value ?? null;
  if (Array.isArray(value)) return value.map(fromCel);
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  const entries = value instanceof Map ? [...value] : isPlain(value) ? Object.entries(value) : undefined;
  return entries ? Object.fromEntries(entries.map(([key, one]) => [String(key), fromCel(one)])) : String(value);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
