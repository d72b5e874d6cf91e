/**
 * Which collection of documents a record belongs to. Records of the collection `default` have no field for it, as those from
 * before there were collections.
 */
export const DEFAULT_COLLECTION = "default";

/** Collections by their names; undefined: all. */
export type CollectionNames = readonly string[] | undefined;

/** The field of a new record. */
export const collectionField = (name: string): { collection?: string } =>
  name === DEFAULT_COLLECTION ? {} : { collection: name };

/** The collection of a record. */
export const collectionOf = ({ collection = DEFAULT_COLLECTION }: { collection?: string | undefined }): string =>
  collection;

/** The collections as filters name them. Null also matches an absent field. */
const storedNames = (names: readonly string[]) => names.map((name) => (name === DEFAULT_COLLECTION ? null : name));

/** Filter of MongoDB, and of all that the embedded store searches. */
export function inCollections(names: CollectionNames): { collection?: { $in: string[] } } {
  if (names === undefined) return {};
  return { collection: { $in: storedNames(names) as string[] } }; // the driver's types cannot express what null matches
}

const PATH = "collection";
const split = (names: readonly string[]) => ({
  named: names.filter((name) => name !== DEFAULT_COLLECTION),
  hasDefault: names.includes(DEFAULT_COLLECTION),
});

/**
 * The filter of Atlas' `$vectorSearch`, whose `$in` takes no null.
 * https://www.mongodb.com/docs/atlas/atlas-vector-search/vector-search-stage/#atlas-vector-search-pre-filter
 */
export function atlasVectorFilter(names: CollectionNames): object {
  if (names === undefined) return {};
  const { named, hasDefault } = split(names);
  const isNamed = { [PATH]: { $in: named } };
  const isDefault = { [PATH]: { $exists: false } };
  if (!hasDefault) return isNamed;
  return named.length === 0 ? isDefault : { $or: [isNamed, isDefault] };
}

/**
 * A clause of the filter of Atlas' `$search`, whose `in` takes no null; none where all collections are searched.
 * https://www.mongodb.com/docs/atlas/atlas-search/exists/
 */
export function atlasTextFilter(names: CollectionNames): object[] {
  if (names === undefined) return [];
  const { named, hasDefault } = split(names);
  const isNamed = { in: { path: PATH, value: named } };
  const isDefault = { compound: { mustNot: [{ exists: { path: PATH } }] } };
  if (!hasDefault) return [isNamed];
  return [named.length === 0 ? isDefault : { compound: { should: [isNamed, isDefault], minimumShouldMatch: 1 } }];
}

/** The clause of the embedded store's `$search`. */
export function embeddedTextFilter(names: CollectionNames): object[] {
  return names === undefined ? [] : [{ in: { path: PATH, value: storedNames(names) } }];
}
