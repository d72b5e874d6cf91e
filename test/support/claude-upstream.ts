import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { estimateTokens } from "../../src/gateway/tokens.ts";

/** A block of a turn, as the Messages API has it. */
export type WireBlock = { type: string; [field: string]: unknown };
type WireTurn = { role: "user" | "assistant"; content: string | WireBlock[] };
type WireBody = {
  model: string;
  stream?: boolean;
  system?: string | WireBlock[];
  tools?: WireBlock[];
  messages: WireTurn[];
  [parameter: string]: unknown;
};
type WireUsage = {
  input_tokens: number;
  cache_read_input_tokens: number;
  cache_creation_input_tokens: number;
  output_tokens: number;
};

/** A request, with what it is charged for. A refused one is charged for nothing. */
export type ClaudeCall = {
  body: WireBody;
  /** The body as it came. */
  raw: string;
  /** Which answer to the last question this is, from 1. */
  turn: number;
  usage: WireUsage | undefined;
};
/** What the model says; a status to fail with; or a stream that breaks off after so many blocks. */
export type ClaudeAnswer = { content: WireBlock[]; breaksAfter?: number } | { status: number };
type ClaudeScript = (call: Omit<ClaudeCall, "usage">) => ClaudeAnswer | Promise<ClaudeAnswer>;

/** Billionths of a USD a token. */
export type ClaudePrice = { input: number; cached: number; cacheWrite: number; output: number };

export type ClaudeUpstream = {
  origin: string;
  calls: ClaudeCall[];
  /** Sets the script, and forgets calls and prompts. */
  play(script: ClaudeScript): void;
  /** What all calls cost, in billionths of a USD. */
  invoice(price: ClaudePrice): number;
  close(): Promise<void>;
};

/** Prefixes below this many tokens are not kept; further back than this many blocks none is looked for. */
const LEAST_TOKENS = 512;
const LOOK_BACK = 20;
const MAX_BREAKPOINTS = 4;

/**
 * A server on loopback that plays Claude with its prompt cache: what ends at a breakpoint is kept, and read by a call that
 * begins alike ("Prompt caching" of Anthropic's documentation).
 */
