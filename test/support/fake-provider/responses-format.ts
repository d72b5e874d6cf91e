import { type Behaviour, halves, piecesOf, usageOf } from "./behaviour.ts";
import { chatFormat, isAlwaysReasoning, isReasoningByDefault, isReasoningModel, tierOf } from "./openai-format.ts";
import { countUsage, textOf, type WireEvent, type WireFormat, type WireRequest } from "./wire-format.ts";

const created = 1_790_000_000;
const incomplete = { length: "max_output_tokens", content_filter: "content_filter" } as const;

/** `POST /v1/responses` (API reference, "Create a model response" and "Streaming events"). */
export const responsesFormat: WireFormat = {
  refuse: (body) => {
    const refuse = (errorMessage: string, status = 400): Behaviour => ({
      status,
      errorCode: "invalid_value",
      errorMessage,
    });
    if (!Array.isArray(body.input)) return refuse("Missing required parameter: 'input'.");
    for (const unknown of ["messages", "stop", "seed", "max_tokens", "response_format", "reasoning_effort"])
      if (body[unknown] !== undefined) return refuse(`Unknown parameter: '${unknown}'.`);
    if (Number(body.max_output_tokens ?? 16) < 16)
      return refuse("Invalid 'max_output_tokens': integer below minimum value.");
    const isReasoning = isReasoningModel(body.model);
    if (body.include !== undefined && !isReasoning)
      return refuse("Encrypted content is not supported with this model.");
    const effort = (body.reasoning as { effort?: string } | undefined)?.effort;
    if (effort === "none" && isAlwaysReasoning(body.model)) return refuse("Unsupported value: 'reasoning.effort'.");
    const reasonsNow = effort === undefined ? isReasoningByDefault(body.model) : effort !== "none";
    if (reasonsNow && body.temperature !== undefined) return refuse("Unsupported parameter: 'temperature'.");
    const items = body.input as WireItem[];
    if (!isReasoning && items.some(({ type }) => type === "reasoning"))
      return refuse("Reasoning input items can only be provided to a reasoning or computer use model.");
    return rejectItems(items, refuse);
  },
  toAnswer: toResponse,
  toEvents: toResponseEvents,
  closing: "",
  toError: chatFormat.toError,
  errorEvent: `event: error\ndata: ${JSON.stringify({ type: "error", code: "overloaded", message: "overloaded", param: null, sequence_number: 99 })}\n\n`,
  malformedEvent: 'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", "delta"\n\n',
};

type WireItem = { type?: string; id?: string; encrypted_content?: unknown; call_id?: string };

/** With `store: false`, each reasoning item needs its content and what came after it, each tool output its call. */
function rejectItems(items: readonly WireItem[], refuse: (message: string, status?: number) => Behaviour) {
  const called = new Set<string | undefined>();
  for (const [place, { type, id, encrypted_content: encrypted, call_id: callId }] of items.entries()) {
    if (type === "reasoning" && typeof encrypted !== "string")
      return refuse(`Item with id '${id}' not found. Items are not persisted when \`store\` is set to false.`, 404);
    if (type === "reasoning" && (items[place + 1] === undefined || items[place + 1]?.type === "function_call_output"))
      return refuse(`Item '${id}' of type 'reasoning' was provided without its required following item.`);
    if (type === "function_call") called.add(callId);
    if (type === "function_call_output" && !called.has(callId))
      return refuse(`No tool call found for function call output with call_id ${callId}.`);
  }
  return undefined;
}

const wireUsageOf = (body: WireRequest, behaviour: Behaviour) => {
  const usage = usageOf(behaviour, () => countUsage(body, textOf(behaviour)));
  if (usage === undefined) return null;
  const { prompt_tokens, completion_tokens, cached_tokens = 0, cache_write_tokens = 0, reasoning_tokens = 0 } = usage;
  return {
    input_tokens: prompt_tokens,
    input_tokens_details: { cached_tokens, cache_write_tokens },
    output_tokens: completion_tokens,
    output_tokens_details: { reasoning_tokens },
    total_tokens: prompt_tokens + completion_tokens,
  };
};

