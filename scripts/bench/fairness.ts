import { startChild } from "./children.ts";
import { format, type Measured } from "./goals.ts";
import { median, runConcurrently } from "./measure.ts";
import { openStack, openTenant, type Stack } from "./stack.ts";

const workers = 2;
const bulkDocuments = 2_000;
const bulkRuns = 400;
const samples = 15;
const documentCharacters = 20_000;

type Client = { url: string; headers: Record<string, string>; agentId: string };
type Times = { ingest: number[]; run: number[] };

/**
 * What another tenant's single ingest and agent run take, both waited for, while what one tenant loaded in bulk is worked
 * off: against an idle platform, and against the same with jobs taken in the order in which they came.
 */
export async function fairnessBench(): Promise<Measured[]> {
  const fair = await measure("fair");
  const inOrder = await measure("first-come");
  return (["ingest", "run"] as const).map((what) => {
    const [idle, loaded, unfair] = [median(fair.idle[what]), median(fair.loaded[what]), median(inOrder.loaded[what])];
    return {
      what: `another tenant's ${what === "ingest" ? "ingest" : "agent run"} during a bulk load of ${bulkDocuments} documents and ${bulkRuns} runs`,
      anchor: `idle ${format(idle)} ms; in order of arrival ${format(unfair)} ms, ${format(unfair / idle)}×`,
      product: `${format(loaded)} ms`,
      value: loaded / idle,
      must: 3,
      aim: 2,
      isMoreBetter: false,
      unit: "×",
    };
  });
}

async function measure(order: "fair" | "first-come"): Promise<{ idle: Times; loaded: Times }> {
  const upstream = await startChild("./children/agent-upstream.ts");
  const env = { EDGE_BASE_URL: `${upstream.ready.url}/v1`, EDGE_MODEL: "bench" };
  const stack = await openStack({ workers, env, apiArgs: [order] });
  try {
    const [loader, other] = [await openClient(stack, "loader"), await openClient(stack, "other")];
    await sample(other, { atMost: 3, goesOn: async () => true }); // code is loaded and compiled
    const idle = await sample(other, { atMost: samples, goesOn: async () => true });
    await load(loader);
    return { idle, loaded: await sample(other, { atMost: samples, goesOn: () => hasBacklog(loader) }) };
  } finally {
    await stack.close();
    await upstream.stop();
  }
}

async function openClient(stack: Stack, name: string): Promise<Client> {
  const { url } = stack;
  const { headers } = await openTenant(stack, name);
  const agent = { name: "Bench", model: "meta-llm", systemPrompt: "You add.", tools: [{ type: "calculator" }] };
  const { agentId } = await post({ url, headers }, "/agents", agent, {});
  return { url, headers, agentId: String(agentId) };
}

async function post(
  { url, headers }: Pick<Client, "url" | "headers">,
  path: string,
  body: object,
  more: Record<string, string>,
): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { ...headers, ...more },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status >= 300) throw new Error(`POST ${path} answered ${response.status}: ${text}`);
  return JSON.parse(text);
}

let made = 0;
const nextDocument = () => {
  made += 1;
  return { title: `Paper ${made}`, content: `Paper ${made} on valve ${made * 7}. `.repeat(documentCharacters / 25) };
};
const ingest = (client: Client, prefer: string) => post(client, "/rag/ingest", nextDocument(), { prefer });
const run = (client: Client, prefer: string) =>
  post(client, `/agents/${client.agentId}/run`, { input: "Add up to five." }, { prefer });

async function timed(call: () => Promise<Record<string, unknown>>): Promise<number> {
  const started = performance.now();
  const response = await call();
  if ("statusUrl" in response) throw new Error("a job did not end within its two minutes");
  return performance.now() - started;
}

/** Ingests and runs at the same time, again and again, each until it has ended. */
async function sample(client: Client, options: { atMost: number; goesOn(): Promise<boolean> }): Promise<Times> {
  const times: Times = { ingest: [], run: [] };
  while (times.run.length < options.atMost && (await options.goesOn())) {
    const [ingested, ended] = await Promise.all([
      timed(() => ingest(client, "wait=120")),
      timed(() => run(client, "wait=120")),
    ]);
    times.ingest.push(ingested);
    times.run.push(ended);
  }
  return times;
}

/** Hands everything in, without waiting for any of it. */
async function load(client: Client): Promise<void> {
  const every = Math.round((bulkDocuments + bulkRuns) / bulkRuns);
  await runConcurrently(bulkDocuments + bulkRuns, 16, async (index) => {
    await (index % every === 0 ? run : ingest)(client, "respond-async");
  });
}

async function hasBacklog({ url, headers }: Client): Promise<boolean> {
  for (const kind of ["ingestion", "agent"]) {
    const response = await fetch(`${url}/jobs?kind=${kind}&status=queued&limit=1`, { headers });
    const { data } = (await response.json()) as { data: unknown[] };
    if (data.length === 0) return false;
  }
  return true;
}
