import { isDocument } from "./bson-types.ts";
import type { Document } from "./codec.ts";
import type { Collection } from "./collection.ts";
import { commandError } from "./command-error.ts";

/** `$listSearchIndexes`. An index is ready as soon as it is made, so all of them are queryable. */
export function listSearchIndexes(collection: Collection | undefined, operand: unknown): IteratorObject<Document> {
  if (!isDocument(operand))
    throw commandError("FailedToParse", "The $listSearchIndexes stage specification must be an object.");
  const wanted = (collection?.searchIndexes ?? []).filter(
    ({ name, id }) =>
      (operand.name === undefined || operand.name === name) && (operand.id === undefined || operand.id === String(id)),
  );
  return wanted.values().map(({ id, name, type, definition }) => ({
    id: String(id),
    name,
    type,
    status: "READY",
    queryable: true,
    latestVersion: 0,
    latestDefinition: definition,
  }));
}
