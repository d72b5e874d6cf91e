import { type Document, isDocument } from "../bson/bson-types.ts";
import { encodeDocument } from "../bson/codec.ts";
import { elementHead, joinArray } from "../bson/stored-fields.ts";

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
    if (value instanceof Raw) raw.push(elementHead(value.type, name), value.bytes);
    else if (isDocument(value) && Object.values(value).some((inner) => inner instanceof Raw))
      raw.push(elementHead(typeDocument, name), ...encodeParts(value));
    else plain[name] = value;
  }
  const parts = [encodeDocument(plain).subarray(4, -1), ...raw, new Uint8Array(1)];
  const length = Buffer.allocUnsafe(4);
  length.writeInt32LE(parts.reduce((sum, part) => sum + part.length, 4));
  return [length, ...parts];
}

/** An array of documents. */
export const rawArray = (documents: readonly Uint8Array[]) => new Raw(joinArray(documents), typeArray);
