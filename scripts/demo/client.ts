import { setTimeout as delay } from "node:timers/promises";

export type JobView = {
  jobId: string;
  status: string;
  progress: { stage: string; done: number; total: number };
  result?: { documentId: string; chunks: number; status: string };
  error?: { message: string };
};
type Request = { method?: string; body?: FormData; headers?: Record<string, string> };
export type DemoClient = ReturnType<typeof makeClient>;

/** Longest wait for one answer of the demo, in ms. */
const TIMEOUT_MS = 60_000;

/** The few calls of the demo, over HTTP as any client makes them. */
export function makeClient(url: string, apiKey: string) {
  const authorization = `Bearer ${apiKey}`;
  const call = async (path: string, { headers = {}, ...form }: Request = {}): Promise<Response> => {
    const init = { ...form, headers: { authorization, ...headers }, signal: AbortSignal.timeout(TIMEOUT_MS) };
    const response = await fetch(`${url}${path}`, init);
    if (response.status === 429) {
      await delay(Number(response.headers.get("retry-after") ?? 1) * 1_000);
      return call(path, { headers, ...form });
    }
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
    return response;
  };
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
  };
}
