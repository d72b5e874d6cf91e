import { type Document, isDocument } from "../bson/bson-types.ts";
import { failedToParse } from "../command-error.ts";
import type { Collection } from "../storage/collection.ts";
import { textSearch } from "./text-stage.ts";
import { vectorSearch } from "./vector-stage.ts";

/** A stage that brings documents of its own and so stands first in a pipeline. */
export type SearchStage = (collection: Collection | undefined, operand: unknown) => IteratorObject<Document>;

export const searchStages: Readonly<Record<string, SearchStage>> = {
  $vectorSearch: vectorSearch,
  $search: textSearch,
  $listSearchIndexes: listSearchIndexes,
};

/** An index is ready as soon as it is made, so all of them are queryable. */
function listSearchIndexes(collection: Collection | undefined, operand: unknown): IteratorObject<Document> {
  if (!isDocument(operand)) throw failedToParse("The $listSearchIndexes stage specification must be an object.");
  const wanted = (collection?.searchIndexes ?? []).filter(
    ({ name }) => operand.name === undefined || operand.name === name,
  );
  return wanted
    .values()
    .map(({ name, type, definition }) => ({ name, type, queryable: true, latestDefinition: definition }));
}
