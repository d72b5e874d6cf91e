import { Binary, ObjectId } from "bson";
import { type Document, setField } from "./bson-types.ts";

const bsonType = {
  double: 1,
  string: 2,
  document: 3,
  array: 4,
  binary: 5,
  undefined: 6,
  objectId: 7,
  boolean: 8,
  date: 9,
  null: 10,
  int32: 16,
  int64: 18,
} as const;

const twoTo32 = 2 ** 32;

type Input = { bytes: Buffer; view: DataView; at: number };

/**
 * Decodes a stored document, every number as a plain one. It is twice as fast as the library's reader, because names of
 * fields are made once and values are not looked at again. It trusts its input: whatever is stored was checked by the
 * library when it arrived.
 */
export const decodeDocument = (stored: Uint8Array): Document => readFields(inputOf(stored));

/** The same for some fields of it alone: what other fields hold is passed over, however large it is. */
export const decodeFields = (stored: Uint8Array, wanted: ReadonlySet<string>): Document =>
  readFields(inputOf(stored), wanted);

/** A stored document without those of its fields that are larger than `most` bytes, and their names. */
export function withoutLarge(stored: Uint8Array, most: number): { brief: Uint8Array; large: string[] } {
  const large: string[] = [];
  const kept = sliceFields(stored, (name, bytes) => {
    if (bytes > most) large.push(name);
    return bytes <= most;
  });
  return { brief: joinFields(kept), large };
}

/** A stored document with only those of its fields that are named, as they are stored, and with some numbers behind them. */
export function pickFields(
  stored: Uint8Array,
  names: { has(name: string): boolean },
  added: ReadonlyMap<string, number> = new Map(),
): Uint8Array {
  const kept = sliceFields(stored, (name) => names.has(name));
  for (const [name, value] of added) {
    const number = Buffer.allocUnsafe(8);
    number.writeDoubleLE(value);
    kept.push(elementHead(bsonType.double, name), number);
  }
  return joinFields(kept);
}

/** A stored document with an array of others behind its fields. */
export function withArray(stored: Uint8Array, name: string, items: readonly Uint8Array[]): Uint8Array {
  return joinFields([stored.subarray(4, -1), elementHead(bsonType.array, name), joinArray(items)]);
}

/** A stored document with another one behind its fields. */
export function withDocument(stored: Uint8Array, name: string, other: Uint8Array): Uint8Array {
  return joinFields([stored.subarray(4, -1), elementHead(bsonType.document, name), other]);
}

/** What stands before an element's value: the byte of its type, and its name. */
export function elementHead(type: number, name: string): Buffer {
  return Buffer.from(`${String.fromCharCode(type)}${name}\0`);
}

/** The BSON of an array of documents. */
export function joinArray(documents: readonly Uint8Array[]): Buffer {
  const length = documents.reduce((sum, { length }, at) => sum + length + 2 + String(at).length, 5);
  const bytes = Buffer.allocUnsafe(length);
  let to = bytes.writeInt32LE(length, 0);
  for (const [at, document] of documents.entries()) {
    bytes[to++] = bsonType.document;
    to += bytes.write(String(at), to, "latin1");
    bytes[to++] = 0;
    bytes.set(document, to);
    to += document.length;
  }
  bytes[to] = 0;
  return bytes;
}

/** The bytes of the fields that are kept. */
function sliceFields(stored: Uint8Array, isKept: (name: string, bytes: number) => boolean): Uint8Array[] {
  const input = { ...inputOf(stored), at: 4 };
  const kept: Uint8Array[] = [];
  for (let from = 4, type = input.bytes[input.at++]; type; from = input.at, type = input.bytes[input.at++]) {
    const name = readName(input);
    skipValue(input, type);
    if (isKept(name, input.at - from)) kept.push(input.bytes.subarray(from, input.at));
  }
  return kept;
}

function joinFields(fields: readonly Uint8Array[]): Uint8Array {
  const document = Buffer.concat([Buffer.alloc(4), ...fields, Buffer.alloc(1)]);
  document.writeInt32LE(document.length);
  return document;
}

