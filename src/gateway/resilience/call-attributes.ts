import { defined } from "../../lib/defined.ts";
import type { SpanStart } from "../../observe/tracing.ts";
import type { CataloguedModel } from "../catalogue.ts";
import { plausible, toNanoUsd, toUsd } from "../money/prices.ts";
import { chats } from "../providers/model.ts";
import type { Usage } from "../providers/provider.ts";

// OpenTelemetry's names for calls of models: https://github.com/open-telemetry/semantic-conventions-genai. They have none for
// what a call costs.

/** What is asked of a model, as far as a span says it. */
export type AskedFacts = {
  isStream?: boolean;
  /** The conversation that the call is a part of, as its caller names it. */
  conversationId?: string | undefined;
  maxTokens?: number | undefined;
  temperature?: number | undefined;
  topP?: number | undefined;
  dimensions?: number | undefined;
};
/** What came of it. */
export type AnswerFacts = {
  usage?: Usage | { inputTokens: number } | undefined;
  finishReason?: string | undefined;
  providerFinishReason?: string | undefined;
  responseId?: string | undefined;
  model?: string | undefined;
};

/** The name and the first attributes of the span of a call. */
export function toCallSpan(model: CataloguedModel, asked: AskedFacts) {
  const operation = chats(model) ? "chat" : model.type === "embedding" ? "embeddings" : "rerank";
  const attributes: SpanStart["attributes"] = defined({
    "gen_ai.operation.name": operation,
    "gen_ai.provider.name": model.provider,
    "gen_ai.request.model": model.id,
    "gen_ai.request.stream": asked.isStream === true,
    "gen_ai.request.max_tokens": asked.maxTokens,
    "gen_ai.request.temperature": asked.temperature,
    "gen_ai.request.top_p": asked.topP,
    "gen_ai.conversation.id": asked.conversationId,
    "gen_ai.embeddings.dimension.count": asked.dimensions,
  });
  return { name: `${operation} ${model.id}`, kind: "CLIENT" as const, attributes };
}

/** The attributes of an answer. The usage is the provider's own count, and the cost is at the catalogue's price. */
export function toAnswerAttributes(model: CataloguedModel, answer: AnswerFacts): SpanStart["attributes"] {
  const { usage: reported, finishReason, providerFinishReason, responseId } = answer;
  const usage = reported && plausible({ outputTokens: 0, ...reported });
  return defined({
    "gen_ai.response.id": responseId,
    "gen_ai.response.model": answer.model === "" ? undefined : answer.model,
    "gen_ai.response.finish_reasons": finishReason === undefined ? undefined : [providerFinishReason ?? finishReason],
    "gen_ai.usage.input_tokens": usage?.inputTokens,
    "gen_ai.usage.output_tokens": chats(model) ? usage?.outputTokens : undefined,
    "gen_ai.usage.cache_read.input_tokens": usage?.cachedTokens,
    "gen_ai.usage.cache_creation.input_tokens": usage?.cacheWriteTokens,
    "gen_ai.usage.reasoning.output_tokens": usage?.reasoningTokens,
    "switchyard.cost_usd": usage && toUsd(toNanoUsd(model, usage)),
  });
}
