import type { Collection } from "mongodb";
import type { ChunkDocument } from "./chunk.ts";
import type { SearchIndexDeclaration } from "./collection.ts";
import { createSearchIndexes } from "./search-indexes.ts";

/** Dimensions of the platform's own embedding model, whose index is there from the start. */
const OWN_DIMENSIONS = 512;

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
      ],
    },
  };
}

/** Answers the name of the index of a length of vectors, after making it where it is missing. */
export type IndexFor = (dimensions: number) => Promise<string>;

export function makeIndexFor(chunks: Collection<ChunkDocument>): IndexFor {
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
