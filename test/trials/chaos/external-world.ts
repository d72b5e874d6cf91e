import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { seededRandom } from "../bench/measure.ts";
import { canaries, sownFor } from "./canaries.ts";
import { tenantOf, tenantsIn, ticketIn } from "./tickets.ts";
import { PARTS } from "./work.ts";

/** The world outside of the platform: a model provider, and a shop where agents place orders. */
export type ExternalWorld = {
  origin: string;
  /** As `127.0.0.1:4711`, for what an agent may call. */
  host: string;
  /** Where a process asks the provider, which knows it by that. */
  baseUrlOf(process: number): string;
  /** By ticket: how often each idempotency key was delivered. */
  orders: Map<string, Map<string, number>>;
  /** By idempotency key: the addresses that were called with it. */
  called: Map<string, Set<string>>;
  /** Chat calls that the provider has answered in full, and wants to be paid for. No two have the same numbers of tokens. */
  invoice: InvoiceLine[];
  /** Chat calls that were failed on purpose. */
  failed: number;
  /** Prompts that held the tickets of several tenants. */
  mixed: string[];
  /** What was sent with a value that guards mask or block. */
  unmasked: string[];
  close(): Promise<void>;
};

/** `process`: the one that asked; `at`: when it was answered, in ms since 1970. */
export type InvoiceLine = {
  tenant: number;
  model: string;
  prompt: number;
  completion: number;
  at: number;
  process: number;
};

/** Shares of calls that the provider answers with 503, or breaks off. */
const BUSY_SHARE = 0.03;
const CUT_SHARE = 0.02;
/** How long the model thinks, and the shop, from and to, in ms. */
const THINK_MS = [20, 150] as const;
const SHOP_MS = [5, 60] as const;

const chatPath = /^\/of\/(\d+)\/v1\/chat\/completions$/;

type WireMessage = { role: string; content: string | null };
type WireBody = { model: string; messages: WireMessage[]; tools?: unknown[] };

const emptyWorld = () => ({
  orders: new Map<string, Map<string, number>>(),
  called: new Map<string, Set<string>>(),
  invoice: [] as InvoiceLine[],
  failed: 0,
  mixed: [] as string[],
  unmasked: [] as string[],
});

export async function startExternalWorld(seed: number): Promise<ExternalWorld> {
  const random = seededRandom(seed);
  const between = ([from, to]: readonly [number, number]) => from + random() * (to - from);
  const world = emptyWorld();
  let origin = "";
  const noteUnmasked = (what: string, text: string) =>
    world.unmasked.push(...canariesIn(text).map((one) => `${one} in ${what}`));
  const chat = async (request: IncomingMessage, response: ServerResponse) => {
    const sent = await readText(request);
    noteUnmasked("a prompt", sent);
    const body = JSON.parse(sent) as WireBody; // the gateway's, which its own tests hold to the format
    const tenants = tenantsIn(body.messages.map(({ content }) => content ?? "").join("\n"));
    if (tenants.size > 1) world.mixed.push([...tenants].join(" and "));
    await delay(between(THINK_MS));
    const luck = random();
    if (luck < BUSY_SHARE + CUT_SHARE) {
      world.failed += 1;
      if (luck < CUT_SHARE) return void response.destroy();
      return reply(response, 503, { error: { message: "busy", type: "server_error", code: "busy" } });
    }
    const line = {
      tenant: Number([...tenants][0] ?? 0),
      model: body.model,
      prompt: 100 + (world.invoice.length % 1_000),
      completion: 20 + Math.floor(world.invoice.length / 1_000),
      at: Date.now(),
      process: Number(chatPath.exec(request.url ?? "")?.[1]),
    };
    world.invoice.push(line);
    reply(response, 200, toCompletion(body, origin, line));
  };
  const order = async (request: IncomingMessage, response: ServerResponse) => {
    const ticket = ticketIn(request.url ?? "") ?? "none";
    noteUnmasked("an order", `${request.url} ${await readText(request)}`);
    const key = String(request.headers["idempotency-key"] ?? "none");
    const deliveries = world.orders.get(ticket) ?? new Map<string, number>();
    world.orders.set(ticket, deliveries);
    deliveries.set(key, (deliveries.get(key) ?? 0) + 1);
    world.called.set(key, (world.called.get(key) ?? new Set()).add(`${origin}${request.url}`));
    await delay(between(SHOP_MS));
    reply(response, 200, { ordered: ticket, note: sownFor(tenantOf(ticket)) });
  };
  const server = createServer((request, response) => {
    const serve = chatPath.test(request.url ?? "") ? chat : order;
    serve(request, response).catch(() => response.destroy()); // the caller was killed in the middle of its request
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the world outside has no port");
  const host = `127.0.0.1:${address.port}`;
  origin = `http://${host}`;
  return Object.assign(world, {
    origin,
    host,
    baseUrlOf: (process: number) => `${origin}/of/${process}/v1`,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  });
}

const canariesIn = (text: string) => Object.values(canaries).filter((one) => text.includes(one));

/** With tools the model orders, looks into the documents, and answers; without, it answers at once. */
function toCompletion(
  { model, messages, tools }: WireBody,
  origin: string,
  { prompt, completion }: Pick<InvoiceLine, "prompt" | "completion">,
): object {
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const ticket = ticketIn(messages[asked]?.content ?? "") ?? "none";
  const turn = messages.slice(asked).filter(({ role }) => role === "assistant").length;
  const calls =
    tools === undefined ? [] : callsOf({ ticket, turn, origin, isBuyer: JSON.stringify(tools).includes('"buy"') });
  const content = calls.length > 0 ? `I use ${calls[0]?.name}.` : `Settled ${ticket}.${sownFor(tenantOf(ticket))}`;
  const toolCalls = calls.map(({ name, arguments: given }, place) => ({
    id: `call_${turn}_${place}`,
    type: "function",
    function: { name, arguments: JSON.stringify(given) },
  }));
  const message = { role: "assistant", content, ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}) };
  return {
    id: "chatcmpl-chaos",
    object: "chat.completion",
    created: 0,
    model,
    choices: [{ index: 0, message, finish_reason: calls.length > 0 ? "tool_calls" : "stop" }],
    usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
  };
}

type Turn = { ticket: string; turn: number; origin: string; isBuyer: boolean };

/** What the model calls in a turn: a clerk orders, then looks; a buyer buys all parts at once. */
function callsOf({ ticket, turn, origin, isBuyer }: Turn): { name: string; arguments: object }[] {
  if (isBuyer && turn > 0) return [];
  if (isBuyer)
    return Array.from({ length: PARTS }, (_, part) => {
      return { name: "buy", arguments: { url: `${origin}/orders/${ticket}?part=${part}`, method: "POST" } };
    });
  const call = [
    { name: "http_request", arguments: { url: `${origin}/orders/${ticket}`, method: "POST" } },
    { name: "rag_query", arguments: { query: `What is known of ${ticket}?` } },
  ][turn];
  return call ? [call] : [];
}

function reply(response: ServerResponse, status: number, body: object): void {
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

async function readText(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}
