import { defined } from "../../../lib/defined.ts";
import { readLogprobs } from "../../logprobs.ts";
import { toTurn } from "../../messages.ts";
import { type Finish, finishOf, readFinish } from "../finish-reasons.ts";
import { type CompletionResult, type Served, type ToolDefinition, toServed, type Usage } from "../provider.ts";
import { readCalls } from "../tool-calls.ts";
import { toTokens } from "../usage.ts";
import { endedInError, fromReportedError, parseWire } from "../wire-errors.ts";
import { readReasoningDetails, type WireCompletion, wireCompletion, wireUsage } from "./schemas.ts";

/**
 * Reads the answer of `POST /chat/completions`; `tools` are those that it was asked with.
 * @throws AppError `provider_failed` when it is not one, and when the model could not finish it; what it reports instead of one.
 */
export function fromWireChat(
  body: string,
  requestedModel: string,
  tools?: readonly ToolDefinition[],
): CompletionResult {
  const completion = parseWire(wireCompletion, body, "is not a chat completion");
  const result = toResult(completion, requestedModel, tools);
  const [{ finish_reason: reason, error: ofChoice }] = completion.choices;
  const error = completion.error ?? ofChoice;
  if (error && result.text === "" && result.toolCalls.length === 0) throw fromReportedError(error);
  if (error || readFinish(reason) === "error") throw endedInError(result, error);
  return result;
}

/** What a completion that broke off or does not fit reports and says; undefined when it is none at all. */
export function measureWireChat(begun: unknown): Served | undefined {
  const parsed = wireCompletion.safeParse(begun);
  return parsed.success ? toServed(toResult(parsed.data, "")) : undefined;
}

function toResult(
  { choices, usage, id, model, service_tier: tier }: WireCompletion,
  requestedModel: string,
  tools?: readonly ToolDefinition[],
): CompletionResult {
  const [{ message, finish_reason: reason, logprobs }] = choices;
  const asked = message.tool_calls?.map((call) => ({ id: call.id, ...call.function }));
  const calls = asked?.length ? asked : message.function_call ? [message.function_call] : [];
  const finish = readFinish(reason, calls.length > 0);
  const ended: Finish = finishOf(finish === "error" ? undefined : finish, calls.length > 0);
  const toolCalls = readCalls(calls, defined({ isCut: ended.finishReason === "length", tools }));
  const said = readContent(message.content);
  const text = said.text || (message.refusal ?? "");
  const reasoning = message.reasoning_content ?? message.reasoning ?? said.reasoning;
  const items = readReasoningDetails(message.reasoning_details).map((item) => ({
    index: item.index,
    part: { type: "reasoning" as const, item },
  }));
  return defined({
    text,
    reasoning: reasoning || undefined,
    toolCalls,
    parts: items.length > 0 ? toTurn(text, toolCalls, items) : undefined,
    ...ended,
    usage: fromWireUsage(usage, tier),
    responseId: id || undefined,
    model: model ?? requestedModel,
    logprobs: readLogprobs(logprobs),
  });
}

/** The usage of the wire in ours; undefined when the server reported none that can be read. */
export function fromWireUsage(reported: unknown, tier?: unknown): Usage | undefined {
  if (!reported) return undefined; // most chunks have none: a schema that fails is slow
  const { data } = wireUsage.safeParse(reported);
  if (data === undefined) return undefined;
  return toTokens({
    input: data.prompt_tokens,
    output: data.completion_tokens,
    total: data.total_tokens,
    ofInput: data.prompt_tokens_details,
    ofOutput: data.completion_tokens_details,
    tier,
  });
}

type Said = { text: string; reasoning: string };

/** Parts of one content that are read, and levels of them. */
const MAX_PARTS = 10_000;
const MAX_DEPTH = 3;

/** What a model said: a text, or, of Mistral and others, a list of parts, some of which are what it thought. */
export function readContent(content: unknown, depth = 0): Said {
  if (typeof content === "string") return { text: content, reasoning: "" };
  if (typeof content !== "object" || content === null || depth > MAX_DEPTH) return { text: "", reasoning: "" };
  if (!Array.isArray(content)) return readPart(content, depth);
  const said = content.slice(0, MAX_PARTS).map((part) => readContent(part, depth + 1));
  return { text: said.map(({ text }) => text).join(""), reasoning: said.map(({ reasoning }) => reasoning).join("") };
}

function readPart(part: object, depth: number): Said {
  const { type, text, thinking, reasoning, refusal, content } = Object(part);
  if (type === "thinking" || type === "reasoning") {
    const thought = readContent(thinking ?? reasoning ?? text ?? content, depth + 1);
    return { text: "", reasoning: thought.text + thought.reasoning };
  }
  return readContent(text ?? refusal ?? content, depth + 1);
}
