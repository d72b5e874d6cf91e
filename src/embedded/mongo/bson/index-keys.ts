import { Binary, ObjectId } from "bson";
import { typeByte, typeByteOf } from "./bson-types.ts";

/**
 * Index keys: a binary form of BSON values whose byte order is MongoDB's order of the values, so that SQLite's b-trees
 * (which compare blobs byte by byte) serve equality, ranges and sorts. A value is a byte for its type and then:
 *
 * - number: its double with the sign folded in (8 bytes), then 80 00;
 * - string: UTF-8, 00 written as 00 FF, ended by 00 01, so that no key begins with another;
 * - document and array: their elements, ended by 00;
 * - binary: length, subtype, bytes; date: 8 bytes; ObjectId: 12 bytes.
 *
 * A descending part of a compound key has every bit inverted. `undefined` has the key of null, and an empty array, which
 * has no elements, a key just before null.
 */
type Output = { bytes: Buffer; length: number };

const EMPTY_ARRAY = 0x03;

/** One value's key, inverted for a descending part. */
export function encodeValue(value: unknown, isDescending = false): Buffer {
  return encodeKey([value], [isDescending]);
}

/** The same as text, for a map: equal values have one key. */
export function keyOf(value: unknown): string {
  return encodeValue(value).toString("latin1");
}

/** The key of a compound index for one value of each of its fields. */
export function encodeKey(values: readonly unknown[], isDescending: readonly boolean[]): Buffer {
  const out: Output = { bytes: Buffer.allocUnsafe(128), length: 0 };
  for (let part = 0; part < values.length; part++) {
    const start = out.length;
    const value = values[part];
    if (Array.isArray(value) && value.length === 0) writeByte(out, EMPTY_ARRAY);
    else writeValue(out, value);
    if (isDescending[part] === true) invert(out.bytes, start, out.length);
  }
  return out.bytes.subarray(0, out.length);
}

/** Inverts every bit between two places, which reverses the order. */
export function invert(bytes: Uint8Array, start: number, end: number): void {
  for (let at = start; at < end; at++) bytes[at] = ~(bytes[at] ?? 0);
}

function reserve(out: Output, more: number): void {
  if (out.length + more <= out.bytes.length) return;
  const grown = Buffer.allocUnsafe(Math.max(out.bytes.length * 2, out.length + more));
  out.bytes.copy(grown, 0, 0, out.length);
  out.bytes = grown;
}

function writeByte(out: Output, byte: number): void {
  reserve(out, 1);
  out.bytes[out.length++] = byte;
}

function writeBytes(out: Output, bytes: Uint8Array): void {
  reserve(out, bytes.length);
  out.bytes.set(bytes, out.length);
  out.length += bytes.length;
}

function writeValue(out: Output, value: unknown): void {
  if (typeof value === "string") writeString(out, typeByte.string, value);
  else if (typeof value === "number") writeNumber(out, value);
  else if (Array.isArray(value)) writeArray(out, value);
  else if (value instanceof Date) writeDate(out, value);
  else if (value instanceof ObjectId) writeObjectId(out, value);
  else if (value instanceof Binary) writeBinary(out, value);
  else if (typeof value === "object" && value !== null) writeObject(out, value);
  else {
    writeByte(out, typeByteOf(value)); // null is one value
    if (typeof value === "boolean") writeByte(out, value ? 1 : 0);
  }
}

function writeNumber(out: Output, value: number): void {
  reserve(out, 11);
  const { bytes, length } = out;
  bytes[length] = typeByte.number;
  if (Number.isNaN(value)) {
    bytes.fill(0, length + 1, length + 9); // before every other number
  } else {
    bytes.writeDoubleBE(value === 0 ? 0 : value, length + 1); // -0 is 0
    if (value < 0) invert(bytes, length + 1, length + 9);
    else bytes[length + 1] = (bytes[length + 1] ?? 0) | 0x80;
  }
  bytes.writeUInt16BE(0x8000, length + 9); // how far an int64 lay from its double, in an earlier version
  out.length = length + 11;
}

const signBit = 0x8000_0000_0000_0000n;

function writeDate(out: Output, value: Date): void {
  reserve(out, 9);
  out.bytes[out.length] = typeByte.date;
  out.bytes.writeBigUInt64BE(BigInt.asUintN(64, BigInt(Number(value)) ^ signBit), out.length + 1);
  out.length += 9;
}

function writeString(out: Output, type: number, text: string): void {
  reserve(out, text.length * 3 + 3);
  out.bytes[out.length++] = type;
  // Through latin1, where each byte is a character.
  const isPlain = !text.includes("\0");
  if (isPlain) out.length += out.bytes.write(text, out.length, "utf8");
  else writeBytes(out, Buffer.from(Buffer.from(text).toString("latin1").replaceAll("\0", "\0\xff"), "latin1"));
  reserve(out, 2);
  out.bytes[out.length++] = 0;
  out.bytes[out.length++] = 1;
}

function writeObjectId(out: Output, { id }: ObjectId): void {
  writeByte(out, typeByte.objectId);
  writeBytes(out, id);
}

function writeBinary(out: Output, { buffer, position, sub_type }: Binary): void {
  reserve(out, 6);
  out.bytes[out.length] = typeByte.binData;
  out.bytes.writeUInt32BE(position, out.length + 1);
  out.bytes[out.length + 5] = sub_type;
  out.length += 6;
  writeBytes(out, buffer.subarray(0, position));
}

function writeObject(out: Output, value: object): void {
  writeByte(out, typeByte.object);
  for (const [name, field] of Object.entries(value)) {
    writeString(out, typeByteOf(field), name); // MongoDB compares an element's type before its name
    writeValue(out, field);
  }
  writeByte(out, 0);
}

function writeArray(out: Output, items: readonly unknown[]): void {
  writeByte(out, typeByte.array);
  for (const item of items) writeValue(out, item);
  writeByte(out, 0);
}
