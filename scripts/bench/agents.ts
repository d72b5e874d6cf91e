import { setTimeout as delay } from "node:timers/promises";
import { agentRunsQueue } from "../../src/jobs/queues.ts";
import { type Child, startChild } from "./children.ts";
import { format, type Measured } from "./goals.ts";
import { runConcurrently } from "./measure.ts";
import { cpuMsOf, residentMb } from "./process-usage.ts";
import { openStack, type Stack } from "./stack.ts";

const runs = 200;
/** Answers of the model a run: four that ask for a tool, and the last. */
const iterations = 5;
const workers = 2;
const warmUp = 32;
const deadlineMs = 180_000;

/**
 * Runs of agents over two workers, with a model that thinks for 200 ms: the wall time against the least that this many places
 * for runs allow, the CPU that the workers spend an iteration, and their memory.
 */
export async function agentsBench(): Promise<Measured[]> {
  const upstream = await startChild("./children/agent-upstream.ts");
  const env = { EDGE_BASE_URL: `${upstream.ready.url}/v1`, EDGE_MODEL: "bench" };
  const stack = await openStack({ workers, env });
  try {
    const agentId = await makeAgent(stack);
    await runAll(stack, agentId, warmUp); // LangChain is loaded, and code compiled
    const idle = await Promise.all(stack.workers.map(residentMb));
    const cpu = await cpuOf(stack.workers);
    const started = performance.now();
    await runAll(stack, agentId, runs);
    const wallMs = performance.now() - started;
    const cpuMs = (await cpuOf(stack.workers)) - cpu;
    const resident = Math.max(...(await Promise.all(stack.workers.map(residentMb))));
    return toLines({ wallMs, cpuMs, resident, idle: Math.max(...idle), thinkMs: Number(upstream.ready.thinkMs) });
  } finally {
    await stack.close();
    await upstream.stop();
  }
}

const cpuOf = async (children: readonly Child[]) =>
  (await Promise.all(children.map((child) => cpuMsOf(child.process.pid)))).reduce((sum, one) => sum + one, 0);

async function makeAgent({ url, headers }: Stack): Promise<string> {
  const agent = { name: "Bench", model: "meta-llm", systemPrompt: "You add.", tools: [{ type: "calculator" }] };
  const made = await fetch(`${url}/agents`, { method: "POST", headers, body: JSON.stringify(agent) });
  const { agentId } = (await made.json()) as { agentId: string };
  return agentId;
}

/** Submits the runs and waits until each has ended with its answer. */
async function runAll({ url, headers }: Stack, agentId: string, count: number): Promise<void> {
  const body = JSON.stringify({ input: "Add up to five." });
  const jobIds: string[] = [];
  await runConcurrently(count, 16, async () => {
    const accepted = await fetch(`${url}/agents/${agentId}/run`, {
      method: "POST",
      headers: { ...headers, prefer: "respond-async" },
      body,
    });
    const { jobId } = (await accepted.json()) as { jobId: string };
    jobIds.push(jobId);
  });
  const deadline = performance.now() + deadlineMs;
  for (const jobId of jobIds) {
    for (;;) {
      const job = (await (await fetch(`${url}/jobs/${jobId}`, { headers })).json()) as Job;
      if (job.status === "completed" && job.result?.steps === iterations) break;
      if (job.status === "failed" || performance.now() > deadline) throw new Error(`a run did not end: ${job.status}`);
      await delay(20);
    }
  }
}
type Job = { status: string; result?: { steps: number } };

function toLines(found: {
  wallMs: number;
  cpuMs: number;
  resident: number;
  idle: number;
  thinkMs: number;
}): Measured[] {
  const places = workers * agentRunsQueue.concurrency;
  const idealMs = Math.ceil(runs / places) * iterations * found.thinkMs;
  const cpuMs = found.cpuMs / (runs * iterations);
  return [
    {
      what: `${runs} agent runs of ${iterations} iterations, ${workers} workers, a model of ${found.thinkMs} ms`,
      anchor: `${places} at once: ${format(idealMs / 1_000)} s`,
      product: `${format(found.wallMs / 1_000)} s`,
      value: found.wallMs / idealMs,
      must: 1.25,
      aim: 1.1,
      isMoreBetter: false,
      unit: "×",
    },
    {
      what: "CPU of a worker an iteration of an agent",
      anchor: `thinking ${format(found.thinkMs)} ms`,
      product: `${format(cpuMs)} ms, ${format((cpuMs / found.thinkMs) * 100)}% of the model's time`,
      value: cpuMs,
      must: 20,
      aim: 10,
      isMoreBetter: false,
      unit: " ms",
    },
    {
      what: `memory of a worker after ${runs} agent runs`,
      anchor: `before ${format(found.idle)} MB`,
      product: `${format(found.resident)} MB`,
      value: found.resident / found.idle,
      must: 1.5,
      aim: 1.2,
      isMoreBetter: false,
      unit: "×",
    },
  ];
}
