import { BSON, type Collection, type Document, type Filter } from "mongodb";
import { ofTenant, type TenantDocument } from "./collection.ts";

/**
 * Which page of a list is wanted: at most `limit` records, after the one with the id `cursor`; without it the first page. With
 * `newerThan` it is the page before that id, and the pages that follow it are still newer.
 */
export type PageQuery = { limit: number; cursor?: string | undefined; newerThan?: string | undefined };
/** A page of a list. `nextCursor` is where the next page begins; null on the last page. */
export type Page<T> = { data: T[]; nextCursor: string | null };

/** Most bytes of BSON on a page. A record that is larger by itself is a page of its own. */
const MAX_PAGE_BYTES = 2 << 20;

/**
 * Records that the store reads in one go: a page of the usual 50, and the one that says whether there are more. A longer page
 * takes turns with other calls, since the store reads a record whole, however little of it the list shows.
 */
const BATCH = 51;

type PageRequest<T> = {
  tenantId: string;
  page: PageQuery;
  /** Which of the tenant's records are in the list; default: all. */
  filter?: Filter<T>;
  /** The fields that leave the store, besides the id; default: all. */
  fields?: readonly string[];
};

/** A record as a list shows it: its id and these fields. */
export type Shown<T extends { _id: string }, F extends readonly (keyof T)[]> = Pick<T, "_id" | F[number]>;

/** The driver's form of the fields that leave the store; all when there are none. */
const projectionOf = (fields: readonly string[]) => Object.fromEntries(fields.map((field) => [field, 1] as const));

/** One page of a tenant's records, the newest first. It ends at its limit, or before it would exceed 2 MiB. */
export async function findPage<S extends { _id: string }, T extends TenantDocument>(
  records: Collection<T>,
  { tenantId, page: { limit, cursor, newerThan }, filter, fields = [] }: PageRequest<T>,
): Promise<Page<S>> {
  const isBackwards = newerThan !== undefined;
  const older = cursor === undefined ? {} : { _id: { $lt: cursor } };
  const range = isBackwards ? { _id: { $gt: newerThan } } : older;
  const found = records
    .find(ofTenant(tenantId, { ...filter, ...range }) as Filter<T>) // the driver cannot see that a `T` has these fields
    .project<S>(projectionOf(fields))
    .sort({ _id: isBackwards ? 1 : -1 })
    .limit(limit + 1)
    .batchSize(BATCH);
  const data: S[] = [];
  let nextCursor: string | null = null;
  let bytes = 0;
  for await (const record of found) {
    bytes += BSON.calculateObjectSize(record);
    const last = data.at(-1);
    if (last !== undefined && (data.length === limit || bytes > MAX_PAGE_BYTES)) {
      nextCursor = last._id;
      break;
    }
    data.push(record);
  }
  return { data: isBackwards ? data.reverse() : data, nextCursor };
}

/** The page with each of its records turned into what is shown of it. */
export function mapPage<T, V>({ data, nextCursor }: Page<T>, toView: (record: T) => V): Page<V> {
  return { data: data.map(toView), nextCursor };
}

/** The first `limit` records in the order of the field `by`, of all tenants unless the filter names one. */
export function findFirst<T extends Document, S extends Document = T>(
  records: Collection<T>,
  filter: Filter<T>,
  { by, limit, fields = [] }: { by: string; limit: number; fields?: readonly string[] },
): Promise<S[]> {
  return records.find(filter).project<S>(projectionOf(fields)).sort(by, 1).limit(limit).toArray();
}
