import type { Config } from "../config.ts";
import { notFound } from "../errors.ts";
import type { CallLimit } from "../gateway/money/account.ts";
import { newId } from "../ids.ts";
import type { Work } from "../jobs/work.ts";
import { makeGuardedFetch } from "../net/guarded-fetch.ts";
import type { ShownDocument } from "../store/document-store.ts";
import type { JobRecord } from "../store/job-record.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import type { Caller } from "../tenancy/roles.ts";
import { acceptDocument, type IngestInput } from "./accept-document.ts";
import type { RagDeps } from "./deps.ts";
import { makeDocumentWork, removeDocument } from "./document-work.ts";
import { makeParsePool } from "./parse-in-child.ts";
import { makeQuery } from "./query.ts";
import type { DocumentView, QueryInput, QueryResult } from "./schemas.ts";

export type DocumentQuery = PageQuery & { status?: DocumentView["status"] | undefined };

/** The caller of a query; `limit` is the run's, if an agent or a workflow queries. */
export type QueryCaller = Pick<Caller, "tenantId" | "keyId"> & { limit?: CallLimit };

/** Retrieval, bound to its dependencies. */
export type Rag = {
  /**
   * Accepts a document: keeps its source, records it and submits the job that indexes it, under `jobId` if given.
   * @throws AppError `source_refused` (an address that is not fetched), `unavailable`.
   */
  accept(
    caller: Caller,
    input: IngestInput,
    isInteractive: boolean,
    jobId?: string,
  ): Promise<{ job: JobRecord; documentId: string }>;
  work: Work;
  query(caller: QueryCaller, input: QueryInput, signal: AbortSignal): Promise<QueryResult[]>;
  /** A page of the documents in a state, and how many there are. */
  list(caller: Caller, query: DocumentQuery): Promise<Page<DocumentView> & { total: number }>;
  /** @throws AppError `not_found` */
  get(caller: Caller, documentId: string): Promise<DocumentView>;
  /** Removes a document with all its chunks and its source, also while its job runs. @throws AppError `not_found` */
  remove(caller: Caller, documentId: string): Promise<void>;
  close(): Promise<void>;
};

/** Makes the retrieval of a process. Child processes and connections start when they are first needed. */
export function makeRag(
  input: { config: Pick<Config, "fetch" | "parse"> } & Pick<RagDeps, "store" | "jobs" | "gateway" | "logger">,
): Rag {
  const { config, store, jobs, gateway, logger } = input;
  const fetcher = makeGuardedFetch(config.fetch);
  const parser = makeParsePool({ timeoutMs: config.parse.timeoutMs, logger });
  const deps: RagDeps = { store, jobs, gateway, logger, fetcher, parser };
  const runQuery = makeQuery(deps);
  const work = makeDocumentWork(deps);
  return {
    accept: (caller, document, isInteractive, jobId = newId("job")) =>
      acceptDocument(
        { ...deps, work },
        { caller, document, isInteractive, jobId, allowOrigins: config.fetch.allowOrigins },
      ),
    work,
    query: ({ tenantId, keyId, limit }, query, signal) =>
      runQuery({ tenantId, keyId, surface: "rag", signal, ...(limit === undefined ? {} : { limit }) }, query),
    async list({ tenantId }, { status = "indexed", ...page }) {
      const found = store.documents.list(tenantId, { status, ...page });
      const [documents, total] = await Promise.all([found, store.documents.count(tenantId, status)]);
      return { ...mapPage(documents, toView), total };
    },
    async get({ tenantId }, documentId) {
      const document = await store.documents.get(tenantId, documentId);
      if (!document) throw notFound("document");
      return toView(document);
    },
    remove: ({ tenantId }, documentId) => removeDocument(deps, tenantId, documentId),
    close: async () => {
      parser.close();
      await fetcher.close();
    },
  };
}

function toView(record: ShownDocument): DocumentView {
  const { kind, url, name, type } = record.source;
  return {
    documentId: record._id,
    title: record.title,
    chunks: record.chunks,
    createdAt: record.createdAt.toISOString(),
    updatedAt: record.updatedAt.toISOString(),
    status: record.status === "deleting" ? "failed" : record.status, // it is never shown in that state; only the type needs this
    source: { kind, ...(url ? { url } : {}), ...(name ? { name } : {}), ...(type ? { type } : {}) },
    metadata: record.metadata,
    jobId: record.jobId,
    ...(record.duplicateOf ? { duplicateOf: record.duplicateOf } : {}),
    ...(record.error ? { error: record.error } : {}),
  };
}
