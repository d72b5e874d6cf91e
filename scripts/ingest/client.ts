import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { defined } from "../../src/lib/defined.ts";
import type { Item } from "./item.ts";

/** Longest wait for one answer, in ms: a large file takes its time over a slow line. */
const TIMEOUT_MS = 120_000;

export type JobView = {
  jobId: string;
  status: string;
  result?: { documentId: string; chunks: number; warnings?: Warning[] };
  error?: { code: string; message: string };
};

export type DocumentView = {
  documentId: string;
  chunks: number;
  jobId: string;
  createdAt: string;
  externalId?: string;
  source: { url?: string };
  warnings?: Warning[];
};

/** What a document does not hold of its source. */
export type Warning = { code: string; message: string };

/** How an item is sent. `documentId`: the document that it replaces; `externalId`: the name of a new one. */
export type Submission = { idempotencyKey: string; documentId?: string | undefined; externalId?: string | undefined };

/** An answer as far as loading needs it. `status` 0: none came, and `message` says why. */
export type ApiResponse = {
  status: number;
  body: unknown;
  message: string;
  retryAfterMs: number | undefined;
  /** Where the next page of a list begins. */
  nextCursor?: string | undefined;
};

export type IngestClient = {
  /** Whose key it is. */
  me(): Promise<ApiResponse>;
  /** Submits an item and does not wait for it; the same `idempotencyKey` makes one job. Throws when a file cannot be read. */
  submit(item: Item, submission: Submission): Promise<ApiResponse>;
  /** The newest ingestion jobs of the tenant. */
  jobs(limit: number): Promise<ApiResponse>;
  job(jobId: string): Promise<ApiResponse>;
  /** The newest documents of the tenant that are indexed. */
  documents(limit: number): Promise<ApiResponse>;
  /** A page of the documents in a state, newest first. */
  documentPage(status: string, cursor: string | undefined): Promise<ApiResponse>;
  document(documentId: string): Promise<ApiResponse>;
  /** Gives the document of a file the file's new name. */
  renameDocument(documentId: string, name: string): Promise<ApiResponse>;
  removeDocument(documentId: string): Promise<ApiResponse>;
};

type ClientOptions = {
  url: string;
  key: string;
  /** Where documents go that do not name one themselves. */
  collection?: string | undefined;
  /** Refuse a source of which something would be lost. */
  requireComplete?: boolean | undefined;
};

/** Documents of one page. */
const PAGE = 200;

export function makeIngestClient({ url, key: apiKey, collection, requireComplete }: ClientOptions): IngestClient {
  const place = collection === undefined ? {} : { collection };
  const demand = requireComplete ? { requireComplete } : {};
  const call = async (
    method: string,
    path: string,
    init: { body?: string | FormData; headers?: Record<string, string> } = {},
  ) => {
    const headers = new Headers(init.headers);
    headers.set("authorization", `Bearer ${apiKey}`);
    if (typeof init.body === "string") headers.set("content-type", "application/json");
    try {
      const response = await fetch(`${url}${path}`, {
        method,
        headers,
        signal: AbortSignal.timeout(TIMEOUT_MS),
        ...(init.body === undefined ? {} : { body: init.body }),
      });
      return await toAnswer(response);
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      return { status: 0, body: undefined, message: toMessage(cause), retryAfterMs: undefined };
    }
  };
  return {
    me: () => call("GET", "/me"),
    async submit({ source }, { idempotencyKey, documentId, externalId }) {
      const headers = { prefer: "respond-async", "idempotency-key": idempotencyKey };
      const identity = defined({ documentId, externalId });
      if (source.kind === "file") {
        const form = new FormData();
        form.set("file", new File([new Uint8Array(await readFile(source.path))], basename(source.path)));
        const fields: Record<string, unknown> = { ...place, ...demand, ...identity };
        for (const [field, value] of Object.entries(fields)) form.set(field, String(value));
        return call("POST", "/rag/ingest", { body: form, headers });
      }
      const given = source.kind === "url" ? { url: source.url } : source.body;
      const body = JSON.stringify({ ...place, ...demand, ...identity, ...given });
      return call("POST", "/rag/ingest", { body, headers });
    },
    jobs: (limit) => call("GET", `/jobs?kind=ingestion&limit=${limit}`),
    documents: (limit) => call("GET", `/rag/documents?limit=${limit}`),
    documentPage(status, cursor) {
      const query = new URLSearchParams({ status, limit: String(PAGE), ...defined({ cursor }) });
      return call("GET", `/rag/documents?${query}`);
    },
    job: (jobId) => call("GET", `/jobs/${jobId}`),
    document: (documentId) => call("GET", `/rag/documents/${documentId}`),
    renameDocument: (documentId, name) =>
      call("PATCH", `/rag/documents/${documentId}`, { body: JSON.stringify({ name }) }),
    removeDocument: (documentId) => call("DELETE", `/rag/documents/${documentId}`),
  };
}

function toMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error ? String(error.code) : "";
  return error.message === "" ? code : error.message;
}

async function toAnswer(response: Response): Promise<ApiResponse> {
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  const body: unknown = isJson ? JSON.parse(text) : undefined;
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const error = at(body, "error");
  const message = at(error, "message");
  return {
    status: response.status,
    body,
    message: response.ok
      ? ""
      : `${response.status} ${String(at(error, "code") ?? "")}: ${String(message ?? text.slice(0, 200))}`,
    retryAfterMs: Number.isFinite(seconds) ? seconds * 1_000 : undefined,
    nextCursor: /[?&]cursor=([^&>]+)/.exec(response.headers.get("link") ?? "")?.[1],
  };
}

/** A field of a value that came as JSON; undefined where there is none. */
export function at(value: unknown, field: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, field) : undefined;
}
