import type { Collection } from "mongodb";
import { ofTenant, type TenantOwned } from "./collection.ts";
import { nextLookForStrays, notRefused } from "./document-changes.ts";
import { documentCollection } from "./document-record.ts";
import type { DocumentState } from "./document-state.ts";
import { changeOne, updateIf } from "./writes.ts";

/** The fields of a document that a move to another space reads. */
type InSpace = TenantOwned & {
  vectorSpace?: string;
  status: DocumentState;
  version: number;
  lastVersion: number;
  chunks: number;
  jobId: string;
  refused?: number[];
  straysAt?: Date;
};

/**
 * What gives the spaces that a tenant's documents are in, at most `limit`. Each costs one look into an index: MongoDB makes a
 * DISTINCT_SCAN of a `$group` without accumulators.
 */
const spacesPipeline = (tenantId: string, limit: number) => [
  { $match: ofTenant(tenantId, { vectorSpace: { $gt: "" } }) },
  { $group: { _id: "$vectorSpace" } },
  { $limit: limit },
];

/** The stage that adds these spaces behind what another collection's pipeline gives. */
export const spacesStage = (tenantId: string, limit: number) => ({
  $unionWith: { coll: documentCollection.name, pipeline: spacesPipeline(tenantId, limit) },
});

/** Queries about documents by the space of their vectors. */
export function makeSpaceQueries<T extends InSpace>(collection: Collection<T>) {
  const documents = collection as unknown as Collection<InSpace>; // the driver's types cannot follow a generic record
  const asRead = (tenantId: string, { _id, version, jobId }: InSpace) =>
    ofTenant(tenantId, { _id, status: "indexed" as const, version, jobId });
  return {
    /** The spaces that a tenant's documents are in, at most `limit`. */
    async spaces(tenantId: string, limit: number): Promise<string[]> {
      const found = await documents.aggregate<{ _id: string }>(spacesPipeline(tenantId, limit)).toArray();
      return found.map(({ _id }) => _id);
    },
    /** How many documents are in a space. */
    countInSpace: (tenantId: string, vectorSpace: string) =>
      documents.countDocuments(ofTenant(tenantId, { vectorSpace })),
    /** Ids of documents in a space, in their order, after one of them. */
    async idsInSpace(tenantId: string, { space, after, limit }: { space: string; after: string; limit: number }) {
      const filter = ofTenant(tenantId, { vectorSpace: space, _id: { $gt: after } });
      const found = documents.find(filter).project<{ _id: string }>({ _id: 1 }).sort({ _id: 1 }).limit(limit);
      return (await found.toArray()).map(({ _id }) => _id);
    },
    /**
     * Starts a version of an indexed document with other vectors. Its number, `lastVersion`, belongs to this attempt alone.
     * Returns null if the document has changed since it was read.
     */
    beginMove: (tenantId: string, read: InSpace) =>
      changeOne(documents, asRead(tenantId, read), { $inc: { lastVersion: 1 }, $set: nextLookForStrays() }),
    /** Moves the document to that version, unless it was refused, under the same condition. Otherwise returns false and changes nothing. */
    finishMove(tenantId: string, begun: InSpace, vectorSpace: string) {
      const { lastVersion: version } = begun;
      const filter = { ...asRead(tenantId, begun), ...notRefused(version) };
      return updateIf(documents, filter, { $set: { version, vectorSpace } });
    },
  };
}
