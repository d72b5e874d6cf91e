import type { ProvidedPart, ToolCall } from "../../messages.ts";
import { type CompletionResult, type FinishReason, type Served, toServed, type Usage } from "../provider.ts";
import { parseWire } from "../wire-errors.ts";
import { type WireMessage, type WireUsage, wireMessage } from "./wire-schemas.ts";

/** Reads the answer of `POST /v1/messages`. @throws AppError `provider_failed` when it is not a message. */
export function fromMessage(body: string, requestedModel: string): CompletionResult {
  return toResult(parseWire(wireMessage, body, "is not a message"), requestedModel);
}

/** What a message that broke off or does not fit reports and says; undefined when it is none at all. */
export function measureMessage(begun: unknown): Served | undefined {
  const result = readMessage(begun);
  return result && toServed(result);
}

/** A message as far as it is there; undefined for what is none. */
export function readMessage(message: unknown): CompletionResult | undefined {
  const parsed = wireMessage.safeParse(message);
  return parsed.success ? toResult(parsed.data, "") : undefined;
}

function toResult({ content, stop_reason: stopReason, usage, model }: WireMessage, requestedModel: string) {
  const result: CompletionResult = {
    text: "",
    toolCalls: [],
    finishReason: toFinishReason(stopReason ?? undefined),
    model: model ?? requestedModel,
  };
  let reasoning = "";
  const parts: ProvidedPart[] = [];
  for (const block of content) {
    if (block?.type === "text") {
      result.text += block.text;
      parts.push({ type: "text", text: block.text });
    } else if (block?.type === "tool_use") {
      const call: ToolCall = { id: block.id, name: block.name, arguments: JSON.stringify(block.input ?? {}) };
      result.toolCalls.push(call);
      parts.push({ type: "tool-call", ...call });
    } else if (block !== undefined) {
      if (block.type === "thinking") reasoning += block.thinking;
      parts.push({ type: "reasoning", item: block });
    }
  }
  if (parts.some(({ type }) => type === "reasoning")) result.parts = parts;
  if (reasoning !== "") result.reasoning = reasoning; // empty where the text is withheld
  if (usage) result.usage = toUsage(usage);
  return result;
}

/** Anthropic counts what it read from and wrote to its prompt cache apart from `input_tokens`; ours is the whole prompt. */
export function toUsage(usage: WireUsage): Usage {
  const cachedTokens = usage.cache_read_input_tokens ?? 0;
  const cacheWriteTokens = usage.cache_creation_input_tokens ?? 0;
  return {
    inputTokens: (usage.input_tokens ?? 0) + cachedTokens + cacheWriteTokens,
    outputTokens: usage.output_tokens ?? 0,
    ...(cachedTokens > 0 ? { cachedTokens } : {}),
    ...(cacheWriteTokens > 0 ? { cacheWriteTokens } : {}),
  };
}

const finishReasons: Record<string, FinishReason> = {
  end_turn: "stop",
  stop_sequence: "stop",
  pause_turn: "stop",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  tool_use: "tool_calls",
  refusal: "content_filter",
};

/** `stop_reason` in our terms ("Stop reasons" in Anthropic's documentation); unknown ones count as `stop`. */
export function toFinishReason(stopReason: string | undefined): FinishReason {
  return finishReasons[stopReason ?? "end_turn"] ?? "stop";
}
