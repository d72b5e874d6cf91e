import { stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { KEEP_COMPLETED } from "../../src/jobs/queue-client.ts";
import { queues } from "../../src/jobs/queues.ts";
import { type Child, startChild } from "./children.ts";
import { format, type Measured } from "./goals.ts";
import { percentile, runOpenLoop } from "./measure.ts";
import { residentMb } from "./process-usage.ts";
import { openStack, type Stack } from "./stack.ts";

/** How long the load goes on, in seconds, and how often it is looked at. */
const seconds = Number(process.env.SOAK_SECONDS ?? 600);
const sampleEverySeconds = 5; // each look collects garbage
/** Share of the time at whose end caches and pools are filled, and each queue has as many ended jobs as it keeps. */
const warmUp = 0.4;
/** Documents that are kept: the oldest goes when a new one comes. */
const keptDocuments = 50;

type Sample = Record<"api heap" | "api RSS" | "worker heap" | "worker RSS" | "handles" | "Redis" | "store", number>;

/**
 * An hour of mixed work in ten minutes: chats, streams, documents that come and go, queries, agents and workflows at a steady rate.
 * What the processes and Redis hold after the warm-up must not grow; the store grows by its records alone.
 */
export async function soakBench(): Promise<Measured[]> {
  const upstream = await startChild("./children/upstream.ts");
  const env = { EDGE_BASE_URL: `${upstream.ready.url}/v1`, EDGE_MODEL: "bench" };
  const stack = await openStack({ workers: 2, env, flags: ["--expose-gc"] });
  const redis = new Redis(stack.redisUrl, { maxRetriesPerRequest: 1 });
  try {
    const failures: string[] = [];
    const samples: Sample[] = [];
    const load = putUnderLoad(stack, failures);
    let calls: number | undefined;
    load.then(
      (count) => {
        calls = count;
      },
      () => undefined,
    ); // it is awaited below
    while (calls === undefined && samples.length * sampleEverySeconds < seconds) {
      await delay(sampleEverySeconds * 1_000);
      samples.push(await take(stack, redis));
    }
    const count = await load;
    await delay(3_000);
    return [...toLines(samples, { calls: count, failures }), await retentionLine(stack, redis)];
  } finally {
    redis.disconnect();
    await stack.close();
    await upstream.stop();
  }
}

/** Each kind of work at a rate of its own, in calls a second; answers how many calls were made. */
async function putUnderLoad(stack: Stack, failures: string[]): Promise<number> {
  const call = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
    const sent = { method, headers: { ...stack.headers, ...headers }, ...(body ? { body: JSON.stringify(body) } : {}) };
    const response = await fetch(`${stack.url}${path}`, { ...sent, signal: AbortSignal.timeout(60_000) });
    const text = await response.text();
    if (response.ok) return text;
    failures.push(`${method} ${path}: ${response.status} ${text.slice(0, 200)}`);
    return "{}";
  };
  const post = (path: string, body: object, headers?: Record<string, string>) => call("POST", path, body, headers);
  const later = { prefer: "respond-async" };
  const agent = await post("/agents", { name: "Soak", model: "meta-llm", systemPrompt: "Answer.", tools: [] });
  const { agentId } = JSON.parse(agent) as { agentId: string };
  const steps = [
    { type: "rag_query", id: "facts", query: "{{ input }}", topK: 2 },
    { type: "ai_completion", model: "meta-llm", prompt: "{{ input }} {{ steps.facts.output }}" },
  ];
  const { workflowId } = JSON.parse(await post("/workflows", { name: "Soak", steps })) as { workflowId: string };
  const documents: string[] = [];
  let n = 0;
  const chat = (stream: boolean) => {
    n += 1;
    return post("/ai/chat", { stream, model: "meta-llm", messages: [{ role: "user", content: `Question ${n}` }] });
  };
  const ingest = async () => {
    n += 1;
    const content = `Document ${n} is about pump ${n % 100}. `.repeat(100);
    const { documentId } = JSON.parse(await post("/rag/ingest", { title: `Doc ${n}`, content })) as {
      documentId?: string;
    };
    if (documentId) documents.push(documentId);
    const old = documents.length > keptDocuments ? documents.shift() : undefined;
    if (old) await call("DELETE", `/rag/documents/${old}`);
  };
  const kinds: [perSecond: number, work: () => Promise<unknown>][] = [
    [20, () => chat(false)],
    [4, () => chat(true)],
    [10, () => post("/rag/query", { query: `pump ${n % 100}` })],
    [5, ingest],
    [20, () => post("/bench/noop", {}, later)],
    [5, () => post(`/agents/${agentId}/run`, { input: `Question ${n}` }, later)],
    [5, () => post(`/workflows/${workflowId}/execute`, { input: `pump ${n % 100}` })],
  ];
  const timed = (work: () => Promise<unknown>) => async () => {
    const started = performance.now();
    await work().catch((error: unknown) => failures.push(String(error)));
    return performance.now() - started;
  };
  const made = await Promise.all(
    kinds.map(([perSecond, work], seed) => runOpenLoop({ perSecond, seconds, seed: seed + 1, call: timed(work) })),
  );
  return made.flat().length;
}

