import { Agent, request } from "undici";
import { prompt } from "../prompt.ts";
import type { Stack } from "../stack.ts";
import { queryText } from "../time-queries.ts";
import { documentCharacters, type Kind, searchedChunks, workflowSteps } from "./demand.ts";
import { makeText } from "./texts.ts";

/** Documents that are searched; their titles have numbers below this. */
const titles = searchedChunks / 20;
const END_TIMEOUT_MS = 60_000;
const LOOK_EVERY_MS = 10;

export type Works = Awaited<ReturnType<typeof openWorks>>;

/** One unit of each kind of work, as a client asks for it. Who searches is a tenant whose documents stay as they are. */
export async function openWorks(stack: Stack, searcher: Record<string, string>) {
  const dispatcher = new Agent({ connections: 256 });
  /** The status must be the expected one; the time until the whole response, in ms. */
  const post = async (path: string, body: object, expected = 200, headers = stack.headers): Promise<number> => {
    const started = performance.now();
    const response = await request(`${stack.url}${path}`, {
      method: "POST",
      headers: { ...headers, prefer: "respond-async" },
      body: JSON.stringify(body),
      dispatcher,
    });
    const text = await response.body.text();
    if (response.statusCode !== expected) throw new Error(`${path} answered ${response.statusCode}: ${text}`);
    return performance.now() - started;
  };
  const workflow = async (steps: number) => {
    // biome-ignore lint/suspicious/noThenProperty: so it is called in the interface
    const conditions = Array.from({ length: steps }, () => ({ type: "condition", expression: "true", then: [] }));
    return `/workflows/${await make(stack, "/workflows", { name: "Bench", steps: conditions })}/execute`;
  };
  const paths = {
    short: await workflow(workflowSteps["short workflow"]),
    long: await workflow(workflowSteps["long workflow"]),
    agent: `/agents/${await make(stack, "/agents", {
      name: "Bench",
      model: "meta-llm",
      systemPrompt: "You add.",
      tools: [{ type: "calculator" }],
    })}/run`,
  };
  const messages = [{ role: "user", content: prompt }];
  let number = 0; // no text is sent twice, so that no cache answers and no document is a duplicate
  const ingest = (characters: number) =>
    post("/rag/ingest", { content: makeText(++number, characters), title: `file ${number}` }, 202);
  const units: Record<Kind, () => Promise<number>> = {
    chat: () => post("/ai/chat", { messages }),
    "streamed chat": () => post("/ai/chat", { messages, stream: true }),
    "stored response": () => post("/v1/responses", { model: "bench", input: messages }),
    // A word that some documents have and one that none has: what a search costs depends on its words.
    query: () => post("/rag/query", { query: queryText(++number % titles, `x${number}`), topK: 10 }, 200, searcher),
    "no-op job": () => post("/bench/noop", {}, 202),
    "short workflow": () => post(paths.short, {}, 202),
    "long workflow": () => post(paths.long, {}, 202),
    "small document": () => ingest(documentCharacters["small document"]),
    "large document": () => ingest(documentCharacters["large document"]),
    "agent run": () => post(paths.agent, { input: "Add up to five." }, 202),
  };
  return {
    /** Does one unit, or submits it when it is a job; the time until the response, in ms. */
    run: (kind: Kind) => units[kind](),
    /** Waits until all jobs have ended. */
    async untilEnded(): Promise<void> {
      const deadline = performance.now() + END_TIMEOUT_MS;
      while ((await stack.api.ask({ type: "open-jobs" })).open !== 0) {
        if (performance.now() > deadline) throw new Error("jobs were still open after a minute");
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
    },
    close: () => dispatcher.close(),
  };
}

/** Makes a definition, and returns its id. */
async function make({ url, headers }: Stack, path: string, body: object): Promise<string> {
  const made = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const found = (await made.json()) as { workflowId?: string; agentId?: string };
  const id = found.workflowId ?? found.agentId;
  if (made.status !== 201 || !id) throw new Error(`${path} answered ${made.status}: ${JSON.stringify(found)}`);
  return id;
}
