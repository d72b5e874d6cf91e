import { decodeDocument } from "../bson/bson-reader.ts";
import { type Document, getField } from "../bson/bson-types.ts";
import { keyOf } from "../bson/index-keys.ts";
import { valuesAt } from "../bson/path-values.ts";
import { readVector, type VectorDefinition } from "./vector-definition.ts";
import { makePartition, type Partition, putRow, removeRow } from "./vector-matrix.ts";
import { toUnitLength } from "./vector-scan.ts";
import { searchPartitions, type VectorHit, type VectorQuery } from "./vector-search.ts";

export type VectorIndex = {
  definition: VectorDefinition;
  insert(rid: number, document: Document): void;
  replace(rid: number, before: Document, next: Document): void;
  remove(rid: number, document: Document): void;
  /** The nearest documents that match the filter, nearest first. Reads the rest of the collection before. */
  search(query: VectorQuery): VectorHit[];
  /** Reads some more of the collection, and says whether all is read. */
  readMore(): boolean;
};

type Matrices = { partitions: Map<string, Partition>; partitionOfRid: Map<number, Partition> };
type StoredRow = { rid: number; bytes: Uint8Array };

/** Rows with several values at the first filter path: they belong to several tenants, and so to none alone. */
const mixedKey = "mixed";
/** So many rows are read at a time while the server serves others, some 20 ms of work. */
const rowsAtATime = 1_000;

/**
 * The vectors of a collection in memory, one block for each value of the first filter path (the tenant). They are read
 * bit by bit after the start, or at once by the first search; writes to what is read already are followed.
 */
export function makeVectorIndex(options: {
  definition: VectorDefinition;
  /** The next rows after one, in ascending order. */
  read: (afterRid: number, count: number) => StoredRow[];
}): VectorIndex {
  const { definition } = options;
  const paths = [...definition.filterPaths, definition.path];
  const matrices: Matrices = { partitions: new Map(), partitionOfRid: new Map() };
  let readTo = 0; // the last row that is read; Infinity when all are

  const put = (rid: number, document: Document) => putDocument(definition, matrices, rid, document);
  const readMore = () => {
    if (readTo === Number.POSITIVE_INFINITY) return true;
    const rows = options.read(readTo, rowsAtATime);
    for (const { rid, bytes } of rows) put(rid, decodeDocument(bytes));
    readTo = rows.length < rowsAtATime ? Number.POSITIVE_INFINITY : (rows.at(-1)?.rid ?? readTo);
    return readTo === Number.POSITIVE_INFINITY;
  };
  return {
    definition,
    insert: (rid, document) => {
      if (rid <= readTo) put(rid, document);
    },
    replace: (rid, before, next) => {
      if (rid <= readTo && paths.some((path) => before[path] !== next[path])) put(rid, next);
    },
    remove: (rid) => drop(matrices, rid),
    search: (query) => {
      while (!readMore());
      return searchPartitions(choosePartitions(matrices, definition, query), query);
    },
    readMore,
  };
}

function putDocument(definition: VectorDefinition, matrices: Matrices, rid: number, document: Document): void {
  const vector = toStored(definition, getField(document, definition.path));
  if (vector === undefined) {
    drop(matrices, rid); // a document without a vector of the right length is not in the index
    return;
  }
  const keys = definition.filterPaths.map((path) => valuesAt(document, path).map(keyOf));
  const first = keys[0];
  const partitionKey = first === undefined ? "" : first.length === 1 ? (first[0] ?? "") : mixedKey;
  const partition = matrices.partitions.get(partitionKey) ?? makePartition(definition.dimensions);
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

function toStored({ dimensions }: VectorDefinition, value: unknown): Float32Array | undefined {
  const vector = readVector(value);
  if (vector === undefined || vector.length !== dimensions) return undefined;
  return toUnitLength(vector);
}

/** Only what filters may ask for. */
function filterValues({ filterPaths }: VectorDefinition, document: Document): Document {
  const there = filterPaths.filter((path) => Object.hasOwn(document, path));
  return Object.fromEntries(there.map((path) => [path, document[path]]));
}

function choosePartitions(matrices: Matrices, definition: VectorDefinition, query: VectorQuery): Partition[] {
  const [path] = definition.filterPaths;
  const wanted = path === undefined ? undefined : query.conjunction.paths.get(path)?.equals;
  if (wanted === undefined) return [...matrices.partitions.values()];
  const keys = new Set([...wanted.map(keyOf), mixedKey]);
  return [...keys].flatMap((key) => matrices.partitions.get(key) ?? []);
}
