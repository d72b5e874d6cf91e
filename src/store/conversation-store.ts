import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Collection, Db } from "mongodb";
import { AppError } from "../lib/errors.ts";
import { jittered } from "../lib/jitter.ts";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { foreignAmong } from "./page.ts";
import { makeRecords } from "./records.ts";
import { isStoreUnavailable, isWaitOver } from "./store-errors.ts";
import type { UseStore } from "./use-store.ts";
import { changeOne } from "./writes.ts";

/** An item of a conversation; its text is JSON, which may have any fields. */
export type ConversationItem = { id: string; text: string };

/** A conversation of the Responses API: items that responses continue. */
export type ConversationRecord = TenantOwned & {
  /** The key that made it. */
  keyId?: string;
  metadata: Record<string, string>;
  items: ConversationItem[];
  /** Bytes of the texts of its items. */
  bytes: number;
  /** 1 at first, one more at each change. */
  version: number;
  /** Of the last change, by which the call that made it knows it again. */
  changeId?: string;
  createdAt: Date;
  /** When the store forgets it, unless it is changed before. */
  expireAt: Date;
};

export const conversationCollection = defineCollection<ConversationRecord>({
  name: "conversations",
  indexes: [{ key: { expireAt: 1 }, name: "expire", expireAfterSeconds: 0 }],
});

/** What the store needs for a record beside its texts, in bytes, and for each item. */
const BYTES_BESIDE_TEXTS = 512;
const BYTES_BESIDE_ITEM = 64;
/** Attempts to change a conversation that others change at the same time, and the longest wait before a further one, in ms. */
const MAX_TRIES = 8;
const RETRY_MS = 40;

/** The bytes by which a conversation counts. */
const bytesOf = ({ bytes, items }: Pick<ConversationRecord, "bytes" | "items">) =>
  BYTES_BESIDE_TEXTS + bytes + items.length * BYTES_BESIDE_ITEM;

/** The bytes of the texts of items. */
export const sumTexts = (items: readonly ConversationItem[]): number =>
  items.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);

export type ConversationStore = ReturnType<typeof makeConversationStore>;

export function makeConversationStore(db: Db, use: Pick<UseStore, "add">) {
  const conversations: Collection<ConversationRecord> = db.collection(conversationCollection.name);
  const { get, insert, remove } = makeRecords(conversations);
  const count = ({ tenantId, expireAt: expiresAt }: ConversationRecord, bytes: number) =>
    use.add({ tenantId, kind: "sources", bytes, expiresAt });
  return {
    get,
    /** As `foreignTo` of responses. */
    foreignTo: async (tenantId: string, keyId: string, ids: readonly string[]): Promise<string[]> =>
      foreignAmong(conversations, ofTenant(tenantId, { _id: { $in: [...ids] } }), keyId),
    /** The size of a conversation; null when it is not there. */
    about: (tenantId: string, id: string) =>
      conversations.findOne<Pick<ConversationRecord, "_id" | "bytes">>(ofTenant(tenantId, { _id: id }), {
        projection: { bytes: 1 },
      }),
    /** Adds a conversation, whose bytes count as stored until it expires. */
    async insert(record: ConversationRecord): Promise<void> {
      await insert(record);
      await count(record, bytesOf(record));
    },
    /**
     * Puts what `change` makes of a conversation in its place, and returns it; null when it is not there. Others may change it
     * at the same time: then `change` is asked again. A change that was made, and whose answer was lost, is found.
     * @throws AppError `unavailable` when they do so all the time; what `change` throws.
     */
    async change(
      { tenantId, id, expireAt }: { tenantId: string; id: string; expireAt: Date },
      change: (record: ConversationRecord) => Partial<Pick<ConversationRecord, "items" | "metadata">>,
    ): Promise<ConversationRecord | null> {
      const changeId = randomUUID();
      const counted = async (from: ConversationRecord, to: ConversationRecord) => {
        await count(from, -bytesOf(from));
        await count(to, bytesOf(to));
        return to;
      };
      let asked: ConversationRecord | undefined;
      for (let attempt = 1; attempt <= MAX_TRIES; attempt += 1) {
        const record = await get(tenantId, id);
        if (record === null) return null;
        if (asked && record.changeId === changeId) return counted(asked, record);
        asked = record;
        const changed = change(record);
        const bytes = changed.items === undefined ? record.bytes : sumTexts(changed.items);
        const $set = { ...changed, bytes, expireAt, version: record.version + 1, changeId };
        const unchanged = ofTenant(tenantId, { _id: id, version: record.version });
        const changing = changeOne(conversations, unchanged, { $set });
        const next = await changing.catch((error: unknown) => {
          if (!isStoreUnavailable(error) || isWaitOver(error) || attempt === MAX_TRIES) throw error;
          return null; // it may have been made
        });
        if (next !== null) return counted(record, next);
        await delay(jittered(RETRY_MS * attempt));
      }
      throw new AppError("unavailable", "The conversation is changed by too many calls at once.", { retryable: true });
    },
    /** Returns false if it did not exist. */
    async remove(tenantId: string, id: string): Promise<boolean> {
      const record = await get(tenantId, id);
      const isRemoved = record !== null && (await remove(tenantId, id));
      if (isRemoved) await count(record, -bytesOf(record));
      return isRemoved;
    },
  };
}