type Item = Record<string, unknown> & { type: string };

/** The output items in their order: reasoning, the text, the calls. */
function itemsOf(behaviour: Behaviour): Item[] {
  const { reasoning, toolCalls = [], isRejection } = behaviour;
  const text = piecesOf(behaviour).join("");
  const summary = [{ type: "summary_text", text: reasoning }];
  const summed = { id: "rs_fake", type: "reasoning", summary, encrypted_content: "c2VjcmV0" };
  const content = isRejection ? { type: "refusal", refusal: text } : { type: "output_text", annotations: [], text };
  const message = { id: "msg_fake", type: "message", status: "completed", role: "assistant", content: [content] };
  return [
    ...(behaviour.reasoningItems ?? (reasoning === undefined ? [] : [summed])),
    ...(text === "" ? [] : [message]),
    ...toolCalls.map(({ id, name, arguments: json }, n) => ({
      id: `fc_${n}`,
      type: "function_call",
      status: "completed",
      arguments: json,
      call_id: id,
      name,
    })),
  ];
}

/** The response object. A stream begins with one that is in progress. */
function toResponse(body: WireRequest, behaviour: Behaviour, isBegun = false) {
  const { failure, finishReason } = behaviour;
  const reason = finishReason === "length" || finishReason === "content_filter" ? incomplete[finishReason] : undefined;
  const status = failure ? "failed" : reason ? "incomplete" : "completed";
  return {
    id: "resp_fake",
    object: "response",
    created_at: created,
    status: isBegun ? "in_progress" : status,
    error: isBegun ? null : (failure ?? null),
    incomplete_details: isBegun || reason === undefined ? null : { reason },
    model: body.model,
    output: isBegun || failure ? [] : itemsOf(behaviour),
    store: false,
    service_tier: tierOf(body),
    usage: isBegun || failure ? null : wireUsageOf(body, behaviour),
  };
}

/** The semantic events, numbered; what a client shows comes in pieces. */
function toResponseEvents(body: WireRequest, behaviour: Behaviour): WireEvent[] {
  const events: WireEvent[] = [];
  const add = (kind: WireEvent["kind"], type: string, data: object, text = "") =>
    events.push({ kind, event: type, data: { type, sequence_number: events.length, ...data }, text });
  add("head", "response.created", { response: toResponse(body, behaviour, true) });
  add("head", "response.in_progress", { response: toResponse(body, behaviour, true) });
  const { failure } = behaviour;
  for (const [place, item] of (failure ? [] : itemsOf(behaviour)).entries()) {
    const at = { output_index: place, item_id: item.id };
    const name = item.type === "function_call" ? String(item.name) : "";
    const begun = { ...item, ...emptied[item.type], ...("status" in item ? { status: "in_progress" } : {}) };
    add(name === "" ? "head" : "piece", "response.output_item.added", { output_index: place, item: begun }, name);
    for (const { event, text, ...more } of deltasOf(item, behaviour))
      add("piece", event, { ...at, ...more, delta: text }, text);
    add("tail", "response.output_item.done", { output_index: place, item });
  }
  const response = toResponse(body, behaviour);
  add("tail", `response.${response.status}`, { response });
  return events;
}

/** What an item does not have yet when it begins. */
const emptied: Record<string, object> = {
  message: { content: [] },
  function_call: { arguments: "" },
  reasoning: { summary: [], encrypted_content: "YmVndW4" },
};

function deltasOf(item: Item, behaviour: Behaviour): { event: string; text: string; summary_index?: number }[] {
  if (item.type === "function_call")
    return halves(String(item.arguments)).map((text) => ({ event: "response.function_call_arguments.delta", text }));
  if (item.type === "message") {
    const event = behaviour.isRejection ? "response.refusal.delta" : "response.output_text.delta";
    return piecesOf(behaviour).map((text) => ({ event, text, content_index: 0 }));
  }
  const summary = Array.isArray(item.summary) ? item.summary : [];
  return summary.map(({ text }, n) => ({ event: "response.reasoning_summary_text.delta", text, summary_index: n }));
}
