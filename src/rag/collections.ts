import { z } from "zod";
import { AppError, invalidRequest } from "../lib/errors.ts";
import { type CollectionNames, collectionOf, DEFAULT_COLLECTION } from "../store/collection-filter.ts";
import type { Caller } from "../tenancy/roles.ts";

/** Maximum collections that a query names or that a key is limited to. */
export const MAX_NAMED_COLLECTIONS = 100;

export const collectionNameSchema = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,64}$/, "must be 1 to 64 letters, digits, ., _ or -");

/** One collection, or several. */
export const collectionChoiceSchema = z
  .union([collectionNameSchema, z.array(collectionNameSchema).min(1).max(MAX_NAMED_COLLECTIONS)])
  .describe("One collection of documents, or a list of them; default: all that the key may use");
export type CollectionChoice = z.output<typeof collectionChoiceSchema>;

type Limited = Pick<Caller, "collections">;

/** Whether a key may use what is in this collection. */
export const mayUse = ({ collections }: Limited, record: { collection?: string | undefined }): boolean =>
  collections === undefined || collections.includes(collectionOf(record));

/**
 * The collections of a call: those that it names, else all that its key may use; undefined: all.
 * @throws AppError `insufficient_scope` for a collection that the key may not use.
 */
export function chooseCollections(caller: Limited, wanted: CollectionChoice | undefined): CollectionNames {
  if (wanted === undefined) return caller.collections;
  const names = [...new Set([wanted].flat())];
  const foreign = names.find((name) => !mayUse(caller, { collection: name }));
  if (foreign === undefined) return names;
  throw new AppError("insufficient_scope", `This key may not use the collection ${foreign}.`, { param: "collection" });
}

/**
 * The collection for a new document: the named one, else `default`, or the key's only collection if it may not use that.
 * @throws AppError `insufficient_scope`; `invalid_request` if the key has several collections and the call names none.
 */
export function collectionForIngest(caller: Limited, wanted: string | undefined): string {
  const [only, ...others] = caller.collections ?? [DEFAULT_COLLECTION];
  const isAmbiguous = wanted === undefined && others.length > 0 && !mayUse(caller, {});
  if (isAmbiguous) throw invalidRequest("collection", "collection: name one of those that this key may use.");
  const name = wanted ?? (others.length === 0 && only !== undefined ? only : DEFAULT_COLLECTION);
  chooseCollections(caller, name);
  return name;
}
