import { getField, isDocument } from "./bson-types.ts";
import { type Document, decodeDocument } from "./codec.ts";
import { encodeValue } from "./index-keys.ts";
import { valuesAt } from "./path-values.ts";
import type { VectorDefinition, VectorField } from "./vector-definition.ts";
import { makePartition, type Partition, putRow, removeRow } from "./vector-matrix.ts";
import { toUnitLength } from "./vector-scan.ts";
import { searchPartitions, type VectorHit, type VectorQuery } from "./vector-search.ts";
import { readVector } from "./vector-value.ts";

export type VectorIndex = {
  definition: VectorDefinition;
  insert(rid: number, document: Document): void;
  replace(rid: number, before: Document, next: Document): void;
  remove(rid: number): void;
  /** The nearest documents that the filter lets through, nearest first. Reads all vectors when it is asked first. */
  search(field: VectorField, query: VectorQuery): VectorHit[];
};

type Matrices = { partitions: Map<string, Partition>; partitionOfRid: Map<number, Partition> };

/** Rows with several values at the first filter path: they belong to several tenants, and so to none alone. */
const mixedKey = "mixed";

/**
 * The vectors of a collection in memory, one block for each value of the first filter path (the tenant). Nothing is held
 * until the first search; from then on every write is followed.
 */
export function makeVectorIndex(options: {
  definition: VectorDefinition;
  read: () => Iterable<{ rid: number; bytes: Uint8Array }>;
}): VectorIndex {
  const { definition } = options;
  let loaded: Map<VectorField, Matrices> | undefined;

  const put = (rid: number, document: Document) => {
    for (const [field, matrices] of loaded ?? []) putDocument(definition, field, matrices, rid, document);
  };
  const load = () => {
    loaded = new Map(definition.vectors.map((field) => [field, { partitions: new Map(), partitionOfRid: new Map() }]));
    for (const { rid, bytes } of options.read()) put(rid, decodeDocument(bytes));
    return loaded;
  };
  return {
    definition,
    insert: put,
    replace: (rid, before, next) => {
      if (loaded !== undefined && !hasSameFields(definition, before, next)) put(rid, next);
    },
    remove: (rid) => {
      for (const matrices of loaded?.values() ?? []) drop(matrices, rid);
    },
    search: (field, query) => {
      const matrices = (loaded ?? load()).get(field);
      if (matrices === undefined) return [];
      return searchPartitions(choosePartitions(matrices, definition, query), field, query);
    },
  };
}

function putDocument(
  definition: VectorDefinition,
  field: VectorField,
  matrices: Matrices,
  rid: number,
  document: Document,
): void {
  const vector = toStored(field, fieldAt(document, field.path));
  if (vector === undefined) {
    drop(matrices, rid); // a document without a vector of the right length is not in the index
    return;
  }
  const keys = definition.filterPaths.map((path) => valuesAt(document, path).map(keyOf));
  const first = keys[0];
  const partitionKey = first === undefined ? "" : first.length === 1 ? (first[0] ?? "") : mixedKey;
  const partition = matrices.partitions.get(partitionKey) ?? makePartition(field.dimensions);
  matrices.partitions.set(partitionKey, partition);
  if (matrices.partitionOfRid.get(rid) !== partition) drop(matrices, rid);
  matrices.partitionOfRid.set(rid, partition);
  const groupKey = keys.map((values) => values.join("|")).join("&");
  putRow(partition, rid, { vector, groupKey, values: () => filterValues(definition, document) });
}

function drop(matrices: Matrices, rid: number): void {
  const partition = matrices.partitionOfRid.get(rid);
  if (partition === undefined) return;
  removeRow(partition, rid);
  matrices.partitionOfRid.delete(rid);
  if (partition.count > 0) return;
  for (const [key, other] of matrices.partitions) if (other === partition) matrices.partitions.delete(key);
}

function keyOf(value: unknown): string {
  return encodeValue(value).toString("latin1");
}

function toStored(field: VectorField, value: unknown): Float32Array | undefined {
  const vector = readVector(value);
  if (vector === undefined || vector.length !== field.dimensions) return undefined;
  return field.similarity === "cosine" ? toUnitLength(vector) : vector;
}

/** The value at a dotted path, through documents only: a vector does not stand inside an array. */
function fieldAt(document: Document, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>((value, part) => (isDocument(value) ? getField(value, part) : undefined), document);
}

/** Only what filters may ask for, in the shape of the document. */
function filterValues(definition: VectorDefinition, document: Document): Document {
  const values: Document = {};
  for (const path of definition.filterPaths) {
    const root = path.split(".", 1)[0] ?? path;
    if (Object.hasOwn(document, root)) values[root] = document[root];
  }
  return values;
}

function hasSameFields(definition: VectorDefinition, before: Document, next: Document): boolean {
  return [...definition.filterPaths, ...definition.vectors.map(({ path }) => path)].every((path) => {
    const root = path.split(".", 1)[0] ?? path;
    return before[root] === next[root];
  });
}

function choosePartitions(matrices: Matrices, definition: VectorDefinition, query: VectorQuery): Partition[] {
  const [path] = definition.filterPaths;
  const wanted = path === undefined ? undefined : query.conjunction.paths.get(path)?.equals;
  if (wanted === undefined) return [...matrices.partitions.values()];
  const keys = new Set([...wanted.map(keyOf), mixedKey]);
  return [...keys].flatMap((key) => matrices.partitions.get(key) ?? []);
}
