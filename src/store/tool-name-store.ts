import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { findPage } from "./page.ts";
import { makeRecords } from "./records.ts";
import { updateIf } from "./writes.ts";

/** Which definition of a tenant has the name of a tool. Its id holds the name, so that a tenant has each name once. */
type ToolNameRecord = TenantOwned & { name: string; ownerId: string; claimedAt: Date };

export const toolNameCollection = defineCollection<ToolNameRecord>({
  name: "toolNames",
  indexes: [{ key: { tenantId: 1, _id: -1 }, name: "tenant_newest" }],
});

const idOf = (tenantId: string, name: string) => `${tenantId}:${name}`;

export function makeToolNameStore(db: Db) {
  const names = db.collection<ToolNameRecord>(toolNameCollection.name);
  const { ensure, count } = makeRecords<ToolNameRecord>(names);
  const release = async (tenantId: string, { name, ownerId }: { name: string; ownerId: string }) =>
    void (await names.deleteOne(ofTenant(tenantId, { _id: idOf(tenantId, name), ownerId })));
  return {
    count,
    /** Gives a free name to a definition. Returns the definition that has the name afterwards. */
    claim: (
      tenantId: string,
      { name, ownerId, claimedAt = new Date() }: { name: string; ownerId: string; claimedAt?: Date },
    ): Promise<ToolNameRecord> => ensure({ _id: idOf(tenantId, name), tenantId, name, ownerId, claimedAt }),
    /** Takes a name from the definition that has held it since then. Returns false if another caller was faster. */
    takeOver: ({ tenantId, _id, ownerId, claimedAt }: ToolNameRecord, newOwnerId: string): Promise<boolean> =>
      updateIf(names, ofTenant(tenantId, { _id, ownerId, claimedAt }), {
        $set: { ownerId: newOwnerId, claimedAt: new Date() },
      }),
    /** Gives up a name, if the definition has it. */
    release,
    list: async (tenantId: string, limit: number): Promise<ToolNameRecord[]> =>
      (await findPage<ToolNameRecord, ToolNameRecord>(names, { tenantId, page: { limit } })).data,
  };
}
