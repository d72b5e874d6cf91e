import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantDocument } from "./collection.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";

/** A publishable key as it is stored: never the key, only its hash and a preview to tell it by. */
export type WidgetKeyDocument = TenantDocument & {
  /** SHA-256 of the key, in hex. */
  hash: string;
  /** As `pk_abcd…wxyz`. */
  preview: string;
  /** The agent that it is limited to. */
  agentId?: string;
  /** Origins whose pages may use it; absent: any. */
  allowedOrigins?: string[];
  /** The subject of the key that made it. */
  createdBy: string;
  createdAt: Date;
};

/** What admins see of a key: not its hash. */
export type ShownWidgetKey = Pick<WidgetKeyDocument, "_id" | "preview" | "agentId" | "allowedOrigins" | "createdAt">;

const shownFields = { preview: 1, agentId: 1, allowedOrigins: 1, createdAt: 1 } as const;

export const widgetKeyCollection = defineCollection<WidgetKeyDocument>({
  name: "widgetKeys",
  indexes: [
    { name: "hash", key: { hash: 1 }, unique: true },
    { name: "tenant", key: { tenantId: 1, _id: -1 } },
  ],
});

/** Which of a tenant's widget keys are meant. */
export type WidgetKeyChoice = { hash: string } | { preview: string } | { agentId: string } | { isUnscoped: true };

export type WidgetKeyStore = {
  insert(key: WidgetKeyDocument): Promise<void>;
  /** By hash, over all tenants: this is how a caller's tenant is found. */
  findByHash(hash: string): Promise<WidgetKeyDocument | null>;
  list(tenantId: string, page: PageQuery): Promise<Page<ShownWidgetKey>>;
  /** Removes the keys that are meant; their ids. */
  remove(tenantId: string, choice: WidgetKeyChoice): Promise<string[]>;
};

/** Keys that one call removes. */
const REMOVED = 1_000;

export function makeWidgetKeyStore(db: Db): WidgetKeyStore {
  const keys = db.collection<WidgetKeyDocument>(widgetKeyCollection.name);
  return {
    insert: async (key) => void (await keys.insertOne(key)),
    findByHash: (hash) => keys.findOne({ hash }),
    list: (tenantId, page) => findPage(keys, { tenantId, page, fields: shownFields }),
    async remove(tenantId, choice) {
      const filter = "isUnscoped" in choice ? { agentId: { $exists: false } } : choice;
      const found = await keys
        .find(ofTenant(tenantId, filter), { projection: { _id: 1 } })
        .limit(REMOVED)
        .toArray();
      const ids = found.map(({ _id }) => _id);
      await keys.deleteMany(ofTenant(tenantId, { _id: { $in: ids } }));
      return ids;
    },
  };
}
