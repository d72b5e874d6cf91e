import { Long } from "bson";
import { commandError } from "../command-error.ts";
import { RawBatch } from "./reply.ts";

/** What a cursor still has to give: BSON documents, made as they are asked for. */
export type Results = Iterator<Uint8Array>;

type Cursor = { namespace: string; results: Results; pending: Uint8Array | undefined; usedAt: number };

export type Cursors = {
  /** The first batch, and the cursor behind it when there is more: the `cursor` field of an answer. */
  open(input: { namespace: string; results: Results; batchSize: number; isSingleBatch: boolean }): CursorReply;
  /** The next batch. @throws CommandError 43 when there is no such cursor of that collection. */
  next(input: { id: Long; namespace: string; batchSize: number | undefined }): CursorReply;
  /** Closes a cursor; false when it was not open. */
  kill(id: Long): boolean;
  /** Closes those that nobody has asked for within the time-out. */
  expire(): void;
  clear(): void;
};
export type CursorReply = { firstBatch?: RawBatch; nextBatch?: RawBatch; id: Long; ns: string };

export const defaultBatchSize = 101;
/** An answer is closed with the document that takes it over this size: under the 16 MiB that drivers accept, and some. */
const maxBatchBytes = 16 * 1024 * 1024;
/** A cursor that is not read for this long is closed, as MongoDB does. */
const idleTimeoutMs = 10 * 60_000;
const maxCursors = 10_000;

export function makeCursors(): Cursors {
  const open = new Map<string, Cursor>();
  let lastId = Math.floor(Math.random() * 2 ** 40); // ids of a former life of this server must not be met again

  return {
    open: ({ namespace, results, batchSize, isSingleBatch }) => {
      const cursor: Cursor = { namespace, results, pending: undefined, usedAt: Date.now() };
      const { batch, hasMore } = take(cursor, batchSize);
      if (!hasMore || isSingleBatch) return { firstBatch: batch, id: Long.ZERO, ns: namespace };
      if (batchSize > 0) {
        cursor.pending ??= pull(results); // a cursor that turns out to be at its end needs no second call
        if (cursor.pending === undefined) return { firstBatch: batch, id: Long.ZERO, ns: namespace };
      }
      if (open.size >= maxCursors) throw commandError("OperationFailed", `more than ${maxCursors} cursors are open`);
      const id = Long.fromNumber(++lastId);
      open.set(id.toString(), cursor);
      return { firstBatch: batch, id, ns: namespace };
    },
    next: ({ id, namespace, batchSize }) => {
      const cursor = open.get(id.toString());
      if (cursor === undefined) throw commandError("CursorNotFound", `cursor id ${id} not found`);
      if (cursor.namespace !== namespace) {
        throw commandError("Unauthorized", `cursor id ${id} belongs to another namespace, ${cursor.namespace}`);
      }
      cursor.usedAt = Date.now();
      try {
        const { batch, hasMore } = take(cursor, batchSize ?? Number.POSITIVE_INFINITY);
        if (hasMore) cursor.pending ??= pull(cursor.results);
        if (cursor.pending !== undefined) return { nextBatch: batch, id, ns: namespace };
        open.delete(id.toString());
        return { nextBatch: batch, id: Long.ZERO, ns: namespace };
      } catch (error) {
        open.delete(id.toString());
        throw error;
      }
    },
    kill: (id) => open.delete(id.toString()),
    expire: () => {
      const oldest = Date.now() - idleTimeoutMs;
      for (const [id, cursor] of open) if (cursor.usedAt < oldest) open.delete(id);
    },
    clear: () => open.clear(),
  };
}

function pull(results: Results): Uint8Array | undefined {
  const next = results.next();
  return next.done === true ? undefined : next.value;
}

/** The next documents: as many as are asked for, and as fit into one answer. */
function take(cursor: Cursor, batchSize: number): { batch: RawBatch; hasMore: boolean } {
  const documents: Uint8Array[] = [];
  let bytes = 0;
  while (documents.length < batchSize) {
    const document = cursor.pending ?? pull(cursor.results);
    cursor.pending = undefined;
    if (document === undefined) return { batch: new RawBatch(documents), hasMore: false };
    bytes += document.length + 16;
    if (bytes > maxBatchBytes && documents.length > 0) {
      cursor.pending = document;
      return { batch: new RawBatch(documents), hasMore: true };
    }
    documents.push(document);
  }
  return { batch: new RawBatch(documents), hasMore: true };
}
