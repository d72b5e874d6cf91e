import { Binary, Long, ObjectId } from "bson";
import { canonicalType, canonicalTypeOf } from "../bson/bson-types.ts";
import { toDouble } from "../bson/numbers.ts";

/**
 * Index keys: a binary form of BSON values whose byte order is MongoDB's order of the values, so that SQLite's b-trees
 * (which compare blobs byte by byte) serve equality, ranges and sorts. A value is a byte for its type and then:
 *
 * - number: its double with the sign folded in (8 bytes), then how far an int64 lies from that double (2 bytes);
 * - string: UTF-8, 00 written as 00 FF, ended by 00 01, so that no key begins with another;
 * - document and array: their elements, ended by 00;
 * - binary: length, subtype, bytes; date: 8 bytes; ObjectId: 12 bytes.
 *
 * A descending part of a compound key is the same with every bit turned. `undefined` is filed as null, and an empty
 * array, which has no elements to file, just before null.
 */
type Buffers = { bytes: Buffer; length: number };

const typeByte = {
  emptyArray: 0x03,
  null: 0x05,
  number: 0x0a,
  string: 0x0f,
  object: 0x14,
  array: 0x19,
  binary: 0x1e,
  objectId: 0x28,
  boolean: 0x2d,
  date: 0x32,
} as const;

const typeByteOfCanonical: Record<number, number> = {
  [canonicalType.missing]: typeByte.null,
  [canonicalType.null]: typeByte.null,
  [canonicalType.number]: typeByte.number,
  [canonicalType.string]: typeByte.string,
  [canonicalType.object]: typeByte.object,
  [canonicalType.array]: typeByte.array,
  [canonicalType.binary]: typeByte.binary,
  [canonicalType.objectId]: typeByte.objectId,
  [canonicalType.boolean]: typeByte.boolean,
  [canonicalType.date]: typeByte.date,
};

/** The byte that begins the keys of all values of `value`'s type: a range never leaves its type. */
export function typeByteOf(value: unknown): number {
  return typeByteOfCanonical[canonicalTypeOf(value)] ?? typeByte.null;
}

/** One value's key, turned for a descending part. */
export function encodeValue(value: unknown, isDescending = false): Buffer {
  return encodeKey([value], [isDescending]);
}

/** The key of a compound index for one value of each of its fields. */
export function encodeKey(values: readonly unknown[], isDescending: readonly boolean[]): Buffer {
  const out: Buffers = { bytes: Buffer.allocUnsafe(128), length: 0 };
  for (let part = 0; part < values.length; part++) {
    const start = out.length;
    writeValue(out, values[part], true);
    if (isDescending[part] === true) turn(out.bytes, start, out.length);
  }
  return out.bytes.subarray(0, out.length);
}

/** Turns every bit between two places, so that the order is reversed. */
export function turn(bytes: Uint8Array, start: number, end: number): void {
  for (let at = start; at < end; at++) bytes[at] = ~(bytes[at] ?? 0);
}

function reserve(out: Buffers, more: number): void {
  if (out.length + more <= out.bytes.length) return;
  const grown = Buffer.allocUnsafe(Math.max(out.bytes.length * 2, out.length + more));
  out.bytes.copy(grown, 0, 0, out.length);
  out.bytes = grown;
}

function writeByte(out: Buffers, byte: number): void {
  reserve(out, 1);
  out.bytes[out.length++] = byte;
}

