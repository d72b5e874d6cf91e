import { type Document, isDocument } from "../bson/bson-types.ts";
import { encodeDocument } from "../bson/codec.ts";

const typeDocument = 0x03;
const typeArray = 0x04;

/** A value in an answer that is BSON already. */
export class Raw {
  readonly type: number;
  readonly bytes: Uint8Array;
  constructor(bytes: Uint8Array, type = typeDocument) {
    this.bytes = bytes;
    this.type = type;
  }
}

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
    if (value instanceof Raw) raw.push(head(value.type, name), value.bytes);
    else if (isDocument(value) && Object.values(value).some((inner) => inner instanceof Raw))
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

/** An array of documents. */
export function rawArray(documents: readonly Uint8Array[]): Raw {
  const length = documents.reduce((sum, { length }, at) => sum + length + 2 + String(at).length, 5);
  const bytes = Buffer.allocUnsafe(length);
  let to = bytes.writeInt32LE(length, 0);
  for (const [at, document] of documents.entries()) {
    bytes[to++] = typeDocument;
    to += bytes.write(String(at), to, "latin1");
    bytes[to++] = 0;
    bytes.set(document, to);
    to += document.length;
  }
  bytes[to] = 0;
  return new Raw(bytes, typeArray);
}
