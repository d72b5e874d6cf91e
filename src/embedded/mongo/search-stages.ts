import type { Document } from "./bson-types.ts";
import type { Collection } from "./collection.ts";
import { listSearchIndexes } from "./search-index-list.ts";
import { textSearch } from "./text-stage.ts";
import { vectorSearch } from "./vector-stage.ts";

/** A stage that brings documents of its own and so stands first in a pipeline. */
export type SearchStage = (collection: Collection | undefined, operand: unknown) => IteratorObject<Document>;

export const searchStages: Readonly<Record<string, SearchStage>> = {
  $vectorSearch: vectorSearch,
  $search: textSearch,
  $listSearchIndexes: listSearchIndexes,
};

/** Whether a stage of that name brings documents of its own. */
export const isSearchStage = (name: string) => Object.hasOwn(searchStages, name);