async function take({ api, workers, env }: Stack, redis: Redis): Promise<Sample> {
  const usageOf = async (child: Child) => (await child.ask({ type: "usage" })) as { heapMb: number; handles: number };
  const [ofApi, ...ofWorkers] = await Promise.all([api, ...workers].map(usageOf));
  const resident = await Promise.all([api, ...workers].map(residentMb));
  const usedBytes = Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
  const files = ["store.sqlite", "store.sqlite-wal"].map((name) => stat(join(env.DATA_DIR ?? "", name)));
  const bytes = (await Promise.all(files)).reduce((sum, { size }) => sum + size, 0);
  return {
    "api heap": ofApi?.heapMb ?? Number.NaN,
    "api RSS": resident[0] ?? Number.NaN,
    "worker heap": Math.max(...ofWorkers.map(({ heapMb }) => heapMb)),
    "worker RSS": Math.max(...resident.slice(1)),
    handles: [ofApi, ...ofWorkers].reduce((sum, one) => sum + (one?.handles ?? 0), 0),
    Redis: usedBytes / 1_048_576,
    store: bytes / 1_048_576,
  };
}

/** The first and the last third of what came after the warm-up, beside each other. */
function toLines(samples: Sample[], { calls, failures }: { calls: number; failures: string[] }): Measured[] {
  const steady = samples.slice(Math.floor(samples.length * warmUp));
  const third = Math.max(1, Math.floor(steady.length / 3));
  const line = (name: keyof Sample, must: number): Measured => {
    // Near the least of each third: what is left when calls have ended.
    const early = percentile(
      steady.slice(0, third).map((sample) => sample[name]),
      0.1,
    );
    const late = percentile(
      steady.slice(-third).map((sample) => sample[name]),
      0.1,
    );
    const unit = name === "handles" ? "" : " MB";
    return {
      what: `${name} after ${seconds} s of mixed work`,
      anchor: `after the warm-up ${format(early)}${unit}`,
      product: `at the end ${format(late)}${unit}`,
      value: late / early,
      must,
      aim: 1.02,
      isMoreBetter: false,
      unit: "×",
    };
  };
  for (const failure of failures.slice(0, 5)) console.error(failure);
  const store = samples.map((sample) => sample.store);
  return [
    ...(["api heap", "api RSS", "worker heap", "worker RSS", "handles", "Redis"] as const).map((name) =>
      line(name, 1.15),
    ),
    {
      what: "calls of the soak that failed",
      anchor: `${calls.toLocaleString("en-US")} calls; the store grew ${format(store[0] ?? 0)} → ${format(store.at(-1) ?? 0)} MB`,
      product: `${failures.length} failed`,
      value: failures.length,
      must: 0,
      aim: 0,
      isMoreBetter: false,
      unit: "",
    },
  ];
}

/** Finished jobs that are still in Redis, against what the queues say they keep. */
async function retentionLine({ env }: Stack, redis: Redis): Promise<Measured> {
  let most = 0;
  let kept = 0;
  for (const { name } of Object.values(queues)) {
    const queue = new Queue(name, { connection: redis, prefix: env.REDIS_PREFIX ?? "switchyard" });
    const { completed = 0 } = await queue.getJobCounts("completed");
    kept += completed;
    most = Math.max(most, completed / KEEP_COMPLETED.count);
  }
  return {
    what: "finished jobs left in Redis, the fullest queue against what it keeps",
    anchor: "what the product keeps",
    product: `${kept.toLocaleString("en-US")} in all queues`,
    value: most,
    must: 1.05,
    aim: 1,
    isMoreBetter: false,
    unit: "×",
  };
}
