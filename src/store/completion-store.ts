import { type Db, MongoBulkWriteError } from "mongodb";
import type { ErrorView } from "../errors.ts";
import { defineCollection } from "./collection.ts";
import { makeRecords } from "./records.ts";
import { DUPLICATE_KEY, runWrite } from "./writes.ts";

/** The log record of one model call of any surface, however it ended. Never changed after it was written. */
export type CompletionDocument = {
  /** The log id, as `log_…`. */
  _id: string;
  tenantId: string;
  keyId: string;
  surface: string;
  kind: "chat" | "embedding";
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
  indexes: [{ key: { tenantId: 1, createdAt: -1 }, name: "tenant_createdAt" }],
});

export type CompletionStore = ReturnType<typeof makeCompletionStore>;

export function makeCompletionStore(db: Db) {
  const collection = db.collection<CompletionDocument>(completionsCollection.name);
  const { get } = makeRecords(collection);
  return {
    get,
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
