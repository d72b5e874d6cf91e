import type { CataloguedModel } from "../catalogue.ts";
import { estimateMessageTokens, estimateUsage } from "../count-tokens.ts";
import type { GatewayDeps } from "../deps.ts";
import { openCall, type Timings } from "../money/account.ts";
import { boundChat } from "../money/prices.ts";
import type { CompletionRequest, FinishReason, Message, ToolCall, Usage } from "../providers/provider.ts";
import { type Share, withFallbacks } from "../resilience/fallback.ts";
import { withRetries } from "../resilience/retry.ts";
import { tryTarget } from "../resilience/target.ts";
import type { CompressionReport } from "./compress.ts";
import type { PlannedChat } from "./plan.ts";
import type { ChatRequest } from "./request.ts";
import type { Routing, SkippedModel } from "./route-model.ts";

/** Texts kept in a log record are cut to this many characters a message; a record stays far below a document's limit. */
const KEPT_CHARACTERS = 20_000;

export type RoutingView = {
  requested: string;
  model: string;
  provider: string;
  reason: string;
  skipped?: SkippedModel[];
};

/** A finished chat completion, with what it cost. */
export type ChatOutcome = {
  logId: string;
  text: string;
  reasoning?: string;
  toolCalls: ToolCall[];
  finishReason: FinishReason;
  /** The catalogued model that answered. */
  model: string;
  provider: string;
  usage: Usage;
  cached: boolean;
  costUsd: number;
  routing: RoutingView;
  timingsMs: Timings;
  /** What compression did to the prompt, where it was asked for. */
  compression?: CompressionReport;
  /** How the cache served it, where it was asked. */
  cache?: CacheStatus;
};

/** `shared` came from an identical call that was under way. */
export type CacheStatus = "miss" | "hit" | "shared";

/**
 * Answers a planned chat: asks the provider with retries, then the plan's fallbacks, and settles a record of each
 * model that was asked, also when it fails.
 * @throws AppError `provider_key_refused`, `provider_failed`, `provider_rate_limited`, `provider_timeout`, `client_closed`.
 */
export function complete(deps: GatewayDeps, chat: PlannedChat): Promise<ChatOutcome> {
  return withFallbacks(deps, chat.plan, (share) => completeAt(deps, chat, share));
}

async function completeAt(
  deps: GatewayDeps,
  { caller, request }: PlannedChat,
  { target, routing, maxAttempts, onAttempt }: Share,
): Promise<ChatOutcome> {
  const { model, provider } = target;
  const wireRequest = toCompletionRequest(request, model);
  const call = await openCall(deps, caller, {
    kind: "chat",
    routing,
    isStreamed: false,
    inputTokens: () => estimateMessageTokens(wireRequest.messages),
    toBounds: () => boundChat(model, wireRequest),
  });
  const { signal } = caller;
  const tried = {
    signal,
    onAttempt: () => {
      onAttempt();
      call.onAttempt();
    },
    onCharged: call.onCharged,
  };
  try {
    const result = await withRetries(
      () => {
        const capped = call.capped(wireRequest);
        return tryTarget(target, tried, (context) => provider.complete(capped, context));
      },
      { signal, maxAttempts },
    );
    const { text, toolCalls, finishReason } = result;
    const { usage, costUsd, timingsMs } = call.settle({
      usage: result.usage,
      estimate: () => estimateUsage(wireRequest.messages, text, toolCalls),
      finishReason,
      ...keptContent(deps, wireRequest.messages, text),
    });
    return {
      logId: call.logId,
      text,
      ...(result.reasoning === undefined ? {} : { reasoning: result.reasoning }),
      toolCalls,
      finishReason,
      model: model.id,
      provider: model.provider,
      usage,
      cached: false,
      costUsd,
      routing: toRoutingView(routing),
      timingsMs,
    };
  } catch (error) {
    call.settle({ error });
    throw error;
  }
}

/**
 * The request in the provider's terms: the routed model, the system prompt put before the messages, and what the model
 * needs to be told to take tools or a temperature.
 */
export function toCompletionRequest(request: ChatRequest, model: CataloguedModel): CompletionRequest {
  const {
    systemPrompt,
    model: _requested,
    options: _options,
    messages,
    temperature,
    preferredTemperature,
    topP,
    ...rest
  } = request;
  // What is only preferred is not worth a model's reasoning.
  const preferred = model.reasonsUnlessTold === true ? undefined : preferredTemperature;
  const sampling = toSampling(model, temperature ?? preferred, topP);
  const isReasoningOff = model.reasonsUnlessTold === true && (sampling !== undefined || request.tools !== undefined);
  return {
    ...rest,
    ...sampling,
    ...(isReasoningOff ? { reasoningEffort: "none" } : {}),
    model: model.id,
    messages: systemPrompt === undefined ? messages : [{ role: "system", content: systemPrompt }, ...messages],
  };
}

/** What the model takes of a temperature and `top_p`; routing has refused those that were asked for and it does not. */
function toSampling({ maxTemperature }: CataloguedModel, temperature: number | undefined, topP: number | undefined) {
  if (maxTemperature === undefined) return undefined;
  const isTaken = temperature !== undefined && temperature <= maxTemperature;
  if (!isTaken && topP === undefined) return undefined;
  return { ...(isTaken ? { temperature } : {}), ...(topP === undefined ? {} : { topP }) };
}

export function toRoutingView({ requested, model, reason, skipped }: Routing): RoutingView {
  const view = { requested, model: model.id, provider: model.provider, reason };
  return skipped === undefined ? view : { ...view, skipped: [...skipped] };
}

/** The texts for the log record, where the operator wants them kept. */
export function keptContent(deps: GatewayDeps, messages: readonly Message[], text: string) {
  if (!deps.storeContent) return {};
  const kept = messages.map(({ role, content }) => ({ role, content: content.slice(0, KEPT_CHARACTERS) }));
  return { content: { messages: kept, text: text.slice(0, KEPT_CHARACTERS) } };
}
