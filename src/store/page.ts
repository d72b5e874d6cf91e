import { BSON, type Collection, type Filter } from "mongodb";
import { ofTenant, type TenantDocument } from "./collection.ts";

/** Which page of a list is wanted: at most `limit` records, after the one with the id `cursor`; without it the first page. */
export type PageQuery = { limit: number; cursor?: string | undefined };
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
  fields?: Record<string, 1>;
};

/**
 * One page of a tenant's records, the newest first. It ends at its limit, or before the record that would take it over
 * 2 MiB.
 */
export async function findPage<S extends { _id: string }, T extends TenantDocument>(
  records: Collection<T>,
  { tenantId, page: { limit, cursor }, filter, fields = {} }: PageRequest<T>,
): Promise<Page<S>> {
  const after = cursor === undefined ? {} : { _id: { $lt: cursor } };
  const found = records
    .find(ofTenant(tenantId, { ...filter, ...after }) as Filter<T>) // the driver cannot tell that a `T` has these fields
    .project<S>(fields)
    .sort({ _id: -1 })
    .limit(limit + 1)
    .batchSize(BATCH);
  const data: S[] = [];
  let bytes = 0;
  for await (const record of found) {
    bytes += BSON.calculateObjectSize(record);
    const last = data.at(-1);
    if (last !== undefined && (data.length === limit || bytes > MAX_PAGE_BYTES)) return { data, nextCursor: last._id };
    data.push(record);
  }
  return { data, nextCursor: null };
}

/** The page with each of its records turned into what is shown of it. */
export function mapPage<T, V>({ data, nextCursor }: Page<T>, toView: (record: T) => V): Page<V> {
  return { data: data.map(toView), nextCursor };
}
