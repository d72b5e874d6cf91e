/**
 * A JSON value as CEL has it: whole numbers are ints, so that `input.count + 1` adds; objects are maps, since the
 * language finds a value's type by its constructor, and an object may have a key of that name.
 */
export function toCel(value: unknown): unknown {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(toCel);
  if (typeof value === "object" && value !== null) {
    return new Map(Object.entries(value).map(([key, one]) => [key, toCel(one)]));
  }
  return value ?? null;
}

/** Characters of JSON, about, that values may still take. */
export type Room = { left: number };

/** A value passes the room that is left for it. */
export class NoRoom extends Error {
  override name = "NoRoom";
}

/**
 * The value of an expression as JSON has it. Times are ISO 8601, bytes base64, other things of CEL's own their text. What it
 * takes is counted while it is built, since it may hold the same part many times. Whole numbers beyond 2^53 are texts with all
 * their digits. @throws NoRoom; Error for a number that JSON does not have.
 */
export function fromCel(value: unknown, room: Room): unknown {
  take(room, typeof value === "string" ? value.length + 2 : 4);
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value === "number" && !Number.isFinite(value)) throw new Error("The value is no number that JSON has.");
  if (typeof value !== "object" || value === null) return value ?? null;
  if (Array.isArray(value)) return value.map((one) => fromCel(one, room));
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) {
    take(room, value.length * 2);
    return Buffer.from(value).toString("base64");
  }
  const entries = value instanceof Map ? [...value] : isPlain(value) ? Object.entries(value) : undefined;
  if (!entries) return String(value);
  return Object.fromEntries(
    entries.map(([key, one]) => {
      const name = String(key);
      take(room, name.length + 4);
      return [name, fromCel(one, room)];
    }),
  );
}

function take(room: Room, length: number): void {
  room.left -= length;
  if (room.left < 0) throw new NoRoom();
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
