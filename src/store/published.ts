import type { Collection, Filter } from "mongodb";
import { ofTenant, type TenantDocument } from "./collection.ts";
import { findPage } from "./page.ts";

/**
 * What a tenant has published of a collection, as tools: `name` is the field of a tool's name, `fields` are those that `toTool`
 * reads. Of two with one name, made at the same time, the newer counts.
 */
export function makePublished<T extends TenantDocument, S extends { _id: string }, P>(
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
    /** The newest first. */
    listPublished: (tenantId: string, limit: number) => find(tenantId, published, limit),
    findPublished: async (tenantId: string, tool: string): Promise<P | null> =>
      (await find(tenantId, { [name]: tool } as Filter<T>, 1))[0] ?? null,
    countPublished: (tenantId: string, limit: number) =>
      records.countDocuments(ofTenant(tenantId, published) as Filter<T>, { limit }),
  };
}
