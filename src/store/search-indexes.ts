import { setTimeout as wait } from "node:timers/promises";
import type { Collection } from "mongodb";
import type { ChunkDocument } from "./chunk.ts";
import type { SearchIndexDeclaration } from "./collection.ts";

const READY_TIMEOUT_MS = 60_000; // an index on an empty collection is ready within seconds
const READY_POLL_MS = 500;
/** Dimensions of the platform's own embedding model, whose index is there from the start. */
const OWN_DIMENSIONS = 512;

type Chunks = Collection<ChunkDocument>;
type Declared = readonly SearchIndexDeclaration[];

/** The index of vectors of one length: each holds only those, and another embedding model may make others. */
export function vectorIndex(dimensions = OWN_DIMENSIONS): SearchIndexDeclaration {
  return {
    name: dimensions === OWN_DIMENSIONS ? "chunks_embedding" : `chunks_embedding_${dimensions}`,
    type: "vectorSearch",
    definition: {
      fields: [
        { type: "vector", path: "embedding", numDimensions: dimensions, similarity: "cosine" },
        { type: "filter", path: "tenantId" },
        { type: "filter", path: "documentId" },
        { type: "filter", path: "live" },
        { type: "filter", path: "collection" },
        { type: "filter", path: "model" },
      ],
    },
  };
}

/** Answers the name of the index of a length of vectors, after making it where it is missing. */
export type IndexFor = (dimensions: number) => Promise<string>;

export function makeIndexFor(chunks: Chunks): IndexFor {
  const names = new Map<number, Promise<string>>([[OWN_DIMENSIONS, Promise.resolve(vectorIndex().name)]]);
  const make = async (dimensions: number): Promise<string> => {
    const index = vectorIndex(dimensions);
    await createSearchIndexes(chunks, [index]);
    return index.name;
  };
  return (dimensions) => {
    const known = names.get(dimensions);
    if (known) return known;
    const made = make(dimensions);
    names.set(dimensions, made);
    made.catch(() => names.delete(dimensions)); // the next call tries again
    return made;
  };
}

/**
 * Creates those of the declared search indexes that are missing, adds to the others the paths that they lack, and waits until
 * all of them can be queried. Atlas answers by the earlier definition until it has built the new one. Safe to run in many
 * processes at once. @throws the driver's error where the server has no search indexes.
 */
export async function createSearchIndexes(chunks: Chunks, declared: Declared): Promise<void> {
  const present = new Map((await list(chunks)).map((index) => [index.name, index]));
  const missing = declared.filter(({ name }) => !present.has(name));
  for (const { name, definition } of declared) {
    const known = present.get(name)?.latestDefinition;
    if (known && pathsOf(definition).some((path) => !pathsOf(known).includes(path)))
      await chunks.updateSearchIndex(name, definition);
  }
  if (missing.length > 0) {
    await chunks.createSearchIndexes([...missing]).catch((error: unknown) => {
      if (!isAlreadyThere(error)) throw error; // another process made them at the same time
    });
  }
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (!(await areQueryable(chunks, declared))) {
    if (Date.now() > deadline) throw new Error("the search indexes did not become ready in time");
    await wait(READY_POLL_MS);
  }
}

/** Whether all declared search indexes are there and can be queried now. */
export async function areQueryable(chunks: Chunks, declared: Declared): Promise<boolean> {
  const ready = (await list(chunks)).filter(({ queryable }) => queryable === true).map(({ name }) => name);
  return declared.every(({ name }) => ready.includes(name));
}

/** The indexes as the server describes them; `queryable` is false while one is built, and missing in the driver's type. */
async function list(chunks: Chunks): Promise<{ name: string; queryable?: boolean; latestDefinition?: Definition }[]> {
  return chunks.listSearchIndexes().toArray();
}

type Definition = { fields?: { path: string }[]; mappings?: { fields?: object } };

/** The paths that an index of either type holds. */
const pathsOf = ({ fields = [], mappings }: Definition) => [
  ...fields.map(({ path }) => path),
  ...Object.keys(mappings?.fields ?? {}),
];

function isAlreadyThere(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("code" in error && error.code === 68) || /already exists|duplicate/i.test(error.message);
}
