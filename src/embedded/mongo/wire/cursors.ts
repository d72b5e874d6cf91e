import { Long } from "bson";
import { commandError } from "../command-error.ts";
import { type Raw, rawArray } from "./reply.ts";

/** What a cursor still has to give: BSON documents, made as they are asked for. */
type Results = Iterator<Uint8Array>;
type Cursor = { namespace: string; results: Results; pending: Uint8Array | undefined; usedAt: number };

export type Cursors = ReturnType<typeof makeCursors>;
type Opening = {
  namespace: string;
  results: Results;
  batchSize?: number | undefined;
  /** Whether the first batch is all that is wanted. */
  isSingleBatch?: boolean | undefined;
};

const defaultBatchSize = 101;
/** A batch that took this long to read ends, in ms: others' commands come between it and the next one. */
const maxBatchMs = 5;
/** An answer is closed with the document that takes it over this size: under the 16 MiB that drivers accept, and some. */
const maxBatchBytes = 16 * 1024 * 1024;
/** A cursor that is not read for this long is closed, as MongoDB does. */
const idleTimeoutMs = 10 * 60_000;
const maxCursors = 10_000;

/** The cursors of all clients. What `open` and `next` answer is the `cursor` field of an answer: a batch, and id 0 at the end. */
export function makeCursors(now: () => number = () => performance.now()) {
  const open = new Map<number, Cursor>();
  let lastId = Math.floor(Math.random() * 2 ** 40); // ids of an earlier run of this server must not be met again
  const keep = (id: number, cursor: Cursor) => {
    open.set(id, cursor);
    return Long.fromNumber(id);
  };
  return {
    /** Gives the first batch. @throws CommandError 96 when too many cursors are open. */
    open: ({ namespace: ns, results, batchSize = defaultBatchSize, isSingleBatch }: Opening) => {
      const cursor: Cursor = { namespace: ns, results, pending: undefined, usedAt: Date.now() };
      const untilMs = isSingleBatch ? Number.POSITIVE_INFINITY : now() + maxBatchMs;
      const firstBatch = takeBatch(cursor, batchSize, () => now() > untilMs);
      const isAtEnd = isSingleBatch || (batchSize > 0 && peek(cursor) === undefined);
      if (isAtEnd) return { firstBatch, id: Long.ZERO, ns };
      if (open.size >= maxCursors) throw commandError("OperationFailed", `more than ${maxCursors} cursors are open`);
      return { firstBatch, id: keep(++lastId, cursor), ns };
    },
    /** Gives the next batch. @throws CommandError 43 when there is no such cursor, 13 when it is of another collection. */
    next: (id: number, ns: string, batchSize: number | undefined) => {
      const cursor = open.get(id);
      if (cursor === undefined) throw commandError("CursorNotFound", `cursor id ${id} not found`);
      if (cursor.namespace !== ns)
        throw commandError("Unauthorized", `cursor id ${id} belongs to another namespace, ${cursor.namespace}`);
      cursor.usedAt = Date.now();
      open.delete(id); // a cursor that fails is closed
      const untilMs = now() + maxBatchMs;
      const nextBatch = takeBatch(cursor, batchSize || Number.POSITIVE_INFINITY, () => now() > untilMs);
      return { nextBatch, id: peek(cursor) === undefined ? Long.ZERO : keep(id, cursor), ns };
    },
    /** Closes a cursor; false when it was not open. */
    kill: (id: number) => open.delete(id),
    /** Closes those that no client has read within the time-out. */
    expire: () => {
      const oldest = Date.now() - idleTimeoutMs;
      for (const [id, cursor] of open) if (cursor.usedAt < oldest) open.delete(id);
    },
    clear: () => open.clear(),
  };
}

/** The next document, which stays in the cursor; undefined at its end. */
function peek(cursor: Cursor): Uint8Array | undefined {
  cursor.pending ??= cursor.results.next().value;
  return cursor.pending;
}

/** The next documents: as many as were requested, as fit into one response, and as are read in the time; at least one. */
function takeBatch(cursor: Cursor, batchSize: number, isOver: () => boolean): Raw {
  const documents: Uint8Array[] = [];
  let bytes = 0;
  while (documents.length < batchSize && (documents.length === 0 || !isOver())) {
    const document = peek(cursor);
    if (document === undefined) break;
    bytes += document.length + 16;
    if (bytes > maxBatchBytes && documents.length > 0) break;
    documents.push(document);
    cursor.pending = undefined;
  }
  return rawArray(documents);
}
