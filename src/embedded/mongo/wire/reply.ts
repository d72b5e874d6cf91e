import { type Document, isDocument } from "../bson/bson-types.ts";
import { encodeDocument } from "../bson/codec.ts";

/** A document in an answer that is BSON already. */
export class RawDocument {
  readonly bytes: Uint8Array;
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}

/** An array of documents in an answer that are BSON already. */
export class RawBatch {
  readonly documents: readonly Uint8Array[];
  constructor(documents: readonly Uint8Array[]) {
    this.documents = documents;
  }
}

const typeDocument = 0x03;
const typeArray = 0x04;

/** BSON of an answer, in which stored documents are copied as they are instead of being decoded and encoded again. */
export function encodeReply(reply: Document): Buffer {
  return Buffer.concat(encodeParts(reply));
}

/** The parts of a document, the raw fields last; those may stand at the top or one level below. */
function encodeParts(fields: Document): Uint8Array[] {
  const plain: Document = {};
  const raw: Uint8Array[] = [];
  for (const name of Object.keys(fields)) {
    const value: unknown = fields[name];
    if (value instanceof RawDocument) raw.push(head(typeDocument, name), value.bytes);
    else if (value instanceof RawBatch) raw.push(head(typeArray, name), encodeBatch(value.documents));
    else if (isDocument(value) && Object.values(value).some((inner) => inner instanceof RawBatch))
      raw.push(head(typeDocument, name), ...encodeParts(value));
    else plain[name] = value;
  }
  const parts = [encodeDocument(plain).subarray(4, -1), ...raw, new Uint8Array(1)];
  const length = Buffer.allocUnsafe(4);
  length.writeInt32LE(parts.reduce((sum, part) => sum + part.length, 4));
  return [length, ...parts];
}

/** What stands before an element's value: the byte of its type, and its name. */
function head(type: number, name: string): Buffer {
  return Buffer.from(`${String.fromCharCode(type)}${name}\0`);
}

function encodeBatch(documents: readonly Uint8Array[]): Buffer {
  let length = 5;
  documents.forEach((bytes, at) => {
    length += bytes.length + 2 + String(at).length;
  });
  const batch = Buffer.allocUnsafe(length);
  let to = batch.writeInt32LE(length, 0);
  documents.forEach((bytes, at) => {
    batch[to++] = typeDocument;
    to += batch.write(String(at), to, "latin1");
    batch[to++] = 0;
    batch.set(bytes, to);
    to += bytes.length;
  });
  batch[to] = 0;
  return batch;
}
