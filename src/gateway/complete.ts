import { beginCall, type GatewayCaller, type Timings } from "./account.ts";
import type { ChatRequest } from "./chat-request.ts";
import { estimateMessageTokens, estimateTokens } from "./count-tokens.ts";
import { type GatewayDeps, guarded, isUsable, providerOf, toContext } from "./deps.ts";
import type { CompletionRequest, FinishReason, Message, ToolCall, Usage } from "./providers/provider.ts";
import { withRetries } from "./retry.ts";
import { type Routing, routeModel } from "./route-model.ts";

/** Texts kept in a log record are cut to this many characters a message; a record stays far below a document's limit. */
const KEPT_CHARACTERS = 20_000;

export type RoutingView = { requested: string; model: string; provider: string; reason: string };

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
};

/**
 * Answers a chat: routes it, asks the provider with retries, and settles its record, also when it fails.
 * @throws AppError `unknown_model`, `provider_not_configured`, `provider_failed`, `provider_rate_limited`,
 * `provider_timeout`, `client_closed`.
 */
export async function complete(deps: GatewayDeps, caller: GatewayCaller, request: ChatRequest): Promise<ChatOutcome> {
  const routing = routeModel(deps.catalogue, request, isUsable(deps));
  const { provider, breaker } = providerOf(deps, routing.model);
  const wireRequest = toCompletionRequest(request, routing);
  const call = beginCall(deps.ledger, caller, { kind: "chat", routing, isStreamed: false });
  try {
    const result = await withRetries(
      () => guarded(breaker, () => provider.complete(wireRequest, toContext(caller.signal))),
      {
        signal: caller.signal,
        onTry: call.onTry,
      },
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
      model: routing.model.id,
      provider: routing.model.provider,
      usage,
      cached: false,
      costUsd,
      routing: toRoutingView(routing),
      timingsMs,
    };
  } catch (error) {
    // A caller that leaves does not stop the provider from charging for the prompt.
    const estimate = () =>
      caller.signal.aborted && call.wasTried()
        ? estimateUsage(wireRequest.messages, "", [])
        : { inputTokens: 0, outputTokens: 0 };
    call.settle({ usage: undefined, estimate, error });
    throw error;
  }
}

/** The request in the provider's terms: the routed model, the system prompt put before the messages. */
export function toCompletionRequest(request: ChatRequest, routing: Routing): CompletionRequest {
  const { systemPrompt, model: _requested, messages, ...rest } = request;
  const system: Message[] = systemPrompt === undefined ? [] : [{ role: "system", content: systemPrompt }];
  return { ...rest, model: routing.model.id, messages: system.length === 0 ? messages : [...system, ...messages] };
}

export function toRoutingView({ requested, model, reason }: Routing): RoutingView {
  return { requested, model: model.id, provider: model.provider, reason };
}

/** The usage of an exchange whose provider told none. */
export function estimateUsage(messages: readonly Message[], text: string, toolCalls: readonly ToolCall[]): Usage {
  const calls = toolCalls.reduce((sum, call) => sum + estimateTokens(call.name) + estimateTokens(call.arguments), 0);
  return { inputTokens: estimateMessageTokens(messages), outputTokens: estimateTokens(text) + calls };
}

/** The texts for the log record, where the operator wants them kept. */
export function keptContent(deps: GatewayDeps, messages: readonly Message[], text: string) {
  if (!deps.storeContent) return {};
  const kept = messages.map(({ role, content }) => ({ role, content: content.slice(0, KEPT_CHARACTERS) }));
  return { content: { messages: kept, text: text.slice(0, KEPT_CHARACTERS) } };
}
