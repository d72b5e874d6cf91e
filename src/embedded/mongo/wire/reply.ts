import type { Document } from "../bson/bson-types.ts";
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
  const parts: Uint8Array[] = [];
  const length = encodeFields(reply, parts);
  return Buffer.concat([int32(length + 5), ...parts, zero]);
}

const zero = new Uint8Array(1);

/** Appends the elements of `fields` to `parts`, and answers their length in bytes. */
function encodeFields(fields: Document, parts: Uint8Array[]): number {
  let length = 0;
  let plain: Document | undefined;
  const push = (bytes: Uint8Array) => {
    parts.push(bytes);
    length += bytes.length;
  };
  const flush = () => {
    if (plain === undefined) return;
    push(encodeDocument(plain).subarray(4, -1));
    plain = undefined;
  };
  for (const [name, value] of Object.entries(fields)) {
    if (!holdsRaw(value)) {
      plain ??= {};
      plain[name] = value;
      continue;
    }
    flush();
    if (value instanceof RawDocument) {
      push(element(typeDocument, name));
      push(value.bytes);
    } else if (value instanceof RawBatch) {
      push(element(typeArray, name));
      push(encodeBatch(value.documents));
    } else {
      push(element(typeDocument, name));
      const inner: Uint8Array[] = [];
      push(int32(encodeFields(value, inner) + 5));
      for (const bytes of inner) push(bytes);
      push(zero);
    }
  }
  flush();
  return length;
}

function holdsRaw(value: unknown): value is RawDocument | RawBatch | Document {
  if (typeof value !== "object" || value === null) return false;
  if (value instanceof RawDocument || value instanceof RawBatch) return true;
  return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).some(isRaw);
}

function isRaw(value: unknown): boolean {
  return value instanceof RawDocument || value instanceof RawBatch;
}

function element(type: number, name: string): Buffer {
  const bytes = Buffer.allocUnsafe(Buffer.byteLength(name) + 2);
  bytes[0] = type;
  bytes.write(name, 1);
  bytes[bytes.length - 1] = 0;
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeInt32LE(value, 0);
  return bytes;
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
