import type { GuardPlace } from "../../guards/rules.ts";
import { defined } from "../../lib/defined.ts";
import { AppError } from "../../lib/errors.ts";
import { tryParseJson } from "../../lib/try-parse-json.ts";
import type { PolicyGuard } from "../../tenancy/guard-policies.ts";
import type { CataloguedModel } from "../catalogue.ts";
import type { GatewayDeps } from "../deps.ts";
import {
  type AssistantPart,
  type Content,
  forProvider,
  type Message,
  type ToolCall,
  textOf,
  withoutReasoning,
} from "../messages.ts";
import type { CallEnd } from "../money/account.ts";
import { boundChat } from "../money/prices.ts";
import type { CallContext, CompletionRequest, FinishReason } from "../providers/provider.ts";
import { toArguments } from "../providers/tool-calls.ts";
import type { AnswerFacts } from "../resilience/call-attributes.ts";
import { askModel, type ModelAttempt } from "../resilience/retry.ts";
import type { AttemptPermit } from "../resilience/target.ts";
import { estimateMessageTokens } from "../tokens.ts";
import { keepToSettings, maxTemperatureOf } from "./capabilities.ts";
import type { RoutingView } from "./outcome.ts";
import { type PlannedChat, reportFallback } from "./plan.ts";
import type { ChatRequest } from "./request.ts";
import { findMismatch } from "./response-format.ts";
import type { Routing } from "./route-model.ts";

/** Texts kept in a log record are cut to this many characters a message; a record stays far below a document's limit. */
const KEPT_CHARACTERS = 20_000;

/** How to ask a model, and what counts as the start of its answer: the whole answer, or the first parts of its stream. */
type Asking<T> = {
  isStreamed: boolean;
  /** Ends the call. It is the caller's signal, unless the call may end earlier. */
  signal?: AbortSignal;
  /** For the span of a call that is answered whole. */
  describe?: (result: T) => AnswerFacts;
  ask(request: CompletionRequest, context: CallContext, permit: AttemptPermit): Promise<T>;
};

/** The text of an answer and the tokens it used, counted by the provider or else estimated. */
type Served = Pick<CallEnd, "usage"> & Required<Pick<CallEnd, "estimate">> & { text: string };

/** A model that has started to answer a chat. `settle` or `fail`, whichever comes first, settles its record. */
export type Attempt<T> = Awaited<ReturnType<typeof attempt<T>>>;

/**
 * Asks one model of a planned chat, with retries, for a whole answer or a stream. If the model does not start to answer, its
 * record is settled here.
 * @throws AppError as `askModel`.
 */
export async function attempt<T>(
  deps: GatewayDeps,
  chat: PlannedChat,
  modelAttempt: ModelAttempt,
  { ask, ...asking }: Asking<T>,
) {
  const { caller } = chat;
  const { routing, target } = modelAttempt;
  const { model } = target;
  const request = toCompletionRequest(chat.request, model);
  const { maxTokens, temperature, topP } = request;
  const about = {
    caller,
    kind: "chat" as const,
    inputTokens: () => estimateMessageTokens(request.messages, model),
    toBounds: () => boundChat(model, request),
    facts: { maxTokens, temperature, topP },
  };
  const { call, result } = await askModel(deps, modelAttempt, { ...about, ...asking }, (call) => {
    const capped = call.capped(request);
    return (context, permit) => readably(capped, (readable) => ask(readable, context, permit));
  });
  reportFallback(caller, routing, chat.request);
  const toEnd = ({ text, ...served }: Served): CallEnd => ({
    ...served,
    content: () => toContent(request.messages, text, caller),
  });
  return {
    result,
    model,
    request,
    onFirstToken: call.onFirstToken,
    /**
     * Settles a complete answer. Returns what its outcome reports besides the content.
     * @throws AppError `response_format_mismatch`, and what checks of schemas throw. The answer was served, so it is charged.
     */
    async settle({ finishReason, ...served }: Served & { finishReason: FinishReason }) {
      const { responseFormat } = request;
      const answer = { text: served.text, finishReason };
      const mismatch = responseFormat && (await findMismatch(deps.schemaChecks, caller, responseFormat, answer));
      const end = { ...toEnd(served), finishReason };
      const settled = call.settle(mismatch === undefined ? end : { ...end, error: mismatch });
      if (mismatch !== undefined) throw mismatch;
      const { id, provider } = model;
      const about = { logId: call.logId, finishReason, model: id, provider, cached: false };
      return { ...about, routing: toRoutingView(routing), ...settled };
    },
    /** Settles an answer that broke off: its provider bills what it has served. */
    fail: (error: unknown, served: Served) => void call.settle({ ...toEnd(served), error }),
  };
}

/**
 * Asks a provider once more without the reasoning of earlier turns, if it could not read that. The refused request is not
 * charged.
 */
async function readably<T>(request: CompletionRequest, ask: (request: CompletionRequest) => Promise<T>): Promise<T> {
  try {
    return await ask(request);
  } catch (error) {
    const isUnreadable = error instanceof AppError && error.reason === "reasoning_unreadable";
    const messages = isUnreadable ? withoutReasoning(request.messages) : undefined;
    if (messages === undefined) throw error;
    return ask({ ...request, messages });
  }
}

