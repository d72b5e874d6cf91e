import { BSON, type Collection, type Filter } from "mongodb";
import { ofTenant, type TenantOwned } from "./collection.ts";
import { findPage, projectionOf } from "./page.ts";

/** Which tools are wanted: those after a name, at most `limit`, and none after the one with which they have more than `maxBytes`. */
export type PageOfPublished = { after: string; limit: number; maxBytes: number };
/** A page of tools. `end`: the name after which there are more; null on the last page. */
export type Published<P> = { tools: P[]; end: string | null };

/** Tools that one read brings. Each may have 32 KiB: a page of 256 KiB is full of them, and one shows that there are more. */
const BATCH = 10;

/**
 * What a tenant has published of a collection, as tools: `name` is the field of a tool's name, `fields` are those that `toTool`
 * reads. Of two with one name, made at the same time, the newer counts.
 */
export function makePublished<T extends TenantOwned, S extends { _id: string }, P extends { name: string }>(
  records: Collection<T>,
  { name, fields }: { name: string; fields: readonly string[] },
  toTool: (record: S) => P[],
) {
  const published = { [name]: { $gt: "" } } as Filter<T>; // the driver cannot see that a `T` has this field
  const find = async (tenantId: string, filter: Filter<T>, limit: number): Promise<P[]> => {
    const tools: P[] = [];
    let cursor: string | undefined;
    do {
      const page = { limit: limit - tools.length, cursor };
      const about = { tenantId, page, filter: filter as Filter<S & T>, fields }; // no field of the filter is in `S` alone
      const { data, nextCursor } = await findPage<S, T>(records, about);
      tools.push(...data.flatMap(toTool));
      cursor = nextCursor ?? undefined;
    } while (cursor !== undefined && tools.length < limit);
    return tools;
  };
  return {
    /** Those after a name, in the order of names: `limit` of them, or fewer with some `maxBytes` in all. */
    async listPublished(tenantId: string, { after, limit, maxBytes }: PageOfPublished): Promise<Published<P>> {
      const found = records
        .find(ofTenant(tenantId, { [name]: { $gt: after } }) as Filter<T>)
        .project<S>(projectionOf(fields))
        .sort({ [name]: 1 }) // as the index has it: with another field, all of them would be read and sorted for a page
        .limit(limit + 1)
        .batchSize(BATCH);
      const tools: P[] = [];
      let bytes = 0;
      for await (const record of found) {
        const last = tools.at(-1);
        if (last !== undefined && (tools.length === limit || bytes > maxBytes)) return { tools, end: last.name };
        tools.push(...toTool(record));
        bytes += BSON.calculateObjectSize(record);
      }
      return { tools, end: null };
    },
    findPublished: async (tenantId: string, tool: string): Promise<P | null> =>
      (await find(tenantId, { [name]: tool } as Filter<T>, 1))[0] ?? null,
    countPublished: (tenantId: string, limit: number) =>
      records.countDocuments(ofTenant(tenantId, published) as Filter<T>, { limit }),
  };
}
