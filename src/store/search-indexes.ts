import type { Collection } from "mongodb";
import type { ChunkRecord } from "./chunk.ts";
import type { SearchIndexDeclaration } from "./collection.ts";

/** How long it is taken for known whether an index can be queried, in ms. */
const KNOWN_MS = 2_000;
/** Dimensions of the platform's own embedding model, whose index is there from the start. */
const OWN_DIMENSIONS = 512;

type Chunks = Collection<ChunkRecord>;
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
 * Creates those of the declared search indexes that are missing, and updates the others where they differ. It waits for none of
 * them to be built: Atlas answers by the earlier definition until it has built the new one. Safe to run in many processes at
 * once. @throws the driver's error where the server has no search indexes.
 */
export async function createSearchIndexes(chunks: Chunks, declared: Declared): Promise<void> {
  const present = new Map((await list(chunks)).map((index) => [index.name, index]));
  const missing = declared.filter(({ name }) => !present.has(name));
  for (const { name, definition } of declared) {
    const known = present.get(name)?.latestDefinition;
    if (known && !includes(known, definition)) await chunks.updateSearchIndex(name, definition);
  }
  if (missing.length === 0) return;
  await chunks.createSearchIndexes([...missing]).catch((error: unknown) => {
    if (!isAlreadyThere(error)) throw error; // another process made them at the same time
  });
}

/** Whether a definition, to which the server may add its defaults, has all that is declared. */
function includes(known: unknown, declared: unknown): boolean {
  if (Array.isArray(declared))
    return Array.isArray(known) && declared.every((item) => known.some((other) => includes(other, item)));
  if (typeof declared !== "object" || declared === null) return known === declared;
  if (typeof known !== "object" || known === null) return false;
  return Object.entries(declared).every(([key, value]) => includes(Reflect.get(known, key), value));
}

/** Makes what tells whether a search index can be queried now. An index that can is not asked about again for a while. */
export function makeIsQueryable(chunks: Chunks): (name: string) => Promise<boolean> {
  let known: { names: Promise<Set<string>>; at: number } | undefined;
  const read = async () => new Set((await list(chunks)).flatMap((one) => (one.queryable === true ? [one.name] : [])));
  return async (name) => {
    if (known === undefined || performance.now() - known.at > KNOWN_MS) {
      known = { names: read(), at: performance.now() };
      known.names.catch(() => {
        known = undefined;
      });
    }
    return (await known.names).has(name);
  };
}

/** Whether all declared search indexes are there and can be queried now. */
export async function areQueryable(chunks: Chunks, declared: Declared): Promise<boolean> {
  const ready = (await list(chunks)).filter(({ queryable }) => queryable === true).map(({ name }) => name);
  return declared.every(({ name }) => ready.includes(name));
}

/** The indexes as the server describes them; `queryable` is false while one is built, and missing in the driver's type. */
async function list(chunks: Chunks): Promise<{ name: string; queryable?: boolean; latestDefinition?: object }[]> {
  return chunks.listSearchIndexes().toArray();
}

function isAlreadyThere(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("code" in error && error.code === 68) || /already exists|duplicate/i.test(error.message);
}
