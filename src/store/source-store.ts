import { Binary, type Collection, type Db } from "mongodb";
import { notFound } from "../lib/errors.ts";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { findFirst } from "./page.ts";
import { makeUseStore } from "./use-store.ts";
import { insertIfAbsent, updateIf } from "./writes.ts";

/**
 * A piece of a document's source; MongoDB takes no document above 16 MB. The first one alone has `bytes`, those of the source, and
 * what concerns a source as a whole: the id of the record that has it, if that is another one, and when a sweep looks for that.
 */
export type SourcePiece = TenantOwned & {
  documentId: string;
  n: number;
  data: Binary;
  bytes?: number;
  ownerId?: string;
  lookAt?: Date;
};

/** A source without its bytes. */
export type SourceHead = Pick<SourcePiece, "_id" | "tenantId" | "documentId" | "ownerId">;

/** A source whose bytes are read piece by piece. */
export type OpenedSource = { length: number | undefined; pieces: AsyncIterable<Uint8Array> };

/** Small enough that writing a piece delays nobody else in the embedded store. */
const PIECE_BYTES = 256 << 10;
/** Pieces of one reply: the embedded store needs some ten milliseconds for one of 2 MB, and serves nobody else meanwhile. */
const PIECES_AT_ONCE = 2;
/** A source that no record has this long after it was begun was left by a call that was cut, in ms: no upload takes as long. */
const OWNED_AFTER_MS = 86_400_000;

export const sourceCollection = defineCollection<SourcePiece>({
  name: "sources",
  indexes: [
    { name: "document", key: { tenantId: 1, documentId: 1, n: 1 } },
    { name: "look", key: { lookAt: 1 }, sparse: true },
  ],
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

/** What the first piece of a source says of it as a whole. */
const toHead = (documentId: string, ownerId: string) => ({
  lookAt: new Date(Date.now() + OWNED_AFTER_MS),
  ...(ownerId === documentId ? {} : { ownerId }),
});

/**
 * The bytes that documents were made from, as they were given. A source is written before the record that has it, its owner, which has
 * the same id unless another one is named.
 */
export function makeSourceStore(db: Db) {
  const pieces = db.collection<SourcePiece>(sourceCollection.name);
  const use = makeUseStore(db);
  const count = (tenantId: string, bytes: number) => use.add({ tenantId, kind: "sources", bytes });
  function* piecesOf(
    tenantId: string,
    documentId: string,
    { bytes, ownerId }: { bytes: Uint8Array; ownerId: string },
  ): Generator<SourcePiece> {
    for (let n = 0; n * PIECE_BYTES < bytes.length || n === 0; n += 1) {
      const data = new Binary(bytes.subarray(n * PIECE_BYTES, (n + 1) * PIECE_BYTES));
      const head = n === 0 ? { bytes: bytes.length, ...toHead(documentId, ownerId) } : {};
      yield { _id: `${documentId}:${n}`, tenantId, documentId, n, data, ...head };
    }
  }
  /** Writes incoming pieces and returns the number of bytes. Existing pieces stay. */
  const writeAll = async (
    tenantId: string,
    documentId: string,
    { chunks, ownerId = documentId }: { chunks: Chunks; ownerId?: string },
  ): Promise<number> => {
    let n = 0;
    let bytes = 0;
    for await (const data of cut(chunks)) {
      const head = n === 0 ? toHead(documentId, ownerId) : {};
      const piece = { _id: `${documentId}:${n}`, tenantId, documentId, n, data: new Binary(data), ...head };
      await insertIfAbsent(pieces, piece);
      n += 1;
      bytes += data.length;
    }
    const first = ofTenant(tenantId, { documentId, n: 0, bytes: { $exists: false } });
    if (await updateIf(pieces, first, { $set: { bytes } })) await count(tenantId, bytes);
    return bytes;
  };
  const remove = async (tenantId: string, documentId: string): Promise<void> => {
    const first = ofTenant(tenantId, { documentId, n: 0 });
    const counted = await pieces.findOne(first, { projection: { bytes: 1 } });
    // The first one goes last: by it a removal that was cut is found again, and counted.
    await pieces.deleteMany(ofTenant(tenantId, { documentId, n: { $gt: 0 } }));
    const { deletedCount } = await pieces.deleteOne(first);
    if (deletedCount === 1 && counted?.bytes) await count(tenantId, -counted.bytes);
  };
  return {
    /** Writes bytes under an id of their own. */
    async write(
      tenantId: string,
      documentId: string,
      { bytes, ownerId = documentId }: { bytes: Uint8Array; ownerId?: string },
    ): Promise<void> {
      for (const piece of piecesOf(tenantId, documentId, { bytes, ownerId })) await pieces.insertOne(piece);
      await count(tenantId, bytes.length);
    },
    /** As `write`, if an earlier attempt may have written a part of the same bytes. */
    async ensure(tenantId: string, documentId: string, { bytes, ownerId }: { bytes: Uint8Array; ownerId: string }) {
      async function* chunks() {
        yield bytes;
      }
      await writeAll(tenantId, documentId, { chunks: chunks(), ownerId });
    },
    /** As `write`, for a stream of bytes that is never in memory as a whole, and of which others may have written a part. Returns their number. */
    ensureStream: writeAll,
    remove,
    ...makeReads(pieces),
    ...makeLooks(pieces),
  };
}

/** How sources are read. */
function makeReads(pieces: Collection<SourcePiece>) {
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
  };
}

/** What a sweep does that looks whether sources have an owner. */
function makeLooks(pieces: Collection<SourcePiece>) {
  return {
    /** Sources of all tenants of which nobody has looked yet whether a record has them. */
    unseen: ({ before, limit }: { before: Date; limit: number }) =>
      findFirst<SourcePiece, SourceHead>(
        pieces,
        { lookAt: { $lte: before } },
        { by: "lookAt", limit, fields: ["tenantId", "documentId", "ownerId"] },
      ),
    /** Notes that a record has it. */
    async seen({ _id }: SourceHead): Promise<void> {
      await pieces.updateOne({ _id }, { $unset: { lookAt: "" } });
    },
  };
}
