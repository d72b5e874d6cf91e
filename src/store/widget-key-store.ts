import type { Db } from "mongodb";
import { defineCollection, ofTenant } from "./collection.ts";
import { type KeyRecord, keyIndexes, makeHashLookup } from "./key-store.ts";
import { findPage, type Page, type PageQuery, type Shown } from "./page.ts";
import { makeRecords } from "./records.ts";

/** A publishable key. */
export type WidgetKeyRecord = KeyRecord & {
  /** The agent that it is limited to. */
  agentId?: string;
  /** Origins whose pages may use it; absent: any. */
  allowedOrigins?: string[];
  /** Models that its visitors may choose, the first by default; absent: any. */
  models?: string[];
  /** Cap on the tokens of one response, below the one of all widget keys. */
  maxTokens?: number;
  /** The collections that it is limited to: those that it was given, else those of the key that made it. */
  collections?: readonly string[];
  /** Set if it answers from documents: by its agent's search, or by a question to its collections. Earlier releases' never do. */
  searches?: true;
  /** Origins of sources that its answers may link to; absent: none. */
  linkOrigins?: string[];
  /** What it may spend in a month. */
  monthlyBudgetUsd?: number;
  /** The subject of the key that made it. */
  createdBy: string;
  /** When the key that created it expires, if it does. */
  expiresAt?: Date;
};

const shown = [
  "preview",
  "agentId",
  "allowedOrigins",
  "models",
  "maxTokens",
  "collections",
  "searches",
  "linkOrigins",
  "monthlyBudgetUsd",
  "createdAt",
  "expiresAt",
] as const;

/** What admins see of a key: not its hash. */
export type ShownWidgetKey = Shown<WidgetKeyRecord, typeof shown>;

export const widgetKeyCollection = defineCollection<WidgetKeyRecord>({ name: "widgetKeys", indexes: keyIndexes });

/** A choice among a tenant's widget keys: those with all of these values. `agentId: null` means keys without an agent. */
export type WidgetKeyChoice = { _id?: string; hash?: string; preview?: string; agentId?: string | null };

/** Keys that one choice finds. */
const MAX_FOUND = 1_000;

export function makeWidgetKeyStore(db: Db) {
  const keys = db.collection<WidgetKeyRecord>(widgetKeyCollection.name);
  const { insert, count } = makeRecords(keys);
  return {
    insert,
    count,
    findByHashes: makeHashLookup(keys),
    list: (tenantId: string, page: PageQuery): Promise<Page<ShownWidgetKey>> =>
      findPage(keys, { tenantId, page, fields: shown }),
    /** The keys that are meant, at most 1,000. */
    find(tenantId: string, { agentId, ...choice }: WidgetKeyChoice) {
      const scope = agentId === null ? { agentId: { $exists: false } } : agentId === undefined ? {} : { agentId };
      const found = keys.find(ofTenant(tenantId, { ...choice, ...scope })).limit(MAX_FOUND);
      return found.project<Pick<WidgetKeyRecord, "_id" | "preview">>({ preview: 1 }).toArray();
    },
    async remove(tenantId: string, ids: string[]): Promise<void> {
      await keys.deleteMany(ofTenant(tenantId, { _id: { $in: ids } }));
    },
  };
}
