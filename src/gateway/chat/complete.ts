import { defined } from "../../defined.ts";
import { AppError } from "../../errors.ts";
import type { CataloguedModel } from "../catalogue.ts";
import { estimateMessageTokens, estimateUsage } from "../count-tokens.ts";
import type { GatewayDeps } from "../deps.ts";
import { type AssistantPart, forProvider, type Message, markReasoning, textOf, withoutReasoning } from "../messages.ts";
import type { Call, CallEnd, GatewayCaller } from "../money/account.ts";
import { boundChat } from "../money/prices.ts";
import type { CompletionRequest, CompletionResult, FinishReason } from "../providers/provider.ts";
import { type Share, withFallbacks } from "../resilience/fallback.ts";
import { askModel } from "../resilience/retry.ts";
import { withWholeCalls } from "../whole-calls.ts";
import { keepToSettings, maxTemperatureOf } from "./capabilities.ts";
import { withoutFence } from "./json-fence.ts";
import type { ChatOutcome, RoutingView } from "./outcome.ts";
import { type PlannedChat, reportFallback } from "./plan.ts";
import type { ChatRequest } from "./request.ts";
import { findMismatch } from "./response-format.ts";
import type { Routing } from "./route-model.ts";

/** Texts kept in a log record are cut to this many characters a message; a record stays far below a document's limit. */
const KEPT_CHARACTERS = 20_000;

/**
 * Answers a planned chat: asks the provider with retries, then the plan's fallbacks, and settles a record of each
 * model that was asked, also when it fails.
 * @throws AppError `provider_key_refused`, `provider_failed`, `provider_rate_limited`, `provider_timeout`, `client_closed`,
 * `response_format_mismatch`; what checks of schemas throw.
 */
export function complete(deps: GatewayDeps, chat: PlannedChat): Promise<ChatOutcome> {
  return withFallbacks(deps, chat.plan, (share) => completeAt(deps, chat, share));
}

async function completeAt(deps: GatewayDeps, { caller, request }: PlannedChat, share: Share): Promise<ChatOutcome> {
  const { model, provider } = share.target;
  const wireRequest = toCompletionRequest(request, model);
  const asked = toAsked(caller, model, wireRequest);
  const { call, result } = await askModel(
    deps,
    share,
    { ...asked, isStreamed: false, describe: (answer: CompletionResult) => answer },
    (call) => {
      const capped = call.capped(wireRequest);
      return (context) => readably(capped, (readable) => provider.complete(readable, context));
    },
  );
  reportFallback(caller, share.routing, request);
  const { responseFormat } = wireRequest;
  const { toolCalls, finishReason, providerFinishReason, reasoning, usage, logprobs } = result;
  const clean = responseFormat === undefined ? (text: string) => text : withoutFence;
  const text = clean(result.text);
  const parts = result.parts && markReasoning(result.parts, model.provider).map((part) => mapText(part, clean));
  const estimate = () => estimateUsage({ messages: wireRequest.messages, model }, text, toolCalls);
  const end = { usage, estimate, finishReason, content: () => toContent(wireRequest.messages, text) };
  if (responseFormat !== undefined) {
    const mismatch = await findMismatch(deps.schemaChecks, caller, responseFormat, { text, finishReason });
    if (mismatch !== undefined) {
      call.settle({ ...end, error: mismatch });
      throw mismatch;
    }
  }
  return {
    text,
    toolCalls,
    ...settleChat(call, share.routing, end),
    ...defined({ reasoning, parts, providerFinishReason, logprobs }),
  };
}

const mapText = (part: AssistantPart, map: (text: string) => string): AssistantPart =>
  part.type === "text" ? { ...part, text: map(part.text) } : part;

/** Asks a provider once more without the reasoning that came back, when it cannot read that. A refused request is not charged. */
export async function readably<T>(
  request: CompletionRequest,
  ask: (request: CompletionRequest) => Promise<T>,
): Promise<T> {
  try {
    return await ask(request);
  } catch (error) {
    const isUnreadable = error instanceof AppError && error.reason === "reasoning_unreadable";
    const messages = isUnreadable ? withoutReasoning(request.messages) : undefined;
    if (messages === undefined) throw error;
    return ask({ ...request, messages });
  }
}

const factsOf = ({ maxTokens, temperature, topP }: CompletionRequest) => ({ maxTokens, temperature, topP });

/** What the record of a chat's call needs to know ahead. */
export function toAsked(caller: GatewayCaller, model: CataloguedModel, request: CompletionRequest) {
  return {
    caller,
    kind: "chat" as const,
    inputTokens: () => estimateMessageTokens(request.messages, model),
    toBounds: () => boundChat(model, request),
    facts: factsOf(request),
  };
}

/** Settles a chat that came to its end; what its outcome reports besides the content. */
export function settleChat(call: Call, routing: Routing, end: CallEnd & { finishReason: FinishReason }) {
  return {
    logId: call.logId,
    finishReason: end.finishReason,
    model: routing.model.id,
    provider: routing.model.provider,
    cached: false,
    routing: toRoutingView(routing),
    ...call.settle(end),
  };
}

/**
 * The request in the provider's terms: the routed model, the system prompt put before the messages, and what the model
 * needs to take a temperature.
 */
export function toCompletionRequest(request: ChatRequest, model: CataloguedModel): CompletionRequest {
  const { systemPrompt, options: _o, temperature: _t, preferredTemperature, topP: _p, messages, ...rest } = request;
  const own = withWholeCalls(forProvider(messages, model.provider));
  // A temperature that is only preferred is not worth a model's reasoning.
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

/** What the model takes of a temperature and `top_p`: one that is asked for is clamped, one that is preferred left out. */
function toSampling(model: CataloguedModel, request: ChatRequest, preferred?: number) {
  const maxTemperature = maxTemperatureOf(model, request);
  const { temperature, topP } = request;
  if (maxTemperature === undefined) return undefined;
  const fitting = preferred !== undefined && preferred <= maxTemperature ? preferred : undefined;
  const used = temperature === undefined ? fitting : Math.min(temperature, maxTemperature);
  return used === undefined && topP === undefined ? undefined : defined({ temperature: used, topP });
}

export function toRoutingView({ requested, model, reason, skipped }: Routing): RoutingView {
  const view = { requested, model: model.id, provider: model.provider, reason };
  return skipped === undefined ? view : { ...view, skipped: [...skipped] };
}

/** The texts for the log record. */
export function toContent(messages: readonly Message[], text: string) {
  const kept = messages.map(({ role, content }) => ({ role, content: textOf(content).slice(0, KEPT_CHARACTERS) }));
  return { messages: kept, text: text.slice(0, KEPT_CHARACTERS) };
}
