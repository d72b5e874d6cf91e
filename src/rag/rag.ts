import type { Config } from "../config/config.ts";
import type { CallLimit } from "../gateway/money/account.ts";
import type { Memory } from "../isolation/memory.ts";
import { makePace } from "../isolation/pace.ts";
import { defined } from "../lib/defined.ts";
import { makeGuardedFetch } from "../net/guarded-fetch.ts";
import type { CallOrigin } from "../store/completion-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import { type Acceptance, acceptDocument, refreshDocument } from "./accept-document.ts";
import { makeAnswering } from "./answer/answer.ts";
import { makeFeedback } from "./answer/feedback.ts";
import type { RagDeps } from "./deps.ts";
import { makeDocumentCollections } from "./document-collections.ts";
import { makeDocumentWork } from "./document-work.ts";
import { makeDocuments } from "./documents.ts";
import { makeEmbeddingModels } from "./embedding-models.ts";
import { guardDocument } from "./guard-document.ts";
import { requireCollections } from "./known-collections.ts";
import { makeParsePool } from "./parse-in-child.ts";
import { makeQuery } from "./query.ts";
import type { QueryInput, QueryOutcome } from "./query-schemas.ts";
import { acceptReindex, makeReindexWork, type ReindexInput } from "./reindex.ts";
import { refreshCollection, sweepRefreshes } from "./scheduled-refresh.ts";
import { changeSettings, describeSearch, viewSettings } from "./settings.ts";
import type { RagSettingsBody } from "./settings-schemas.ts";
import { sweepStrayChunks } from "./stray-chunks.ts";

/** The caller of a query and its purpose. `limit` belongs to the run, if an agent or a workflow queries. */
export type QueryCaller = Pick<Caller, "tenantId" | "keyId" | "keyBudgetUsd" | "collections"> & {
  limit?: CallLimit;
  origin?: CallOrigin;
  /** Whether the query was guarded before. */
  isGuarded?: boolean;
};

type Tail<T extends readonly unknown[]> = T extends [unknown, ...infer Rest] ? Rest : never;

export type Rag = ReturnType<typeof makeRag>;

/** Makes retrieval, bound to its dependencies. Child processes and connections start when they are first needed. */
export function makeRag(
  input: { config: Pick<Config, "fetch" | "parse" | "rag" | "retention"> } & Pick<
    RagDeps,
    "store" | "jobs" | "gateway" | "quotas" | "guards" | "logger"
  > &
    Omit<Parameters<typeof makeFeedback>[0], "days"> & { memory: Memory },
) {
  const { config, store, jobs, gateway, quotas, guards, logger, memory } = input;
  const fetcher = makeGuardedFetch(config.fetch);
  const parser = makeParsePool({ ...config.parse, logger, memory });
  const embeddingModels = makeEmbeddingModels({ store }, config.rag.embeddingModel ?? gateway.defaultEmbeddingModel);
  const pace = makePace();
  const deps: RagDeps = { store, jobs, gateway, embeddingModels, quotas, guards, logger, fetcher, parser, pace };
  const runQuery = makeQuery(deps);
  const work = makeDocumentWork(deps);
  const reindexWork = makeReindexWork(deps);
  const documents = makeDocuments(deps);
  const collections = makeDocumentCollections(deps);
  const search: typeof runQuery = async (caller, input) => {
    await requireCollections(deps, caller, { wanted: input.collection });
    pace.begins(caller.tenantId);
    return runQuery(caller, input);
  };
  const feedback = makeFeedback({ ...input, days: config.retention.callLogDays });
  const query: typeof runQuery = async (caller, asked) => {
    const { tenantId, keyId, origin: { agentId, workflowId } = {} } = caller;
    const guarded = await guards.take({ tenantId, keyId, agentId, workflowId }, "input", { query: asked.query });
    return search(caller, { ...asked, ...guarded });
  };
  return {
    work,
    collections,
    /** See `makeAnswering`. */
    answering: makeAnswering({ query, gateway, store, keep: feedback.keep }),
    /** See `makeFeedback`. */
    feedback,
    /**
     * Accepts a document: keeps its source, records it and submits the job that indexes it, under `jobId`.
     * @throws AppError `source_refused` (an address that is not fetched), `unavailable`.
     */
    async accept(given: Acceptance) {
      pace.begins(given.caller.tenantId);
      const guarded = { ...given, document: await guardDocument(deps, given) };
      return acceptDocument({ ...deps, work, allowOrigins: config.fetch.allowOrigins }, guarded);
    },
    /** See `refreshDocument`. @throws AppError `not_found`, `wrong_state`, `unavailable`. */
    refresh: async ({
      documentId,
      ...given
    }: { documentId: string; caller: Caller } & Parameters<typeof refreshDocument>[2]) =>
      refreshDocument({ ...deps, work }, await documents.find(given.caller, documentId), given),
    /** See `requireCollections`. @throws AppError `not_found`, `insufficient_scope`. */
    requireCollections: (...given: Tail<Parameters<typeof requireCollections>>) => requireCollections(deps, ...given),
    /** @throws AppError `not_found` for a collection that is not there, `insufficient_scope`. */
    async query(
      { tenantId, keyId, keyBudgetUsd, collections, limit, origin, isGuarded = false }: QueryCaller,
      input: QueryInput,
      signal: AbortSignal,
    ): Promise<QueryOutcome> {
      const about = { surface: "rag", signal, ...defined({ limit, origin }) } as const;
      return (isGuarded ? search : query)({ tenantId, keyId, keyBudgetUsd, collections, ...about }, input);
    },
    /** See `refreshCollection`. @throws AppError `not_found`, `insufficient_scope`. */
    async refreshCollection(caller: Pick<Caller, "tenantId" | "collections">, name: string): Promise<number> {
      await requireCollections(deps, caller, { wanted: name });
      return refreshCollection(deps, caller.tenantId, name);
    },
    /** Refreshes documents whose time has come. Run it on a schedule. */
    sweepRefreshes: () => sweepRefreshes({ ...deps, work }),
    /** See `sweepStrayChunks`. */
    sweepStrayChunks: () => sweepStrayChunks(deps),
    reindexing: {
      work: reindexWork,
      /** See `acceptReindex`. @throws AppError `wrong_state`, `provider_not_configured`, `unavailable` */
      accept: (given: ReindexInput) => acceptReindex({ ...deps, work: reindexWork }, given),
    },
    describeSearch: () => describeSearch(deps),
    settings: ({ tenantId }: Caller) => viewSettings(deps, tenantId),
    /** See `changeSettings`. @throws AppError `unknown_model`, `provider_not_configured`, `wrong_state` */
    changeSettings: ({ tenantId }: Caller, body: RagSettingsBody) => changeSettings(deps, tenantId, body),
    ...documents,
    async close(): Promise<void> {
      parser.close();
      await fetcher.close();
    },
  };
}
