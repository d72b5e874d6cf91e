import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { tryParseJson } from "../../../src/lib/try-parse-json.ts";

const CALL_TIMEOUT_MS = 20_000;
const PAUSE_MS = 250;
/** Longest time in which everything that was accepted ends, in ms. */
const END_TIMEOUT_MS = 5 * 60_000;

const acceptedSchema = z.object({ jobId: z.string() });
const jobSchema = z.object({ status: z.string() });

/**
 * Submits documents one after the other until it is stopped, each with a key of its own and again until an API accepts it.
 * `url` and `key` are of the API and of an owner; `signal` ends it for good.
 */
export function startLoad({ url, key, signal }: { url: string; key: string; signal: AbortSignal }) {
  const stopping = new AbortController();
  const jobs = new Set<string>();
  const call = async (path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", ...init.headers };
    const response = await fetch(url + path, { ...init, headers, signal: AbortSignal.timeout(CALL_TIMEOUT_MS) });
    return { status: response.status, headers: response.headers, body: tryParseJson(await response.text()) };
  };
  const submit = async (index: number) => {
    const body = JSON.stringify({
      title: `Note ${index}`,
      content: `Note ${index}: marmots whistle when an eagle comes.`,
    });
    const headers = { prefer: "respond-async", "idempotency-key": `note-${index}` };
    for (;;) {
      signal.throwIfAborted();
      const reply = await call("/rag/ingest", { method: "POST", headers, body }).catch(() => null); // its API is being killed
      if (reply?.status === 202) return jobs.add(acceptedSchema.parse(reply.body).jobId);
      if (reply && reply.status < 500 && reply.status !== 429 && reply.status !== 409)
        throw new Error(`a document was refused: ${reply.status} ${JSON.stringify(reply.body)}`);
      await delay(PAUSE_MS);
    }
  };
  const loading = (async () => {
    for (let index = 0; !stopping.signal.aborted; index += 1) {
      await submit(index);
      await delay(PAUSE_MS);
    }
  })();
  loading.catch(() => undefined); // `stop` throws it
  return {
    /** Submits no more; resolves with how many were accepted once each has ended and is there once. @throws Error of what is not so. */
    async stop(): Promise<number> {
      stopping.abort();
      await loading;
      const deadline = performance.now() + END_TIMEOUT_MS;
      for (const jobId of jobs) {
        for (;;) {
          const reply = await call(`/jobs/${jobId}`).catch(() => null);
          const job = jobSchema.safeParse(reply?.body);
          if (job.data?.status === "completed") break;
          if (job.data?.status === "failed" || performance.now() > deadline)
            throw new Error(`job ${jobId} has not completed: ${reply?.status} ${JSON.stringify(reply?.body)}`);
          await delay(PAUSE_MS);
        }
      }
      await this.expectKept();
      return jobs.size;
    },
    /** @throws Error unless every document that was accepted is there, once. */
    async expectKept(): Promise<void> {
      const { status, headers } = await call("/rag/documents?limit=1");
      const count = headers.get("x-total-count");
      if (count !== String(jobs.size))
        throw new Error(`${jobs.size} documents were accepted, ${count} are there (${status})`);
    },
  };
}
