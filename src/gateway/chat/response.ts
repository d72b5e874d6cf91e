import type { ToolCall } from "../providers/provider.ts";
import type { ChatResponse } from "../schemas.ts";
import type { ChatOutcome } from "./complete.ts";

/** The JSON answer of a chat, as `POST /ai/chat` and the jobs of batched chats give it. */
export function toChatResponse(outcome: ChatOutcome, hasDebug = false): ChatResponse {
  const toolCalls = outcome.toolCalls.map(toWireToolCall);
  const { inputTokens, outputTokens } = outcome.usage;
  return {
    text: outcome.text,
    choices: [
      {
        message: {
          role: "assistant",
          content: outcome.text,
          ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
        },
        finish_reason: outcome.finishReason,
      },
    ],
    ...(toolCalls.length > 0 ? { toolCalls } : {}),
    ...(outcome.reasoning === undefined ? {} : { reasoning: outcome.reasoning }),
    logId: outcome.logId,
    inputTokens,
    outputTokens,
    usage: { prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: inputTokens + outputTokens },
    cached: outcome.cached,
    costUsd: outcome.costUsd,
    model: outcome.model,
    ...toPreprocessing(outcome, hasDebug),
  };
}

type Preprocessed = Pick<ChatOutcome, "routing" | "timingsMs" | "cache" | "compression">;

/** What was done with a chat on its way, where the caller wants to see it. */
export function toPreprocessing({ routing, timingsMs, cache, compression }: Preprocessed, hasDebug: boolean) {
  if (!hasDebug) return {};
  const told = compression === undefined ? {} : { compression };
  return { _preprocessing: { ...told, routing, cache: { status: cache ?? ("off" as const) }, timingsMs } };
}

/** A tool call in OpenAI's shape. */
export function toWireToolCall({ id, name, arguments: text }: ToolCall) {
  return { id, type: "function" as const, function: { name, arguments: text } };
}
