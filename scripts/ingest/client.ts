import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import type { Item } from "./find-items.ts";

/** Longest wait for one answer, in ms: a large file takes its time over a slow line. */
const TIMEOUT_MS = 120_000;

export type JobView = {
  jobId: string;
  status: string;
  result?: { documentId: string; chunks: number };
  error?: { code: string; message: string };
};

export type DocumentView = { documentId: string; chunks: number; jobId: string };

/** An answer as far as loading needs it. `status` 0: none came, and `message` says why. */
export type ApiResponse = { status: number; body: unknown; message: string; retryAfterMs: number | undefined };

export type IngestClient = {
  /** Submits an item and does not wait for it; the same `idempotencyKey` makes one job. Throws when a file cannot be read. */
  submit(item: Item, idempotencyKey: string): Promise<ApiResponse>;
  /** The newest ingestion jobs of the tenant. */
  jobs(limit: number): Promise<ApiResponse>;
  job(jobId: string): Promise<ApiResponse>;
  /** The newest documents of the tenant that are indexed. */
  documents(limit: number): Promise<ApiResponse>;
  document(documentId: string): Promise<ApiResponse>;
  removeDocument(documentId: string): Promise<ApiResponse>;
};

/** `collection`: where documents go that do not name one themselves. */
export function makeIngestClient(url: string, apiKey: string, collection?: string): IngestClient {
  const place = collection === undefined ? {} : { collection };
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
    async submit({ source }, itemKey) {
      const key = collection === undefined ? itemKey : `${itemKey}-${collection}`;
      const headers = { prefer: "respond-async", "idempotency-key": key };
      if (source.kind === "file") {
        const form = new FormData();
        form.set("file", new File([new Uint8Array(await readFile(source.path))], basename(source.path)));
        if (collection !== undefined) form.set("collection", collection);
        return call("POST", "/rag/ingest", { body: form, headers });
      }
      const body = JSON.stringify({ ...place, ...(source.kind === "url" ? { url: source.url } : source.body) });
      return call("POST", "/rag/ingest", { body, headers });
    },
    jobs: (limit) => call("GET", `/jobs?kind=ingestion&limit=${limit}`),
    documents: (limit) => call("GET", `/rag/documents?limit=${limit}`),
    job: (jobId) => call("GET", `/jobs/${jobId}`),
    document: (documentId) => call("GET", `/rag/documents/${documentId}`),
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
  };
}

/** A field of a value that came as JSON; undefined where there is none. */
export function at(value: unknown, field: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, field) : undefined;
}
