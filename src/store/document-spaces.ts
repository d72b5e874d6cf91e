import type { Collection } from "mongodb";
import { ofTenant, type TenantDocument } from "./collection.ts";
import { toSpaceKey, type VectorSpace } from "./vector-space.ts";

type InSpace = TenantDocument & { vectorSpace?: string };

/** What is asked of documents by the space of their vectors. */
export function makeSpaceQueries<T extends InSpace>(collection: Collection<T>) {
  const documents = collection as unknown as Collection<InSpace>; // the driver's types cannot follow a generic record
  /** The first or last space of a tenant in the order of the index: one look into it, however many documents there are. */
  const end = async (tenantId: string, { after = "", direction }: { after?: string; direction: 1 | -1 }) => {
    const filter = ofTenant(tenantId, { vectorSpace: { $gt: after } });
    const found = await documents.findOne(filter, {
      sort: { vectorSpace: direction },
      projection: { vectorSpace: 1 },
    });
    return found?.vectorSpace;
  };
  return {
    /** The spaces that a tenant's documents are in, at most `limit`, in the order of their keys. */
    async spaces(tenantId: string, limit: number): Promise<string[]> {
      const [first, last] = await Promise.all([end(tenantId, { direction: 1 }), end(tenantId, { direction: -1 })]);
      const found = first === undefined ? [] : [first];
      for (let next = first; next !== undefined && next !== last && found.length < limit; ) {
        next = await end(tenantId, { after: next, direction: 1 });
        if (next !== undefined) found.push(next);
      }
      return found;
    },
    /** How many documents are in a space. */
    countInSpace: (tenantId: string, space: VectorSpace) =>
      documents.countDocuments(ofTenant(tenantId, { vectorSpace: toSpaceKey(space) })),
  };
}