export function toRoutingView({ requested, model, reason, skipped }: Routing): RoutingView {
  const view = { requested, model: model.id, provider: model.provider, reason };
  return skipped === undefined ? view : { ...view, skipped: [...skipped] };
}

/** The texts for the log record. `isGuarded`: they are what guards have let through by the rules of now. */
export function toContent(
  messages: readonly Message[],
  text: string,
  { guard, isGuarded = true }: { guard?: PolicyGuard | undefined; isGuarded?: boolean } = {},
) {
  const hide = (said: string, place: GuardPlace) =>
    guard?.toLogged(said, place, { most: KEPT_CHARACTERS, isGuarded }) ?? said.slice(0, KEPT_CHARACTERS);
  const kept = messages.map(({ role, content }) => {
    return { role, content: hide(textOf(content), role === "tool" ? "toolOutput" : "input") };
  });
  return { messages: kept, text: hide(text, "output") };
}

/**
 * The request in the provider's terms: the routed model, the system prompt put before the messages, and what the model
 * needs to take a temperature.
 */
export function toCompletionRequest(request: ChatRequest, model: CataloguedModel): CompletionRequest {
  const { systemPrompt, options: _o, temperature: _t, preferredTemperature, topP: _p, messages, ...rest } = request;
  const own = withWholeCalls(forProvider(messages, model.provider));
  // A model's reasoning is worth more than a temperature that is only preferred.
  const preferred = model.reasons === "by-default" ? undefined : preferredTemperature;
  const sampling = toSampling(model, request, preferred);
  keepToSettings(model, rest, request);
  if (!model.takesAllowedTools) offerAllowed(rest);
  const isReasoningOff = model.reasons !== undefined && sampling !== undefined;
  return {
    ...rest,
    ...sampling,
    ...(isReasoningOff ? { effort: "none" as const } : {}),
    ...(model.efforts?.length ? { canReason: true as const } : {}),
    model: model.wireId ?? model.id,
    messages: systemPrompt === undefined ? own : [{ role: "system", content: systemPrompt }, ...own],
  };
}

/** Leaves out the tools that may not be called. */
function offerAllowed(request: Pick<CompletionRequest, "tools" | "allowedTools">): void {
  if (request.allowedTools === undefined) return;
  const allowed = new Set(request.allowedTools);
  request.tools = request.tools?.filter(({ name }) => allowed.has(name)) ?? [];
  delete request.allowedTools;
}

/** Temperature and `top_p` as the model takes them. A requested value is clamped, a preferred one is left out. */
function toSampling(model: CataloguedModel, request: ChatRequest, preferred?: number) {
  const maxTemperature = maxTemperatureOf(model, request);
  const { temperature, topP } = request;
  if (maxTemperature === undefined) return undefined;
  const fitting = preferred !== undefined && preferred <= maxTemperature ? preferred : undefined;
  const used = temperature === undefined ? fitting : Math.min(temperature, maxTemperature);
  return used === undefined && topP === undefined ? undefined : defined({ temperature: used, topP });
}

/** Most characters of a call's raw arguments that its result repeats. */
const MAX_RAW = 20_000;

/**
 * Gives every tool call in the messages a JSON object as arguments, since most providers demand one. A call whose arguments
 * were cut or malformed gets an empty object, and its result quotes the original text.
 */
function withWholeCalls(messages: Message[]): Message[] {
  if (!messages.some((message) => message.role === "assistant" && message.toolCalls?.some(isOdd))) return messages;
  let broken = new Map<string, string>();
  return messages.map((message): Message => {
    if (message.role === "tool") {
      const raw = broken.get(message.toolCallId);
      return raw === undefined ? message : { ...message, content: withRaw(message.content, raw) };
    }
    if (message.role !== "assistant" || message.toolCalls === undefined) return message;
    const { toolCalls, parts } = message;
    broken = new Map(
      toolCalls.flatMap((call) => (toObject(call.arguments) === undefined ? [[call.id, call.arguments]] : [])),
    );
    const whole = { ...message, toolCalls: toolCalls.map(toWhole) };
    return parts === undefined ? whole : { ...whole, parts: parts.map(toWholePart) };
  });
}

/** The arguments as they go to a provider; undefined if they are no JSON object. */
function toObject(given: string): string | undefined {
  const text = toArguments(given);
  const value = tryParseJson(text);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? text : undefined;
}

const isOdd = (call: ToolCall) => toObject(call.arguments) !== call.arguments;
const toWhole = <C extends ToolCall>(call: C): C => ({ ...call, arguments: toObject(call.arguments) ?? "{}" });
const toWholePart = (part: AssistantPart) => (part.type === "tool-call" ? toWhole(part) : part);

function withRaw(content: Content, raw: string): Content {
  const note = `The arguments of this call were no JSON object: ${raw.slice(0, MAX_RAW).toWellFormed()}`;
  return typeof content === "string" ? `${note}\n\n${content}` : [{ type: "text", text: note }, ...content];
}