function writeValue(out: Buffers, value: unknown, isTop: boolean): void {
  if (typeof value === "string") {
    writeString(out, typeByte.string, value);
    return;
  }
  if (typeof value === "number") {
    writeNumber(out, value, 0);
    return;
  }
  if (isTop && Array.isArray(value) && value.length === 0) {
    writeByte(out, typeByte.emptyArray);
    return;
  }
  const type = typeByteOf(value);
  switch (type) {
    case typeByte.number:
      writeBsonNumber(out, value);
      break;
    case typeByte.boolean:
      writeByte(out, type);
      writeByte(out, value === true ? 1 : 0);
      break;
    case typeByte.date:
      writeInt64(out, type, BigInt(Number(value)) ^ signBit);
      break;
    case typeByte.objectId:
      writeObjectId(out, value);
      break;
    case typeByte.binary:
      writeBinary(out, value);
      break;
    case typeByte.object:
      writeObject(out, value);
      break;
    case typeByte.array:
      writeArray(out, value);
      break;
    default:
      writeByte(out, type); // null is one value
      break;
  }
}

const signBit = 0x8000_0000_0000_0000n;

function writeInt64(out: Buffers, type: number, value: bigint): void {
  reserve(out, 9);
  out.bytes[out.length] = type;
  out.bytes.writeBigUInt64BE(BigInt.asUintN(64, value), out.length + 1);
  out.length += 9;
}

function writeNumber(out: Buffers, value: number, remainder: number): void {
  reserve(out, 11);
  const { bytes, length } = out;
  bytes[length] = typeByte.number;
  if (Number.isNaN(value)) {
    bytes.fill(0, length + 1, length + 9); // before every other number
  } else {
    bytes.writeDoubleBE(value === 0 ? 0 : value, length + 1); // -0 is 0
    if (value < 0) turn(bytes, length + 1, length + 9);
    else bytes[length + 1] = (bytes[length + 1] ?? 0) | 0x80;
  }
  bytes.writeUInt16BE(0x8000 + remainder, length + 9);
  out.length = length + 11;
}

function writeBsonNumber(out: Buffers, value: unknown): void {
  const nearest = toDouble(value);
  writeNumber(out, nearest, value instanceof Long ? Number(value.toBigInt() - BigInt(nearest)) : 0);
}

function writeString(out: Buffers, type: number, text: string): void {
  reserve(out, text.length * 3 + 3);
  out.bytes[out.length++] = type;
  if (text.includes("\0")) {
    writeEscaped(out, Buffer.from(text, "utf8"));
    return;
  }
  out.length += out.bytes.write(text, out.length, "utf8");
  out.bytes[out.length++] = 0;
  out.bytes[out.length++] = 1;
}

function writeEscaped(out: Buffers, bytes: Uint8Array): void {
  reserve(out, bytes.length * 2 + 2);
  for (const byte of bytes) {
    out.bytes[out.length++] = byte;
    if (byte === 0) out.bytes[out.length++] = 0xff;
  }
  out.bytes[out.length++] = 0;
  out.bytes[out.length++] = 1;
}

function writeObjectId(out: Buffers, value: unknown): void {
  reserve(out, 13);
  out.bytes[out.length] = typeByte.objectId;
  out.bytes.set(value instanceof ObjectId ? value.id : Buffer.from(String(value), "hex"), out.length + 1);
  out.length += 13;
}

function writeBinary(out: Buffers, value: unknown): void {
  const binary = value instanceof Binary ? value : new Binary();
  const bytes = binary.buffer.subarray(0, binary.position);
  reserve(out, bytes.length + 6);
  out.bytes[out.length] = typeByte.binary;
  out.bytes.writeUInt32BE(bytes.length, out.length + 1);
  out.bytes[out.length + 5] = binary.sub_type;
  out.bytes.set(bytes, out.length + 6);
  out.length += bytes.length + 6;
}

function writeObject(out: Buffers, value: unknown): void {
  writeByte(out, typeByte.object);
  for (const [name, field] of Object.entries(value ?? {})) {
    writeString(out, typeByteOf(field), name); // MongoDB compares an element's type before its name
    writeValue(out, field, false);
  }
  writeByte(out, 0);
}

function writeArray(out: Buffers, value: unknown): void {
  writeByte(out, typeByte.array);
  if (Array.isArray(value)) for (const item of value) writeValue(out, item, false);
  writeByte(out, 0);
}
