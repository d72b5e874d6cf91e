import type { Db } from "mongodb";
import { defined } from "../lib/defined.ts";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";

/** Passages that an answer cites, without their words where the tenant keeps no texts. */
type CitedPassage = { documentId: string; chunkId: string; title?: string; quote?: string };

/** An answer from documents, for those who rate it; and how it was rated. Its id is that of the call's log. */
export type AnswerRecord = TenantOwned & {
  keyId: string;
  /** Absent if the tenant keeps no texts of calls, unless the feedback has brought it. */
  question?: string;
  /** The end of the conversation before it. */
  history?: { role: "user" | "assistant"; content: string }[];
  answer?: string;
  citations: CitedPassage[];
  found: boolean;
  coverage: number;
  model: string | null;
  createdAt: Date;
  /** When it is removed; absent: never. */
  expireAt?: Date;
  thumb?: "up" | "down";
  comment?: string;
  /** Who rated it, as the key names them. */
  ratedBy?: string;
  ratedAt?: Date;
};

export const answerCollection = defineCollection<AnswerRecord>({
  name: "answers",
  indexes: [
    { key: { tenantId: 1, _id: -1 }, name: "newest" },
    { key: { tenantId: 1, _id: -1 }, name: "rated", partialFilterExpression: { thumb: { $exists: true } } },
    { key: { expireAt: 1 }, name: "expire", expireAfterSeconds: 0 },
  ],
});

type Rating = Required<Pick<AnswerRecord, "thumb" | "ratedBy" | "ratedAt">> &
  Pick<AnswerRecord, "comment" | "question" | "expireAt">;

/** Which rated answers are meant; with a `keyId`, those that this key asked for. */
type RatedFilter = { [K in "thumb" | "found" | "model" | "keyId"]?: AnswerRecord[K] | undefined };

export function makeAnswerStore(db: Db) {
  const answers = db.collection<AnswerRecord>(answerCollection.name);
  const isRated = { thumb: { $exists: true } };
  return {
    insert: async (record: AnswerRecord): Promise<void> => void (await answers.insertOne(record)),
    get: (tenantId: string, id: string): Promise<AnswerRecord | null> =>
      answers.findOne(ofTenant(tenantId, { _id: id })),
    /** Sets or replaces a rating; null when the answer is gone. */
    rate: (tenantId: string, id: string, { comment, expireAt, ...rating }: Rating): Promise<AnswerRecord | null> => {
      const set = { ...rating, ...defined({ comment, expireAt }) };
      const unset = { ...(comment ? {} : { comment: "" as const }), ...(expireAt ? {} : { expireAt: "" as const }) };
      const change = { $set: set, ...(Object.keys(unset).length > 0 ? { $unset: unset } : {}) };
      return answers.findOneAndUpdate(ofTenant(tenantId, { _id: id }), change, { returnDocument: "after" });
    },
    /** Those that are rated, the newest first. */
    listRated: (tenantId: string, { limit, cursor, ...filter }: PageQuery & RatedFilter): Promise<Page<AnswerRecord>> =>
      findPage(answers, { tenantId, page: { limit, cursor }, filter: { ...isRated, ...defined(filter) } }),
    /** Keeps the newest answers without a rating, up to a number. */
    async removeUnrated(tenantId: string, kept: number): Promise<void> {
      const unrated = ofTenant(tenantId, { thumb: { $exists: false } });
      const newest = answers.find(unrated).project<{ _id: string }>({ _id: 1 }).sort({ _id: -1 });
      const ids = await newest.limit(kept + 1).toArray();
      const first = ids[kept];
      if (first) await answers.deleteMany({ ...unrated, _id: { $lte: first._id } });
    },
    countRated: (tenantId: string, limit: number): Promise<number> =>
      answers.countDocuments({ ...ofTenant(tenantId), ...isRated }, { limit: limit + 1 }),
  };
}
