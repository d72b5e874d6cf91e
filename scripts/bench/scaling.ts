import { setTimeout as delay } from "node:timers/promises";
import { startChild } from "./children.ts";
import { format, type Measured } from "./goals.ts";
import { growthLines } from "./growth.ts";
import { runConcurrently } from "./measure.ts";
import { openStack, type Stack } from "./stack.ts";

/** Few jobs of a queue at once in a worker, so that what a job waits for is the model and never the processor. */
const concurrencyFactor = "0.25";
const agentRuns = 48;
const compositeRuns = 96;
const warmUp = 4;
/** A model that takes its time, in ms, as large ones do. */
const thinkMs = 600;
const deadlineMs = 120_000;

/** Throughput of 1, 2 and 4 workers on jobs whose time is the model's, and how latency grows with the stored data. */
export async function scalingBench(): Promise<Measured[]> {
  const [one, two, four] = [await perSecond(1), await perSecond(2), await perSecond(4)];
  const line = (workers: number, rate: number, must: number, aim: number): Measured => ({
    what: `jobs/s of ${workers} workers, ${agentRuns} agent runs and ${compositeRuns} composite runs that wait on a model of ${thinkMs} ms`,
    anchor: `1 worker ${format(one)}/s`,
    product: `${format(rate)}/s`,
    value: rate / one,
    must,
    aim,
    isMoreBetter: true,
    unit: "×",
  });
  return [line(2, two, 1.9, 1.97), line(4, four, 3.6, 3.9), ...(await growthLines())];
}

async function perSecond(workers: number): Promise<number> {
  const upstream = await startChild("./children/agent-upstream.ts", { args: [String(thinkMs)] });
  const env = {
    EDGE_BASE_URL: `${upstream.ready.url}/v1`,
    EDGE_MODEL: "bench",
    WORKER_CONCURRENCY: concurrencyFactor,
  };
  const stack = await openStack({ workers, env });
  try {
    const agent = { name: "Bench", model: "meta-llm", systemPrompt: "You add.", tools: [{ type: "calculator" }] };
    const agentId = (await post(stack, "/agents", agent)).agentId ?? "";
    await runAll(stack, agentId, { agents: warmUp * workers, composites: warmUp * workers });
    const tookMs = await runAll(stack, agentId, { agents: agentRuns, composites: compositeRuns });
    return ((agentRuns + compositeRuns) / tookMs) * 1_000;
  } finally {
    await stack.close();
    await upstream.stop();
  }
}

/** Submits the runs and waits until all have completed. Returns the time from the first one's start to the last one's end, in ms. */
async function runAll(stack: Stack, agentId: string, count: { agents: number; composites: number }): Promise<number> {
  const run = { input: "Add up to five." };
  const execution = { pattern: "chain-of-thought", profile: "support", input: "Why?", models: ["meta-llm"] };
  const jobIds: string[] = [];
  await runConcurrently(count.agents + count.composites, 16, async (index) => {
    const isAgent = index < count.agents;
    const accepted = isAgent
      ? await post(stack, `/agents/${agentId}/run`, run)
      : await post(stack, "/composite/execute", execution);
    jobIds.push(accepted.jobId ?? "");
  });
  const deadline = performance.now() + deadlineMs;
  let [from, to] = [Number.POSITIVE_INFINITY, 0];
  for (const jobId of jobIds) {
    for (;;) {
      const { status, startedAt = "", finishedAt = "" } = await call(stack, "GET", `/jobs/${jobId}`);
      if (status === "completed") {
        [from, to] = [Math.min(from, Date.parse(startedAt)), Math.max(to, Date.parse(finishedAt))];
        break;
      }
      if (status === "failed" || performance.now() > deadline) throw new Error(`a job did not complete: ${status}`);
      await delay(50);
    }
  }
  return to - from;
}

const post = (stack: Stack, path: string, body: object) => call(stack, "POST", path, body);

async function call(stack: Stack, method: string, path: string, body?: object): Promise<Record<string, string>> {
  const response = await fetch(`${stack.url}${path}`, {
    method,
    headers: { ...stack.headers, prefer: "respond-async" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await response.text();
  if (response.status >= 300) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
  return JSON.parse(text);
}
