import { BSONType, onDemand } from "bson";
import type { Document } from "./bson-types.ts";
import { decodeDocument } from "./codec.ts";

/** Decodes some fields of a stored document: those of other fields are not read, however large they are. */
export const decodeFields = (stored: Uint8Array, wanted: ReadonlySet<string>): Document =>
  decodeDocument(pickFields(stored, wanted));

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
    kept.push(elementHead(BSONType.double, name), number);
  }
  return joinFields(kept);
}

/** A stored document with a field more behind its own: another document, or an array of such. */
export function withField(stored: Uint8Array, name: string, value: Uint8Array | readonly Uint8Array[]): Uint8Array {
  const isOne = value instanceof Uint8Array;
  const head = elementHead(isOne ? BSONType.object : BSONType.array, name);
  return joinFields([stored.subarray(4, -1), head, isOne ? value : joinArray(value)]);
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
    bytes[to++] = BSONType.object;
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
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
  const kept: Uint8Array[] = [];
  for (const [, nameAt, nameLength, valueAt, valueLength] of onDemand.parseToElements(bytes)) {
    const [from, to] = [nameAt - 1, valueAt + valueLength]; // the byte of the type comes before the name
    if (isKept(bytes.toString("utf8", nameAt, nameAt + nameLength), to - from)) kept.push(bytes.subarray(from, to));
  }
  return kept;
}

function joinFields(fields: readonly Uint8Array[]): Uint8Array {
  const document = Buffer.concat([Buffer.alloc(4), ...fields, Buffer.alloc(1)]);
  document.writeInt32LE(document.length);
  return document;
}