export async function startClaudeUpstream(): Promise<ClaudeUpstream> {
  const calls: ClaudeCall[] = [];
  let script: ClaudeScript = () => ({ content: [{ type: "text", text: "ok" }] });
  let kept = new Set<string>();
  const server = createServer(async (request, response) => {
    const raw = await readText(request);
    const body: WireBody = JSON.parse(raw);
    const asked = body.messages.findLastIndex(({ role, content }) => role === "user" && !holdsResults(content));
    const turn = body.messages.slice(asked).filter(({ role }) => role === "assistant").length + 1;
    const call: ClaudeCall = { body, raw, turn, usage: undefined };
    calls.push(call);
    const answer = await script(call);
    if (response.destroyed) return;
    const error = "status" in answer ? answer.status : countMarks(body) > MAX_BREAKPOINTS ? 400 : undefined;
    if (error !== undefined || "status" in answer) return refuse(response, error ?? 400);
    const said = answer.content.slice(0, answer.breaksAfter);
    call.usage = { ...readCache(body, kept), output_tokens: said.reduce((sum, block) => sum + tokensOf(block), 0) };
    if (body.stream === true) sendEvents(response, body.model, answer, call.usage);
    else sendJson(response, body.model, answer, call.usage);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the upstream has no port");
  return {
    origin: `http://127.0.0.1:${address.port}`,
    calls,
    play(next) {
      calls.length = 0;
      kept = new Set();
      script = next;
    },
    invoice: (price) => calls.reduce((sum, { usage }) => sum + (usage === undefined ? 0 : chargeOf(usage, price)), 0),
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/** The blocks of an assistant's turn in a request. */
export const blocksOf = ({ content }: WireTurn): WireBlock[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : content;

const holdsResults = (content: WireTurn["content"]) =>
  typeof content !== "string" && content.some(({ type }) => type === "tool_result");

const countMarks = (body: WireBody) => toPrompt(body).filter(({ isMarked }) => isMarked).length;

/** What a call costs, in billionths of a USD. */
export const chargeOf = (usage: WireUsage, price: ClaudePrice) =>
  usage.input_tokens * price.input +
  usage.cache_read_input_tokens * price.cached +
  usage.cache_creation_input_tokens * price.cacheWrite +
  usage.output_tokens * price.output;

/** All blocks of a prompt in the order in which the API reads them: tools, instructions, turns. */
function toPrompt({ tools = [], system = [], messages }: WireBody): { text: string; isMarked: boolean }[] {
  const instructions: WireBlock[] = typeof system === "string" ? [{ type: "text", text: system }] : system;
  const turns = messages.flatMap((turn) => blocksOf(turn).map((block) => ({ role: turn.role, ...block })));
  return [...tools, ...instructions, ...turns].map(({ cache_control: mark, ...block }: Record<string, unknown>) => {
    return { text: JSON.stringify(block), isMarked: mark !== undefined };
  });
}

/** Which tokens of a prompt are read from the cache, and which are written to it. */
function readCache(body: WireBody, kept: Set<string>): Omit<WireUsage, "output_tokens"> {
  const blocks = toPrompt(body);
  const tokens = blocks.map(({ text }) => estimateTokens(text));
  const tokensTo = (end: number) => tokens.slice(0, end).reduce((sum, one) => sum + one, 0);
  const prefixTo = (end: number) =>
    `${body.model} ${blocks
      .slice(0, end)
      .map(({ text }) => text)
      .join("\n")}`;
  const marks = blocks.flatMap(({ isMarked }, place) => (isMarked ? [place + 1] : []));
  let read = 0;
  for (const mark of marks)
    for (let end = mark; end > Math.max(read, mark - LOOK_BACK); end--) if (kept.has(prefixTo(end))) read = end;
  const kepts = marks.filter((end) => tokensTo(end) >= LEAST_TOKENS);
  for (const end of kepts) kept.add(prefixTo(end));
  const written = Math.max(read, kepts.at(-1) ?? 0);
  return {
    input_tokens: tokensTo(blocks.length) - tokensTo(written),
    cache_read_input_tokens: tokensTo(read),
    cache_creation_input_tokens: tokensTo(written) - tokensTo(read),
  };
}

/** What a block of an answer says, by the product's own estimate: of a stream that breaks off nobody knows better. */
function tokensOf({ text, thinking, name, input }: WireBlock): number {
  const said = estimateTokens(String(text ?? "")) + estimateTokens(String(thinking ?? ""));
  return input === undefined ? said : said + estimateTokens(String(name)) + estimateTokens(JSON.stringify(input));
}

async function readText(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

function refuse(response: ServerResponse, status: number): void {
  response.writeHead(status, { "content-type": "application/json" });
  const type = status === 529 ? "overloaded_error" : "invalid_request_error";
  response.end(JSON.stringify({ type: "error", error: { type, message: "scripted" } }));
}

type Said = { content: WireBlock[]; breaksAfter?: number };
const stopOf = (content: readonly WireBlock[]) =>
  content.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn";

function sendJson(response: ServerResponse, model: string, { content }: Said, usage: WireUsage): void {
  const about = { id: "msg_1", type: "message", role: "assistant", model, stop_sequence: null };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ ...about, content, stop_reason: stopOf(content), usage }));
}

function sendEvents(response: ServerResponse, model: string, { content, breaksAfter }: Said, usage: WireUsage): void {
  const send = (type: string, data: object) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  response.writeHead(200, { "content-type": "text/event-stream" });
  send("message_start", { message: { id: "msg_1", role: "assistant", model, usage: { ...usage, output_tokens: 1 } } });
  for (const [index, block] of content.slice(0, breaksAfter).entries()) {
    const { start, deltas } = toStreamed(block);
    send("content_block_start", { index, content_block: start });
    for (const delta of deltas) send("content_block_delta", { index, delta });
    send("content_block_stop", { index });
  }
  if (breaksAfter !== undefined) {
    response.write(": cut\n\n", () => response.destroy());
    return;
  }
  const { output_tokens } = usage;
  send("message_delta", { delta: { stop_reason: stopOf(content) }, usage: { output_tokens } });
  send("message_stop", {});
  response.end();
}

/** A block as a stream gives it: its texts and its signature in halves. */
function toStreamed(block: WireBlock): { start: object; deltas: object[] } {
  const halves = (type: string, field: string, text: unknown) => {
    const whole = String(text);
    const middle = Math.ceil(whole.length / 2);
    return [whole.slice(0, middle), whole.slice(middle)].map((half) => ({ type, [field]: half }));
  };
  const { type, text, thinking, signature, input } = block;
  if (type === "text") return { start: { ...block, text: "" }, deltas: halves("text_delta", "text", text) };
  if (type === "tool_use") {
    const json = JSON.stringify(input);
    return { start: { ...block, input: {} }, deltas: halves("input_json_delta", "partial_json", json) };
  }
  if (type !== "thinking") return { start: block, deltas: [] };
  const thought = halves("thinking_delta", "thinking", thinking);
  const signed = halves("signature_delta", "signature", signature);
  return { start: { ...block, thinking: "", signature: "" }, deltas: [...thought, ...signed] };
}
