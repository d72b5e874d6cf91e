import { calculateObjectSize } from "bson";
import { type Db, MongoBulkWriteError } from "mongodb";
import type { ErrorView } from "../lib/errors.ts";
import { defineCollection } from "./collection.ts";
import { findPage, fitsAll, holdsText, inTime, type Page, type PageQuery, type Shown, type Times } from "./page.ts";
import { makeRecords } from "./records.ts";
import type { UseStore } from "./use-store.ts";
import { DUPLICATE_KEY, runWrite } from "./writes.ts";

/** What a call was made for. A field is absent if there was no such thing. */
export type CallOrigin = {
  jobId?: string;
  /** The run of an agent, a workflow or a composite pattern. */
  runId?: string;
  agentId?: string;
  workflowId?: string;
};

/**
 * The log record of one model call of any surface, however it ended. Never changed after it was written, but that its texts
 * are removed.
 */
export type CompletionRecord = CallOrigin & {
  /** The request that the call answers or that submitted its job. Absent if no request caused it. */
  requestId?: string;
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
  /**
   * `aborted`: the caller disconnected; `failed`: the provider did not answer, perhaps after a part; `blocked`: guards did not let
   * the request or the answer through.
   */
  outcome: "completed" | "aborted" | "failed" | "blocked";
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
  /** What the tenant's guards found in its texts: how many values of a kind, by place. */
  guard?: { kind: string; place: string; action: string; count: number }[];
  /** Kept only if the tenant, or else the operator, wants the texts of chats kept. */
  content?: { messages: unknown[]; text: string };
  /** Bytes by which it counts among its tenant's call logs. Absent in records of earlier releases, which do not count. */
  bytes?: number;
};

/** What the store keeps for a call besides its texts, in bytes. */
export const BYTES_BESIDE_TEXTS = 1_024;

const withBytes = (document: CompletionRecord): CompletionRecord => {
  const texts = document.content === undefined ? 0 : calculateObjectSize(document.content);
  return { ...document, bytes: BYTES_BESIDE_TEXTS + texts };
};

/** How records count that were added (1) or removed (-1). */
export const toLogUse = ({ tenantId, bytes = 0 }: Pick<CompletionRecord, "tenantId" | "bytes">, sign: 1 | -1) => {
  return { tenantId, kind: "callLogs" as const, bytes: sign * bytes };
};

export const completionsCollection = defineCollection<CompletionRecord>({
  name: "completions",
  indexes: [
    { key: { tenantId: 1, _id: -1 }, name: "failed_newest", partialFilterExpression: { outcome: "failed" } },
    { key: { tenantId: 1, _id: -1 }, name: "tenant_newest" },
    { key: { tenantId: 1, _id: 1 }, name: "with_texts", partialFilterExpression: { content: { $exists: true } } },
  ],
});

const shown = [
  "keyId",
  "surface",
  "requestId",
  "jobId",
  "runId",
  "agentId",
  "workflowId",
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
  "guard",
] as const;

/** What a list shows of a call: not its texts. */
export type ShownCompletion = Shown<CompletionRecord, typeof shown>;

/** Which calls are meant: those that have all of these, begun between two times. */
type CompletionFilter = Partial<Pick<CompletionRecord, (typeof filtered)[number]>> &
  Times & {
    /** A part of a model's name, the surface, the end user or the error. */
    q?: string;
  };
const filtered = [
  "keyId",
  "surface",
  "kind",
  "model",
  "provider",
  "outcome",
  "requestId",
  "jobId",
  "runId",
  "agentId",
  "workflowId",
  "endUser",
] as const;

const textsOf = ({ requestedModel, model, provider, surface, endUser, error }: ShownCompletion) => [
  ...[requestedModel, model, provider, surface, endUser],
  ...[error?.code, error?.message],
];

export type CompletionStore = ReturnType<typeof makeCompletionStore>;

/** `use` counts what a tenant keeps a moment behind the records, so that no call waits for it. */
export function makeCompletionStore(db: Db, use: Pick<UseStore, "addLater">) {
  const collection = db.collection<CompletionRecord>(completionsCollection.name);
  const { get } = makeRecords(collection);
  return {
    get,
    /** The newest first. */
    list(
      tenantId: string,
      { from, to, q, ...filter }: CompletionFilter,
      page: PageQuery,
    ): Promise<Page<ShownCompletion>> {
      const wanted = filtered.filter((field) => filter[field] !== undefined);
      return findPage(collection, {
        tenantId,
        ...inTime("log", { from, to }, page),
        fields: shown,
        ...(filter.outcome === "failed" ? { filter: { outcome: "failed" as const } } : {}),
        matches: fitsAll<ShownCompletion>([
          wanted.length > 0 && ((record) => wanted.every((field) => record[field] === filter[field])),
          q !== undefined && ((record) => holdsText(q, textsOf(record))),
        ]),
      });
    },
    /** Writes records. Records that exist already, after a repeated write, stay unchanged and are not counted again. */
    async insertMany(given: readonly CompletionRecord[]): Promise<void> {
      if (given.length === 0) return;
      const documents = given.map(withBytes);
      const duplicates = await insertAll(documents);
      for (const document of documents.slice(duplicates)) use.addLater(toLogUse(document, 1));
    },
    /** Writes a record unless it is there already, and returns the one that is kept. */
    async keep(given: CompletionRecord): Promise<CompletionRecord> {
      const document = withBytes(given);
      const { duplicates } = await runWrite(db, { insert: completionsCollection.name, documents: [document] });
      if (duplicates > 0) return (await get(document.tenantId, document._id)) ?? document;
      use.addLater(toLogUse(document, 1));
      return document;
    },
  };

  /** Returns how many were there already. */
  async function insertAll(documents: CompletionRecord[]): Promise<number> {
    if (documents.every(({ content }) => content === undefined)) {
      const written = await runWrite(db, { insert: completionsCollection.name, documents, ordered: false });
      return written.duplicates;
    }
    try {
      // With texts, the records can exceed the size of one command.
      await collection.insertMany(documents, { ordered: false });
      return 0;
    } catch (error) {
      return countDuplicates(error);
    }
  }
}

/** How many documents an unordered insert found there already. @throws the error, when it has another cause. */
function countDuplicates(error: unknown): number {
  const failures = error instanceof MongoBulkWriteError ? [error.writeErrors].flat() : [];
  if (failures.length === 0 || failures.some(({ code }) => code !== DUPLICATE_KEY)) throw error;
  return failures.length;
}
