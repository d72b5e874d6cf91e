import type { FinishReason } from "./provider.ts";

/** How an answer ended. `providerFinishReason` is a word that we do not know: the answer counts as cut, for we cannot say that it is whole. */
export type Finish = { finishReason: FinishReason; providerFinishReason?: string };
/** The finish reason that a provider reports; undefined if it reports none yet. `error`: it could not finish. */
type WireFinish = Finish | "error" | undefined;

/** Longest word of a provider that is kept, in characters. */
const MAX_WORD = 64;

/**
 * The words of all wires, in small letters with `_` between: of OpenAI and Anthropic, and of the servers that speak their
 * wires in words of their own (Mistral, Gemini, Cohere, Bedrock, DeepSeek, GLM, xAI, OpenRouter, vLLM, SGLang, TGI, watsonx).
 */
const words: Record<FinishReason | "error" | "none", readonly string[]> = {
  stop: [
    "stop",
    "stopped",
    "stop_sequence",
    "stop_token",
    "end_turn",
    "end",
    "eos",
    "eos_token",
    "endoftext",
    "end_of_text",
    "complete",
    "completed",
    "normal",
  ],
  length: [
    "length",
    "max_tokens",
    "max_output_tokens",
    "max_completion_tokens",
    "maximum_tokens",
    "max_length",
    "model_length",
    "context",
    "context_length",
    "context_length_exceeded",
    "context_window_exceeded",
    "model_context_window_exceeded",
    "token_limit",
    "time_limit",
    "error_limit",
    "truncated",
  ],
  tool_calls: ["tool_calls", "tool_call", "tool_use", "tools", "function_call", "function_calls"],
  content_filter: [
    "content_filter",
    "content_filtered",
    "content_filter_stop",
    "filtered",
    "refusal",
    "safety",
    "image_safety",
    "recitation",
    "language",
    "blocklist",
    "prohibited_content",
    "spii",
    "sensitive",
    "guardrail_intervened",
    "guardrails",
    "moderation",
    "error_toxic",
  ],
  error: [
    "error",
    "failed",
    "abort",
    "aborted",
    "cancelled",
    "canceled",
    "user_cancel",
    "timeout",
    "network_error",
    "insufficient_system_resource",
    "malformed_function_call",
    "malformed_tool_use",
    "malformed_model_output",
    "unexpected_tool_call",
  ],
  none: ["", "null", "none", "not_finished", "in_progress"],
};

const meanings = new Map(
  Object.entries(words).flatMap(([meaning, all]) => all.map((word) => [word, meaning as keyof typeof words] as const)),
);

/** `MAX_TOKENS`, `maxTokens` and `max-tokens` alike. */
const toKey = (text: string) =>
  text
    .trim()
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .replace(/[\s-]+/g, "_")
    .toLowerCase();

/** The meaning of a finish reason, for every wire and in any letter case. Some servers say `stop` although they call tools. */
export function readFinish(reason: unknown, hasToolCalls = false): WireFinish {
  if (reason === undefined || reason === null) return undefined;
  const word = typeof reason === "string" ? reason : JSON.stringify(reason);
  const meaning = meanings.get(toKey(word));
  if (meaning === "none") return undefined;
  if (meaning === "error") return "error";
  if (meaning === undefined)
    return { finishReason: "length", providerFinishReason: word.slice(0, MAX_WORD).toWellFormed() };
  return { finishReason: meaning === "stop" && hasToolCalls ? "tool_calls" : meaning };
}

/** The finish reason of a whole answer. Without one, it counts as stopped. */
export function finishOf(finish: Finish | undefined, hasToolCalls: boolean): Finish {
  return finish ?? { finishReason: hasToolCalls ? "tool_calls" : "stop" };
}

/** Whether an answer is complete. */
export const isComplete = (finishReason: FinishReason) => finishReason === "stop" || finishReason === "tool_calls";
