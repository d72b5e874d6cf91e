import { defined } from "../../lib/defined.ts";
import { estimateUsage } from "../count-tokens.ts";
import type { GatewayDeps } from "../deps.ts";
import { type AssistantPart, markReasoning } from "../messages.ts";
import type { CompletionResult } from "../providers/provider.ts";
import { type Share, withFallbacks } from "../resilience/retry.ts";
import { attempt } from "./attempt.ts";
import { withoutFence } from "./json-fence.ts";
import type { ChatOutcome } from "./outcome.ts";
import type { PlannedChat } from "./plan.ts";

/**
 * Answers a planned chat: asks the provider with retries, then the plan's fallbacks, and settles a record of each
 * model that was asked, also when it fails.
 * @throws AppError `provider_key_refused`, `provider_failed`, `provider_rate_limited`, `provider_timeout`, `client_closed`,
 * `response_format_mismatch`; what checks of schemas throw.
 */
export function complete(deps: GatewayDeps, chat: PlannedChat): Promise<ChatOutcome> {
  return withFallbacks(deps, chat.plan, (share) => completeAt(deps, chat, share));
}

async function completeAt(deps: GatewayDeps, chat: PlannedChat, share: Share): Promise<ChatOutcome> {
  const { provider } = share.target;
  const { result, model, request, settle } = await attempt(deps, chat, share, {
    isStreamed: false,
    describe: (answer: CompletionResult) => answer,
    ask: (readable, context) => provider.complete(readable, context),
  });
  const { toolCalls, finishReason, providerFinishReason, reasoning, usage, logprobs } = result;
  const clean = request.responseFormat === undefined ? (text: string) => text : withoutFence;
  const text = clean(result.text);
  const parts = result.parts && markReasoning(result.parts, model.provider).map((part) => mapText(part, clean));
  const estimate = () => estimateUsage({ messages: request.messages, model }, text, toolCalls);
  const settled = await settle({ usage, estimate, finishReason, text });
  return { text, toolCalls, ...settled, ...defined({ reasoning, parts, providerFinishReason, logprobs }) };
}

const mapText = (part: AssistantPart, map: (text: string) => string): AssistantPart =>
  part.type === "text" ? { ...part, text: map(part.text) } : part;
