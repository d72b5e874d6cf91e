import { type Behaviour, type FakeUsage, halves, piecesOf, usageOf } from "./behaviour.ts";
import { countUsage, textOf, type WireEvent, type WireFormat, type WireRequest } from "./wire-format.ts";

/** In this wire's words; any other word is one of its own. */
const stopReasons: Record<string, string> = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal",
};

/** `POST /v1/messages` (API reference, "Create a Message" and "Streaming messages"). */
export const messagesFormat: WireFormat = {
  refuse: (body, headers) => {
    const refuse = (message: string): Behaviour => ({ status: 400, errorMessage: message });
    if (headers["anthropic-version"] === undefined) return refuse("anthropic-version: header is required");
    if (body.max_tokens === undefined) return refuse("max_tokens: Field required");
    if (Number(body.temperature ?? 0) > 1) return refuse("temperature: range: 0..1");
    const turns = (body.messages ?? []) as WireTurn[];
    if (Object(body.thread).type === "continue") return undefined; // the turns before these are here
    const hasSystemTurns = String(headers["anthropic-beta"]).includes("mid-conversation");
    return rejectTurns(hasSystemTurns ? turns.filter(({ role }) => role !== "system") : turns, refuse);
  },
  toAnswer: toMessage,
  toEvents: toMessageEvents,
  closing: "",
  toError,
  errorEvent: `event: error\ndata: ${JSON.stringify(toError({ errorCode: "overloaded_error" }))}\n\n`,
  malformedEvent: 'event: content_block_delta\ndata: {"type": "content_block_delta", "index"\n\n',
};

type WireTurn = { role?: unknown; content?: unknown };
type WireBlock = { type: string; text?: string; id?: string; tool_use_id?: string };

/** Holds the turns against the rules of "Handle tool calls": roles, no empty text, each call answered in the next turn. */
function rejectTurns(turns: readonly WireTurn[], refuse: (message: string) => Behaviour): Behaviour | undefined {
  let asked: string[] = [];
  for (const turn of turns) {
    if (turn.role !== "user" && turn.role !== "assistant") return refuse(`messages: unexpected role ${turn.role}`);
    const blocks: WireBlock[] = Array.isArray(turn.content)
      ? turn.content
      : [{ type: "text", text: String(turn.content) }];
    if (blocks.some(({ type, text }) => type === "text" && text === ""))
      return refuse("messages: text content blocks must be non-empty");
    const answered = blocks.flatMap(({ tool_use_id }) => tool_use_id ?? []);
    if (asked.join() !== answered.join()) return refuse("messages: tool_use ids without tool_result in the next turn");
    asked = blocks.flatMap(({ type, id }) => (type === "tool_use" && id ? [id] : []));
  }
  return turns.length === 0 ? refuse("messages: at least one message is required") : undefined;
}

/** Anthropic counts cache reads and writes beside `input_tokens`, not in it. */
function toWireUsage(usage: FakeUsage) {
  const { cached_tokens: read = 0, cache_write_tokens: written = 0 } = usage;
  return {
    input_tokens: usage.prompt_tokens - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    output_tokens: usage.completion_tokens,
    service_tier: "standard",
  };
}

const wireUsageOf = (body: WireRequest, behaviour: Behaviour) => {
  const usage = usageOf(behaviour, () => countUsage(body, textOf(behaviour)));
  return usage && toWireUsage(usage);
};

const stopOf = ({ isRejection, finishReason, toolCalls }: Behaviour) => {
  const word = finishReason ?? (toolCalls ? "tool_calls" : "stop");
  return isRejection ? "refusal" : (stopReasons[word] ?? word);
};

function toMessage(body: WireRequest, behaviour: Behaviour): unknown {
  const text = piecesOf(behaviour).join("");
  const usage = wireUsageOf(body, behaviour);
  return {
    id: "msg_fake",
    type: "message",
    role: "assistant",
    model: body.model,
    content: [
      ...(behaviour.reasoning === undefined
        ? []
        : [{ type: "thinking", thinking: behaviour.reasoning, signature: "c2lnbmVk" }]),
      ...(text === "" ? [] : [{ type: "text", text }]),
      ...(behaviour.toolCalls ?? []).map(({ id, name, arguments: json }) => ({
        type: "tool_use",
        id,
        name,
        input: JSON.parse(json),
      })),
    ],
    stop_reason: stopOf(behaviour),
    stop_sequence: null,
    ...(usage === undefined ? {} : { usage }),
  };
}

function toMessageEvents(body: WireRequest, behaviour: Behaviour): WireEvent[] {
  const usage = wireUsageOf(body, behaviour);
  const events: WireEvent[] = [];
  const add = (kind: WireEvent["kind"], type: string, data: object, text = "") =>
    events.push({ kind, event: type, data: { type, ...data }, text });
  const message = { id: "msg_fake", type: "message", role: "assistant", model: body.model, content: [] };
  const atStart = usage === undefined ? {} : { usage: { ...usage, output_tokens: 1 } };
  add("head", "message_start", { message: { ...message, stop_reason: null, stop_sequence: null, ...atStart } });
  let index = 0;
  const addBlock = (block: object, name: string, deltas: { delta: object; text: string }[]) => {
    add(name === "" ? "head" : "piece", "content_block_start", { index, content_block: block }, name);
    if (index === 0) add("head", "ping", {});
    for (const { delta, text } of deltas) add("piece", "content_block_delta", { index, delta }, text);
    add("tail", "content_block_stop", { index });
    index++;
  };
  const { reasoning, toolCalls = [] } = behaviour;
  if (reasoning !== undefined) {
    const thinking = { delta: { type: "thinking_delta", thinking: reasoning }, text: reasoning };
    const signature = { delta: { type: "signature_delta", signature: "c2lnbmVk" }, text: "" };
    addBlock({ type: "thinking", thinking: "", signature: "" }, "", [thinking, signature]);
  }
  const pieces = piecesOf(behaviour).map((text) => ({ delta: { type: "text_delta", text }, text }));
  if (pieces.length > 0) addBlock({ type: "text", text: "" }, "", pieces);
  for (const { id, name, arguments: json } of toolCalls) {
    const parts = json === "{}" ? [""] : ["", ...halves(json)];
    const deltas = parts.map((text) => ({ delta: { type: "input_json_delta", partial_json: text }, text }));
    addBlock({ type: "tool_use", id, name, input: {} }, name, deltas);
  }
  const atEnd = usage === undefined ? {} : { usage: { output_tokens: usage.output_tokens } };
  add("tail", "message_delta", { delta: { stop_reason: stopOf(behaviour), stop_sequence: null }, ...atEnd });
  add("tail", "message_stop", {});
  return events;
}

function toError(behaviour: Behaviour): unknown {
  const message = behaviour.errorMessage ?? "The fake provider was told to fail.";
  return {
    type: "error",
    error: { type: behaviour.errorCode ?? "invalid_request_error", message },
    request_id: "req_fake",
  };
}
