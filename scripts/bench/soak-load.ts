import { cpus } from "node:os";
import { runOpenLoop } from "./measure.ts";
import type { Stack } from "./stack.ts";

/** Documents that are kept: the oldest goes when a new one comes. */
const keptDocuments = 50;
/** How long the load runs before the machine's use of its processors is measured, and how long it is measured, in seconds. */
const warmUpSeconds = 10;
const measuredSeconds = 20;

/** A call of one kind, and how long it took, in ms. */
export type Call = { kind: string; ms: number };

/** Mixed work: chats, streams, documents that come and go, queries, jobs, agents and workflows. */
export type SoakLoad = {
  /** Runs each kind at its own rate times `factor`. */
  run(options: { factor: number; seconds: number }): Promise<Call[]>;
  /** What failed until now, in words. */
  failures: string[];
};

/**
 * By which factor the load keeps the machine's processors busy for half of the time: half of saturation, since no part of the
 * mix waits for anything else. All that runs on the machine counts, also what makes the load.
 */
export async function factorOfHalf(load: SoakLoad): Promise<number> {
  await load.run({ factor: 1, seconds: warmUpSeconds });
  const before = processorTimes();
  await load.run({ factor: 1, seconds: measuredSeconds });
  const after = processorTimes();
  return 0.5 / ((after.busy - before.busy) / (after.all - before.all));
}

function processorTimes(): { busy: number; all: number } {
  const times = cpus().map(({ times: { idle, ...busy } }) => ({
    idle,
    busy: Object.values(busy).reduce((sum, one) => sum + one, 0),
  }));
  const busy = times.reduce((sum, one) => sum + one.busy, 0);
  return { busy, all: times.reduce((sum, one) => sum + one.idle, busy) };
}

/** Makes the load of a stack: its agent and its workflow are there. */
export async function makeSoakLoad(stack: Stack): Promise<SoakLoad> {
  const failures: string[] = [];
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
  const kinds: [kind: string, perSecond: number, work: () => Promise<unknown>][] = [
    ["chat", 20, () => chat(false)],
    ["stream", 4, () => chat(true)],
    ["query", 10, () => post("/rag/query", { query: `pump ${n % 100}` })],
    ["ingest", 5, ingest],
    ["job", 20, () => post("/bench/noop", {}, later)],
    ["agent", 5, () => post(`/agents/${agentId}/run`, { input: `Question ${n}` }, later)],
    ["workflow", 5, () => post(`/workflows/${workflowId}/execute`, { input: `pump ${n % 100}` })],
  ];
  return {
    failures,
    async run({ factor, seconds }) {
      const calls: Call[] = [];
      const runs = kinds.map(([kind, perSecond, work], seed) => {
        const timed = async () => {
          const started = performance.now();
          await work().catch((error: unknown) => failures.push(String(error)));
          const ms = performance.now() - started;
          calls.push({ kind, ms });
          return ms;
        };
        return runOpenLoop({ perSecond: perSecond * factor, seconds, seed: seed + 1, call: timed });
      });
      await Promise.all(runs);
      return calls;
    },
  };
}
