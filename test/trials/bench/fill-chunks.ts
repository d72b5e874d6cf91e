import { Binary } from "bson";
import type { Db } from "mongodb";
import { newId } from "../../../src/lib/ids.ts";
import { newCollection } from "../../../src/rag/known-collections.ts";
import { tagsOf } from "../../../src/rag/schemas.ts";
import { collectionField, DEFAULT_COLLECTION } from "../../../src/store/collection-filter.ts";
import { makeCollectionStore } from "../../../src/store/collection-store.ts";
import { connectStore } from "../../../src/store/connect.ts";
import { runConcurrently, seededRandom } from "./measure.ts";
import type { Stack } from "./stack.ts";

/** The offline embedding's own. */
export const dimensions = 512;
const model = "switchyard-offline-embedding";
const chunksADocument = 20;
const documentsACommand = 25;
const commandsAtOnce = 3;

/** Documents are spread over these, one after the other. */
export const collections = [DEFAULT_COLLECTION, "shelf-1", "shelf-2", "shelf-3"] as const;

/** Runs something with the stack's store. */
export async function withStore<T>(stack: Stack, work: (db: Db) => Promise<T>): Promise<T> {
  const { db, close } = await connectStore({ url: stack.mongoUrl, db: "switchyard", timeoutMs: 60_000 });
  try {
    return await work(db);
  } finally {
    await close();
  }
}

/**
 * Writes chunks `from` to `to` of a tenant straight into the store, in the shapes of its parts, as ingestion would leave them:
 * documents of 20 live chunks, in four collections, with a value that every second one has and a year. Multiples of 20.
 */
export async function fillChunks(db: Db, tenantId: string, { from, to }: { from: number; to: number }): Promise<void> {
  const { insert } = makeCollectionStore(db);
  for (const name of collections.slice(1)) await insert(newCollection(tenantId, name));
  const rowsACommand = documentsACommand * chunksADocument;
  await runConcurrently(Math.ceil((to - from) / rowsACommand), commandsAtOnce, async (index) => {
    const first = from + index * rowsACommand;
    const rows = { from: first, to: Math.min(to, first + rowsACommand) };
    const count = Math.ceil((rows.to - rows.from) / chunksADocument);
    const documents = Array.from({ length: count }, (_, n) => makeDocument(tenantId, first / chunksADocument + n));
    const matrix = makeMatrix(rows.from, rows.to);
    const chunks = documents.flatMap((document, at) =>
      Array.from({ length: chunksADocument }, (_, n) => {
        const start = (at * chunksADocument + n) * dimensions;
        return makeChunk(document, { n, embedding: matrix.slice(start, start + dimensions) });
      }),
    );
    await db.collection<{ _id: string }>("documents").insertMany(documents, { ordered: false });
    await db.collection<{ _id: string }>("chunks").insertMany(chunks, { ordered: false });
  });
}

type Document = ReturnType<typeof makeDocument>;

function makeDocument(tenantId: string, number: number) {
  const [now, metadata] = [new Date(), { kind: number % 2 === 0 ? "even" : "odd", year: 2000 + (number % 20) }];
  return {
    _id: newId("document"),
    tenantId,
    ...collectionField(collections[number % collections.length] ?? DEFAULT_COLLECTION),
    title: `paper ${number}`,
    status: "indexed",
    ...{ version: 1, lastVersion: 1, chunks: chunksADocument, metadata, tags: tagsOf(metadata) },
    source: { kind: "content" },
    vectorSpace: `${model}:${dimensions}`,
    createdAt: now,
    updatedAt: now,
  };
}

function makeChunk(
  { _id: documentId, tenantId, collection, title }: Document,
  { n, embedding }: { n: number; embedding: Float32Array },
) {
  return {
    _id: `${documentId}:1:${n}`,
    tenantId,
    documentId,
    ...(collection === undefined ? {} : { collection }),
    ...{ version: 1, live: true, title, n, tokens: 60 },
    content: `Part ${n} of ${title} tells how a lease of pump ${n} is renewed. `.repeat(4),
    hash: String(n),
    model,
    embedding: Binary.fromFloat32Array(embedding),
  };
}

/** The same rows for the same numbers: random directions of length 1. */
export function makeMatrix(from: number, to: number): Float32Array {
  const matrix = new Float32Array((to - from) * dimensions);
  for (let row = from; row < to; row += 1) {
    const random = seededRandom(row + 1);
    const start = (row - from) * dimensions;
    let squares = 0;
    for (let i = 0; i < dimensions; i += 1) {
      const value = random() - 0.5;
      matrix[start + i] = value;
      squares += value * value;
    }
    const length = Math.sqrt(squares);
    for (let i = 0; i < dimensions; i += 1) matrix[start + i] = (matrix[start + i] ?? 0) / length;
  }
  return matrix;
}
