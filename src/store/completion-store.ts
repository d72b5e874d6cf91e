import { type Db, MongoBulkWriteError } from "mongodb";
import type { ErrorView } from "../errors.ts";
import { firstIdAt } from "../ids.ts";
import { defineCollection } from "./collection.ts";
import { findPage, type Page, type PageQuery, type Shown } from "./page.ts";
import { makeRecords } from "./records.ts";
import { DUPLICATE_KEY, runWrite } from "./writes.ts";

/** The log record of one model call of any surface, however it ended. Never changed after it was written. */
export type CompletionDocument = {
  /** The log id, as `log_…`. */
  _id: string;
  tenantId: string;
  keyId: string;
  surface: string;
  /** Whom it was made for, where the caller says so. */
  endUser?: string;
  kind: "chat" | "embedding" | "rerank";
  requestedModel: string;
  model: string;
  provider: string;
  isStreamed: boolean;
  /** `aborted`: the caller disconnected; `failed`: the provider did not answer, perhaps after a part. */
  outcome: "completed" | "aborted" | "failed";
  finishReason?: string;
  error?: ErrorView;
  inputTokens: number;
  outputTokens: number;
  /** Who counted the tokens. */
  usageSource: "provider" | "estimate";
  /** In billionths of a US dollar, so that sums are exact. */
  costNanoUsd: number;
  isCached: boolean;
  /** Answered by a batch, at half the price. */
  isBatched?: true;
  /** Calls to the provider that were made for it, retries included. */
  attempts: number;
  firstTokenMs?: number;
  durationMs: number;
  createdAt: Date;
  /** Kept only where the operator wants the texts of chats kept. */
  content?: { messages: unknown[]; text: string };
};

export const completionsCollection = defineCollection<CompletionDocument>({
  name: "completions",
  indexes: [
    { key: { tenantId: 1, _id: -1 }, name: "failed_newest", partialFilterExpression: { outcome: "failed" } },
    { key: { tenantId: 1, _id: -1 }, name: "tenant_newest" },
  ],
});

const shown = [
  "keyId",
  "surface",
  "endUser",
  "kind",
  "requestedModel",
  "model",
  "provider",
  "isStreamed",
  "outcome",
  "finishReason",
  "error",
  "inputTokens",
  "outputTokens",
  "usageSource",
  "costNanoUsd",
  "isCached",
  "isBatched",
  "attempts",
  "firstTokenMs",
  "durationMs",
  "createdAt",
] as const;

/** What a list shows of a call: not its texts. */
export type ShownCompletion = Shown<CompletionDocument, typeof shown>;

/** Which calls are meant: those that have all of these, begun between two times. */
export type CompletionFilter = Partial<Pick<CompletionDocument, (typeof filtered)[number]>> & {
  from?: Date;
  to?: Date;
};
const filtered = ["keyId", "surface", "kind", "model", "provider", "outcome"] as const;

export type CompletionStore = ReturnType<typeof makeCompletionStore>;

export function makeCompletionStore(db: Db) {
  const collection = db.collection<CompletionDocument>(completionsCollection.name);
  const { get } = makeRecords(collection);
  return {
    get,
    /** The newest first. */
    list(tenantId: string, { from, to, ...filter }: CompletionFilter, page: PageQuery): Promise<Page<ShownCompletion>> {
      const wanted = filtered.filter((field) => filter[field] !== undefined);
      const [end, since] = [to, from].map((time) => time && firstIdAt("log", time));
      return findPage(collection, {
        tenantId,
        page: { ...page, cursor: end && (page.cursor === undefined || end < page.cursor) ? end : page.cursor },
        fields: shown,
        since,
        ...(filter.outcome === "failed" ? { filter: { outcome: "failed" as const } } : {}),
        ...(wanted.length > 0
          ? { matches: (record: ShownCompletion) => wanted.every((field) => record[field] === filter[field]) }
          : {}),
      });
    },
    /** Writes records; those that are there already (a repeated write) are left as they are. */
    async insertMany(documents: readonly CompletionDocument[]): Promise<void> {
      if (documents.length === 0) return;
      if (documents.every(({ content }) => content === undefined)) {
        await runWrite(db, { insert: completionsCollection.name, documents: [...documents], ordered: false });
        return;
      }
      try {
        // With texts they can be more than one command holds.
        await collection.insertMany([...documents], { ordered: false });
      } catch (error) {
        if (!isOnlyDuplicates(error)) throw error;
      }
    },
    /** Writes a record unless it is there already, and returns the one that is kept. */
    async keep(document: CompletionDocument): Promise<CompletionDocument> {
      const { duplicates } = await runWrite(db, { insert: completionsCollection.name, documents: [document] });
      if (duplicates === 0) return document;
      return (await get(document.tenantId, document._id)) ?? document;
    },
  };
}

/** Whether every write error of an unordered insert is a duplicate key. */
function isOnlyDuplicates(error: unknown): boolean {
  if (!(error instanceof MongoBulkWriteError) || error.code !== DUPLICATE_KEY) return false;
  return [error.writeErrors].flat().every(({ code }) => code === DUPLICATE_KEY);
}