function inputOf({ buffer, byteOffset, byteLength }: Uint8Array): Input {
  return {
    bytes: Buffer.from(buffer, byteOffset, byteLength),
    view: new DataView(buffer, byteOffset, byteLength),
    at: 0,
  };
}

function readFields(input: Input, wanted?: ReadonlySet<string>): Document {
  const document: Document = {};
  input.at += 4;
  for (;;) {
    const type = input.bytes[input.at++];
    if (type === 0 || type === undefined) return document;
    const name = readName(input);
    if (wanted === undefined || wanted.has(name)) setField(document, name, readValue(input, type));
    else skipValue(input, type);
  }
}

/** Values that may be large begin with their length: of documents and arrays it counts itself. */
function skipValue(input: Input, type: number): void {
  const length = () => input.view.getInt32(input.at, true);
  if (type === bsonType.string) input.at += 4 + length();
  else if (type === bsonType.document || type === bsonType.array) input.at += length();
  else if (type === bsonType.binary) input.at += 5 + length();
  else readValue(input, type);
}

function readArray(input: Input): unknown[] {
  const items: unknown[] = [];
  input.at += 4;
  for (;;) {
    const type = input.bytes[input.at++];
    if (type === 0 || type === undefined) return items;
    while (input.bytes[input.at++] !== 0); // the name is the item's position
    items.push(readValue(input, type));
  }
}

function readValue(input: Input, type: number): unknown {
  switch (type) {
    case bsonType.string:
      return readString(input);
    case bsonType.int32:
      input.at += 4;
      return input.view.getInt32(input.at - 4, true);
    case bsonType.double:
      input.at += 8;
      return input.view.getFloat64(input.at - 8, true);
    case bsonType.document:
      return readFields(input);
    case bsonType.array:
      return readArray(input);
    case bsonType.date:
      return new Date(readInt64(input));
    case bsonType.int64:
      return readInt64(input);
    case bsonType.boolean:
      return input.bytes[input.at++] === 1;
    case bsonType.null:
      return null;
    case bsonType.undefined:
      return undefined;
    case bsonType.objectId:
      input.at += 12;
      return new ObjectId(Uint8Array.prototype.slice.call(input.bytes, input.at - 12, input.at));
    case bsonType.binary:
      return readBinary(input);
    default:
      throw new TypeError(`The data file holds a value of unknown type ${type}`);
  }
}

/** The nearest double: what is stored lies within the integers that a double holds exactly. */
function readInt64(input: Input): number {
  input.at += 8;
  return input.view.getInt32(input.at - 4, true) * twoTo32 + input.view.getUint32(input.at - 8, true);
}

function readString(input: Input): string {
  const start = input.at + 4;
  const end = start + input.view.getInt32(input.at, true) - 1;
  input.at = end + 1;
  return input.bytes.toString("utf8", start, end);
}

function readBinary(input: Input): Binary {
  const subtype = input.bytes[input.at + 4] ?? 0;
  const start = input.at + 5;
  input.at = start + input.view.getInt32(input.at, true);
  return new Binary(input.bytes.subarray(start, input.at), subtype);
}

/** Names of fields repeat from document to document: a table by a hash of their bytes saves decoding them again. */
const nameSlots = 1024;
const longestKeptName = 40;
const names: string[] = [];

function readName(input: Input): string {
  const { bytes, at: start } = input;
  let end = start;
  let hash = 0;
  for (let byte = bytes[end] ?? 0; byte !== 0; byte = bytes[end] ?? 0) {
    hash = (hash * 31 + byte) | 0;
    end++;
  }
  input.at = end + 1;
  if (end - start > longestKeptName) return bytes.toString("utf8", start, end);
  const slot = (hash >>> 0) % nameSlots;
  const kept = names[slot];
  if (kept !== undefined && isSameName(kept, bytes, start, end)) return kept;
  const name = bytes.toString("utf8", start, end);
  names[slot] = name;
  return name;
}

/** Only names in ASCII are ever the same: in others a byte is not a character. */
function isSameName(name: string, bytes: Buffer, start: number, end: number): boolean {
  if (name.length !== end - start) return false;
  for (let at = 0; at < name.length; at++) {
    const code = name.charCodeAt(at);
    if (code !== bytes[start + at] || code > 127) return false;
  }
  return true;
}
