import { defined } from "../../lib/defined.ts";
import { toWireLogprobs } from "../logprobs.ts";
import type { ReasoningDetail, WireToolCall } from "../message-schemas.ts";
import type { AssistantPart, ToolCall } from "../messages.ts";
import type { Usage } from "../providers/provider.ts";
import type { ChatResponse, WireUsage } from "../schemas.ts";
import type { ChatOutcome } from "./outcome.ts";

/** The JSON response of a chat, as `POST /ai/chat` and the jobs of batched chats give it. */
export function toChatResponse(outcome: ChatOutcome, hasDebug = false): ChatResponse {
  const { text, finishReason, providerFinishReason, reasoning, logprobs, logId, usage, cached, costUsd, model } =
    outcome;
  const citations = outcome.citations && [...outcome.citations];
  const toolCalls = toWireToolCalls(outcome.toolCalls);
  const details = toReasoningDetails(outcome.parts);
  const message = defined({
    role: "assistant" as const,
    content: text,
    tool_calls: toolCalls,
    reasoning_details: details,
  });
  return {
    text,
    choices: [{ message, finish_reason: finishReason, ...(logprobs && { logprobs: toWireLogprobs(logprobs) }) }],
    ...defined({ toolCalls, reasoning, providerFinishReason, citations }),
    logId,
    inputTokens: usage.inputTokens,
    outputTokens: usage.outputTokens,
    usage: toWireUsage(usage),
    cached,
    costUsd,
    model,
    ...toPreprocessing(outcome, hasDebug),
  };
}

/** Tokens in OpenAI's words; those of the provider's cache in Anthropic's too, which has one for what was written. */
export function toWireUsage(usage: Usage): WireUsage {
  const { inputTokens, outputTokens, cachedTokens = 0, cacheWriteTokens = 0, reasoningTokens } = usage;
  const tokens = {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    ...(reasoningTokens === undefined ? {} : { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
  };
  if (!usesPromptCache(usage)) return tokens;
  return {
    ...tokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    cache_read_input_tokens: cachedTokens,
    cache_creation_input_tokens: cacheWriteTokens,
  };
}

/** Whether a part of the prompt was read from its provider's cache, or written to it. */
export const usesPromptCache = ({ cachedTokens, cacheWriteTokens }: Usage) =>
  cachedTokens !== undefined || cacheWriteTokens !== undefined;

type Preprocessed = Pick<ChatOutcome, "routing" | "timingsMs" | "compression" | "cache">;

/** What was done with a chat before it was sent, if the caller asks for that. */
export function toPreprocessing({ routing, timingsMs, cache = "off", compression }: Preprocessed, hasDebug: boolean) {
  return hasDebug ? { _preprocessing: defined({ compression, routing, cache: { status: cache }, timingsMs }) } : {};
}

/** Tool calls in OpenAI's shape; undefined when there are none. */
export function toWireToolCalls(calls: readonly ToolCall[]): WireToolCall[] | undefined {
  if (calls.length === 0) return undefined;
  return calls.map(({ id, ...called }) => ({ id, type: "function", function: called }));
}

/** The reasoning that must be sent back with the turn, with its positions; undefined if there is none. */
export function toReasoningDetails(parts: readonly AssistantPart[] | undefined): ReasoningDetail[] | undefined {
  return parts?.flatMap((part, index) => (part.type === "reasoning" ? [{ ...part, index }] : []));
}
