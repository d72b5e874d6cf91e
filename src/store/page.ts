import { BSON, type Collection, type Document, type Filter } from "mongodb";
import { defined } from "../lib/defined.ts";
import { firstIdAt, type IdKind } from "../lib/ids.ts";
import { ofTenant, type TenantOwned } from "./collection.ts";

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

/** Records that a page of a searched list looks at; a page may end there with few items, or none, and a `nextCursor`. */
const MAX_SEARCHED = 5_000;
const SEARCH_BATCH = 500;

type PageRequest<T> = {
  tenantId: string;
  page: PageQuery;
  /** Filter for the tenant's records in the list; default: all. */
  filter?: Filter<T>;
  /** The fields that leave the store, besides the id; default: all. */
  fields?: readonly string[];
  /** Ids below this one are not in the list. */
  since?: string | undefined;
  /** A condition that no index answers. Each record is examined, so the number of examined records also bounds a page. */
  matches?: ((record: T) => boolean) | undefined;
};

/** A span of time: from `from` on, before `to`. */
export type Times = { from?: Date | undefined; to?: Date | undefined };

/** The page of a list whose records were made in a span of time: their ids say when. */
export function inTime(
  kind: IdKind,
  { from, to }: Times,
  page: PageQuery,
): { page: PageQuery; since: string | undefined } {
  const [end, since] = [to, from].map((time) => time && firstIdAt(kind, time));
  const { cursor = end } = page;
  return { page: { ...page, cursor: end !== undefined && cursor !== undefined && end < cursor ? end : cursor }, since };
}

/** Conditions of a list that are all to be true; undefined if there are none. */
export function fitsAll<T>(conditions: readonly (false | undefined | ((record: T) => boolean))[]) {
  const given = conditions.filter((condition) => typeof condition === "function");
  return given.length === 0 ? undefined : (record: T) => given.every((condition) => condition(record));
}

/** Whether one of the texts holds another, whatever the case of its letters. */
export function holdsText(text: string, texts: readonly (string | undefined)[]): boolean {
  const wanted = text.toLowerCase();
  return texts.some((one) => one?.toLowerCase().includes(wanted));
}

/** A record as a list shows it: its id and these fields. */
export type Shown<T extends { _id: string }, F extends readonly (keyof T)[]> = Pick<T, "_id" | F[number]>;

/** The driver's form of the fields that leave the store; all when there are none. */
export const projectionOf = (fields: readonly string[]) =>
  Object.fromEntries(fields.map((field) => [field, 1] as const));

/** One page of a tenant's records, the newest first. It ends at its limit, or before it would exceed 2 MiB. */
export async function findPage<S extends { _id: string }, T extends TenantOwned>(
  records: Collection<T>,
  { tenantId, page: { limit, cursor, newerThan }, filter, fields = [], since, matches }: PageRequest<S & T>,
): Promise<Page<S>> {
  const isBackwards = newerThan !== undefined;
  const between = defined(isBackwards ? { $gt: newerThan } : { $lt: cursor, $gte: since });
  const within = Object.keys(between).length === 0 ? {} : { _id: between };
  const found = records
    .find(ofTenant(tenantId, { ...filter, ...within }) as Filter<T>) // the driver cannot see that a `T` has these fields
    .project<S>(projectionOf(fields))
    .sort({ _id: isBackwards ? 1 : -1 })
    .limit(matches ? MAX_SEARCHED + 1 : limit + 1)
    .batchSize(matches ? SEARCH_BATCH : BATCH);
  const data: S[] = [];
  let nextCursor: string | null = null;
  let bytes = 0;
  let searched = 0;
  let previous = "";
  for await (const record of found) {
    if (searched === MAX_SEARCHED) return { data, nextCursor: previous };
    searched += 1;
    previous = record._id;
    if (matches?.(record as S & T) === false) continue; // the condition uses only fields that are read
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

/** What `findPage` looks for in a list of the records that one key started; undefined without a key. */
export function ofKey<T>(keyId: string | undefined, startedBy: (record: T) => string | undefined) {
  return keyId === undefined ? undefined : (record: T) => startedBy(record) === keyId;
}

/** The ids of the records that a filter finds and that this key has not started. */
export async function foreignAmong<T extends TenantOwned & { keyId?: string }>(
  records: Collection<T>,
  filter: Filter<T>,
  keyId: string,
): Promise<string[]> {
  const found = await records.find(filter).project<{ _id: string; keyId?: string }>({ keyId: 1 }).toArray();
  return found.filter((record) => record.keyId !== keyId).map(({ _id }) => _id);
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

/** The first `limit` records whose time, in the field `by`, has come, but for those of some tenants or owners. */
export function findDue<T extends Document>(
  records: Collection<T>,
  now: Date,
  { by, limit, except }: { by: string; limit: number; except: Readonly<Record<string, readonly string[]>> },
): Promise<T[]> {
  const others = Object.entries(except).map(([field, values]) => [field, { $not: { $in: [...values] } }]);
  const filter: Document = { [by]: { $lte: now }, ...Object.fromEntries(others) };
  return findFirst(records, filter as Filter<T>, { by, limit }); // the driver cannot see that a `T` has these fields
}
