import { setTimeout as delay } from "node:timers/promises";

export type JobView = {
  jobId: string;
  status: string;
  progress: { stage: string; done: number; total: number };
  result?: { documentId: string; chunks: number; status: string };
  error?: { message: string };
};
export type Hit = {
  content: string;
  documentId: string;
  score: number;
  title: string;
  page?: number;
  heading?: string;
};
export type DemoClient = ReturnType<typeof makeClient>;

/** Longest wait for one answer of the demo, in ms. */
const TIMEOUT_MS = 60_000;

/** The few calls of the demo, over HTTP as any client makes them. */
export function makeClient(url: string, apiKey: string) {
  const authorization = `Bearer ${apiKey}`;
  const call = async (path: string, init: RequestInit = {}): Promise<Response> => {
    const headers = { authorization, ...(typeof init.body === "string" ? { "content-type": "application/json" } : {}) };
    const response = await fetch(`${url}${path}`, {
      ...init,
      headers: { ...headers, ...(init.headers as Record<string, string> | undefined) },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (response.status === 429) {
      await delay(Number(response.headers.get("retry-after") ?? 1) * 1_000);
      return call(path, init);
    }
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
    return response;
  };
  const post = (path: string, body: unknown, headers = {}) =>
    call(path, { method: "POST", body: JSON.stringify(body), headers });
  return {
    /** Submits a file and does not wait: 202 with the job's id. */
    async ingest(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<string> {
      const form = new FormData();
      form.set("file", new File([bytes], name));
      const accepted = await call("/rag/ingest", { method: "POST", body: form, headers: { prefer: "respond-async" } });
      return ((await accepted.json()) as { jobId: string }).jobId;
    },
    async job(jobId: string): Promise<JobView> {
      return (await (await call(`/jobs/${jobId}`)).json()) as JobView;
    },
    /** The first embedding model that there is. */
    async embeddingModel(): Promise<string> {
      const { models } = (await (await call("/ai/models")).json()) as { models: { id: string; type: string }[] };
      return models.find(({ type }) => type === "embedding")?.id ?? "";
    },
    /** Without a mode in the default one. */
    async query(query: string, topK: number, mode?: string): Promise<Hit[]> {
      return (await this.search({ query, topK, mode })).results;
    },
    /** A query of `/rag/query` in full. */
    async search(body: object): Promise<{ results: Hit[]; rerank?: { reranked: boolean; reason?: string } }> {
      return (await (await post("/rag/query", body)).json()) as Awaited<ReturnType<typeof this.search>>;
    },
    /** Adds a provider of a reranking model at a URL; resolves with the model's id. */
    async addReranker(baseUrl: string): Promise<string> {
      const model = { id: "rerank", type: "rerank", contextWindow: 8_192, inputUsdPerMTok: 0, outputUsdPerMTok: 0 };
      const body = JSON.stringify({ baseUrl, key: "sk-scripted-judge", wire: "openai-chat", models: [model] });
      await call("/ai/providers/custom/judge", { method: "PUT", body });
      return `judge/${model.id}`;
    },
    async remove(documentId: string): Promise<void> {
      await call(`/rag/documents/${documentId}`, { method: "DELETE" });
    },
  };
}
