import { Binary, type Db } from "mongodb";
import { notFound } from "../lib/errors.ts";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { makeUseStore } from "./use-store.ts";
import { insertIfAbsent, updateIf } from "./writes.ts";

/** A piece of a document's source; MongoDB takes no document above 16 MB. `bytes`: of the source, in its first piece. */
export type SourcePiece = TenantOwned & { documentId: string; n: number; data: Binary; bytes?: number };

/** A source whose bytes are read piece by piece. */
export type OpenedSource = { length: number | undefined; pieces: AsyncIterable<Uint8Array> };

/** Small enough that writing a piece delays nobody else in the embedded store. */
const PIECE_BYTES = 256 << 10;
/** Pieces of one reply: the embedded store needs some ten milliseconds for one of 2 MB, and serves nobody else meanwhile. */
const PIECES_AT_ONCE = 2;

export const sourceCollection = defineCollection<SourcePiece>({
  name: "sources",
  indexes: [{ name: "document", key: { tenantId: 1, documentId: 1, n: 1 } }],
});

type Chunks = AsyncIterable<Uint8Array>;

/** The same bytes in pieces of equal size, except the last one. No bytes give one empty piece. */
async function* cut(chunks: Chunks): AsyncGenerator<Buffer> {
  let parts: Uint8Array[] = [];
  let size = 0;
  let isEmpty = true;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + PIECE_BYTES - size);
      parts.push(part);
      size += part.length;
      at += part.length;
      if (size < PIECE_BYTES) continue;
      yield Buffer.concat(parts);
      [parts, size, isEmpty] = [[], 0, false];
    }
  }
  if (size > 0 || isEmpty) yield Buffer.concat(parts);
}

/** The bytes that documents were made from, as they were given. */
export function makeSourceStore(db: Db) {
  const pieces = db.collection<SourcePiece>(sourceCollection.name);
  const use = makeUseStore(db);
  const count = (tenantId: string, bytes: number) => use.add({ tenantId, kind: "sources", bytes });
  function* piecesOf(tenantId: string, documentId: string, bytes: Uint8Array): Generator<SourcePiece> {
    for (let n = 0; n * PIECE_BYTES < bytes.length || n === 0; n += 1) {
      const data = new Binary(bytes.subarray(n * PIECE_BYTES, (n + 1) * PIECE_BYTES));
      const total = n === 0 ? { bytes: bytes.length } : {};
      yield { _id: `${documentId}:${n}`, tenantId, documentId, n, data, ...total };
    }
  }
  /** Writes incoming pieces and returns the number of bytes. Existing pieces stay. */
  const writeAll = async (tenantId: string, documentId: string, chunks: Chunks): Promise<number> => {
    let n = 0;
    let bytes = 0;
    for await (const data of cut(chunks)) {
      await insertIfAbsent(pieces, { _id: `${documentId}:${n}`, tenantId, documentId, n, data: new Binary(data) });
      n += 1;
      bytes += data.length;
    }
    const first = ofTenant(tenantId, { documentId, n: 0, bytes: { $exists: false } });
    if (await updateIf(pieces, first, { $set: { bytes } })) await count(tenantId, bytes);
    return bytes;
  };
  async function* readPieces(tenantId: string, documentId: string): AsyncGenerator<Uint8Array> {
    const cursor = pieces.find(ofTenant(tenantId, { documentId })).sort({ n: 1 }).batchSize(PIECES_AT_ONCE);
    for await (const { data } of cursor) yield data.value();
  }
  const findPiece = (tenantId: string, documentId: string, n: number) =>
    pieces.findOne(ofTenant(tenantId, { documentId, n }));
  async function* followPieces(first: SourcePiece): AsyncGenerator<Uint8Array> {
    const { tenantId, documentId, bytes: length } = first;
    let piece: Uint8Array = first.data.value();
    for (let read = piece.length, n = 1; ; n += 1) {
      yield piece;
      if (length === undefined ? piece.length < PIECE_BYTES : read >= length) return;
      const next = await findPiece(tenantId, documentId, n);
      if (next === null && length === undefined) return;
      if (next === null) throw notFound("file");
      piece = next.data.value();
      read += piece.length;
    }
  }
  return {
    /** Writes bytes under an id of their own. */
    async write(tenantId: string, documentId: string, bytes: Uint8Array): Promise<void> {
      for (const piece of piecesOf(tenantId, documentId, bytes)) await pieces.insertOne(piece);
      await count(tenantId, bytes.length);
    },
    /** As `write`, if others may have written the same bytes or a part of them: existing pieces stay. */
    async ensure(tenantId: string, documentId: string, bytes: Uint8Array): Promise<void> {
      let isFirst = false;
      for (const piece of piecesOf(tenantId, documentId, bytes)) {
        const isNew = await insertIfAbsent(pieces, piece);
        if (piece.n === 0) isFirst = isNew;
      }
      if (isFirst) await count(tenantId, bytes.length);
    },
    /** As `ensure`, for a stream of bytes that is never in memory as a whole. Returns their number. */
    ensureStream: writeAll,
    /** The bytes one after the other. */
    stream: readPieces,
    /** All bytes in one buffer; null if there are none. */
    async read(tenantId: string, documentId: string): Promise<Buffer | null> {
      const parts: Uint8Array[] = [];
      for await (const part of readPieces(tenantId, documentId)) parts.push(part);
      return parts.length === 0 ? null : Buffer.concat(parts);
    },
    /**
     * The bytes in their pieces, each read when it is asked for, and how many there are, where that was recorded; null when there
     * are none. The pieces throw `AppError` `not_found` when one was removed meanwhile.
     */
    async open(tenantId: string, documentId: string): Promise<OpenedSource | null> {
      const first = await findPiece(tenantId, documentId, 0);
      return first && { length: first.bytes, pieces: followPieces(first) };
    },
    async remove(tenantId: string, documentId: string): Promise<void> {
      const first = ofTenant(tenantId, { documentId, n: 0 });
      const counted = await pieces.findOne(first, { projection: { bytes: 1 } });
      const { deletedCount } = await pieces.deleteOne(first);
      await pieces.deleteMany(ofTenant(tenantId, { documentId }));
      if (deletedCount === 1 && counted?.bytes) await count(tenantId, -counted.bytes);
    },
  };
}
