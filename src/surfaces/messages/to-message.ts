import type { ChatOutcome } from "../../gateway/chat/outcome.ts";
import type { AssistantPart, ReasoningPart, ToolCall } from "../../gateway/messages.ts";
import type { FinishReason, Usage } from "../../gateway/providers/provider.ts";
import { messagesProvider } from "../../gateway/providers/registry.ts";
import { defined } from "../../lib/defined.ts";
import { tryParseJson } from "../../lib/try-parse-json.ts";
import { sealReasoning } from "../responses/sealed-reasoning.ts";
import type { AnswerBlock, ApiMessage } from "./schemas.ts";

/** The outcome of a chat as a message of the Messages API. */
export function toMessage(outcome: ChatOutcome): ApiMessage {
  const { logId, costUsd, cached, model, finishReason, providerFinishReason, usage } = outcome;
  return {
    id: toMessageId(logId),
    type: "message",
    role: "assistant",
    model,
    content: toContent(outcome),
    stop_reason: stopReasons[finishReason],
    stop_sequence: null,
    usage: toMessageUsage(usage),
    logId,
    costUsd,
    cached,
    ...defined({ providerFinishReason }),
  };
}

export const toMessageId = (id: string) => `msg_${id}`;

export const stopReasons = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal",
} as const satisfies Record<FinishReason, string>;

/** Anthropic counts what was read from and written to a prompt cache apart from the rest of the prompt. */
export function toMessageUsage({ inputTokens, outputTokens, cachedTokens = 0, cacheWriteTokens = 0 }: Usage) {
  return {
    input_tokens: Math.max(0, inputTokens - cachedTokens - cacheWriteTokens),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedTokens,
    output_tokens: outputTokens,
  };
}

function toContent({ text, reasoning, toolCalls, parts }: ChatOutcome): AnswerBlock[] {
  if (parts !== undefined) return parts.flatMap(toBlock);
  return [
    ...(reasoning === undefined ? [] : [{ type: "thinking" as const, thinking: reasoning, signature: "" }]),
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...toolCalls.map(toToolUse),
  ];
}

function toBlock(part: AssistantPart): AnswerBlock[] {
  if (part.type === "tool-call") return [toToolUse(part)];
  if (part.type === "text") return part.text === "" ? [] : [{ type: "text", text: part.text }];
  return [toThinking(part)];
}

/** Reasoning as a block of thinking. Anthropic's own stays as it is; another provider's travels in the signature. */
export function toThinking({ provider, item }: Pick<ReasoningPart, "provider" | "item">): AnswerBlock {
  const { type, thinking, signature, data } = item;
  const isOwn = provider === messagesProvider;
  if (isOwn && type === "redacted_thinking" && typeof data === "string") return { type, data };
  if (isOwn && typeof thinking === "string" && typeof signature === "string")
    return { type: "thinking", thinking, signature };
  return { type: "thinking", thinking: toText(item), signature: sealReasoning({ provider, item }) };
}

/** The text of an item of reasoning, as Anthropic and OpenAI write it; that of a gateway has theirs inside. */
function toText({ thinking, summary, item }: Record<string, unknown>): string {
  if (typeof thinking === "string") return thinking;
  if (typeof item === "object" && item !== null) return toText({ ...item });
  const texts = Array.isArray(summary) ? summary.map((part) => Object(part).text) : [];
  return texts.filter((text) => typeof text === "string").join("\n\n");
}

/** A call whose arguments are no JSON object keeps them under a name of their own, as Anthropic's documentation advises. */
function toToolUse({ id, name, arguments: text }: ToolCall): AnswerBlock {
  const input = text.trim() === "" ? {} : tryParseJson(text);
  const isObject = typeof input === "object" && input !== null && !Array.isArray(input);
  return { type: "tool_use", id, name, input: isObject ? { ...input } : { INVALID_JSON: text } };
}
