import { type Document, getField } from "../bson/bson-types.ts";
import { keyOf } from "../bson/index-keys.ts";
import { valuesAt } from "../bson/path-values.ts";
import { readConjunction } from "../query/predicates.ts";
import type { FollowingIndex, Row } from "../storage/storage.ts";
import { readVector, type VectorDefinition } from "./definitions.ts";
import { addRow, makePartition, type Partition, removeRow, toUnitLength, type VectorRow } from "./partition.ts";
import { searchPartitions, type VectorQuery } from "./vector-search.ts";

export type VectorIndex = ReturnType<typeof makeVectorIndex>;

type Matrices = { definition: VectorDefinition; partitions: Map<string, Partition>; rows: Map<number, VectorRow> };

/** Rows with several values at the first filter path: they belong to several tenants, and so to none alone. */
const mixedKey = "mixed";
/** Rows that are read at a time while the server serves others: some 20 ms of work. */
const rowsAtATime = 1_000;

/**
 * The vectors of a collection in memory, one block for each value of the first filter path (the tenant). They are read
 * bit by bit after the start, or at once by the first search; writes to what is read already are followed.
 * `read` answers the next rows after one, in ascending order.
 */
export function makeVectorIndex(
  definition: VectorDefinition,
  read: (afterRid: number, count: number) => readonly Row[],
) {
  const paths = [...definition.filterPaths, definition.path];
  const matrices: Matrices = { definition, partitions: new Map(), rows: new Map() };
  let readTo = 0; // the last row that is read; Infinity when all are

  /** Reads some more of the collection, and says whether all is read. */
  const readMore = () => {
    if (readTo === Number.POSITIVE_INFINITY) return true;
    const rows = read(readTo, rowsAtATime);
    for (const { rid, document } of rows) put(matrices, rid, document());
    readTo = rows.length < rowsAtATime ? Number.POSITIVE_INFINITY : (rows.at(-1)?.rid ?? readTo);
    return readTo === Number.POSITIVE_INFINITY;
  };
  const files: FollowingIndex = {
    insert: (rid, document) => {
      if (rid <= readTo) put(matrices, rid, document);
    },
    replace: (rid, before, next) => {
      if (rid <= readTo && paths.some((path) => before[path] !== next[path])) put(matrices, rid, next);
    },
    remove: (rid) => drop(matrices, rid),
  };
  return {
    ...files,
    definition,
    readMore,
    /** The nearest documents that match the filter, nearest first. Reads the rest of the collection before. */
    search: (query: VectorQuery) => {
      while (!readMore());
      return searchPartitions(choosePartitions(matrices, query.filter), query);
    },
  };
}

/** Files the document's vector. One without a vector of the right length, or of no direction, is not in the index. */
function put(matrices: Matrices, rid: number, document: Document): void {
  const { definition, partitions, rows } = matrices;
  drop(matrices, rid);
  const given = readVector(getField(document, definition.path));
  const vector = given?.length === definition.dimensions ? toUnitLength(given) : undefined;
  if (vector === undefined) return;
  const keys = definition.filterPaths.map((path) => valuesAt(document, path).map(keyOf));
  const [[first = "", ...others] = []] = keys;
  const partitionKey = others.length === 0 ? first : mixedKey;
  const partition = partitions.get(partitionKey) ?? makePartition(partitionKey, definition.dimensions);
  partitions.set(partitionKey, partition);
  const there = definition.filterPaths.filter((path) => Object.hasOwn(document, path));
  const values = Object.fromEntries(there.map((path) => [path, document[path]])); // only what filters may ask for
  const key = keys.map((ofPath) => ofPath.join("|")).join("&");
  rows.set(rid, addRow(partition, { rid, vector, key, values }));
}

function drop({ partitions, rows }: Matrices, rid: number): void {
  const row = rows.get(rid);
  if (row === undefined) return;
  removeRow(row);
  rows.delete(rid);
  if (row.partition.rows.length === 0) partitions.delete(row.partition.key);
}

/** Those of the tenants that the filter names, else all. */
function choosePartitions({ definition, partitions }: Matrices, filter: Document): Partition[] {
  const [path = ""] = definition.filterPaths;
  const wanted = readConjunction(filter).paths.get(path)?.equals;
  if (wanted === undefined) return [...partitions.values()];
  const keys = new Set([...wanted.map(keyOf), mixedKey]);
  return [...keys].flatMap((key) => partitions.get(key) ?? []);
}
