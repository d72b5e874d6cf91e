import { defined } from "../../../defined.ts";
import type { AppError } from "../../../errors.ts";
import type { ProvidedPart, ToolCall } from "../../messages.ts";
import {
  type CompletionResult,
  countReasoning,
  type FinishReason,
  type Served,
  toServed,
  type Usage,
} from "../provider.ts";
import { fromStreamError, fromWireError, parseWire } from "../wire-errors.ts";
import {
  type EndedResponse,
  reasoningTexts,
  startedResponse,
  type WireFailure,
  type WireResponse,
  type WireUsage,
  wireResponse,
} from "./schemas.ts";

/** Reads the answer of `POST /responses`. @throws AppError `provider_failed` when it is not one, and as `toFailure`. */
export function fromResponse(body: string, requestedModel: string): CompletionResult {
  const response = parseWire(wireResponse, body, "is not a response");
  if (response.status === "failed") throw toFailure(response.error);
  return toResult(response, requestedModel);
}

/**
 * What a response that broke off or does not fit reports and says; undefined when it is none at all, or failed without a
 * usage: that is not charged.
 */
export function measureResponse(begun: unknown): Served | undefined {
  const { data } = startedResponse.safeParse(begun);
  if (data === undefined || (data.status === "failed" && !data.usage)) return undefined;
  return toServed(toResult(data, ""));
}

function toResult(response: WireResponse, requestedModel: string): CompletionResult {
  const parts: ProvidedPart[] = [];
  let text = "";
  const reasoning: string[] = [];
  const toolCalls: ToolCall[] = [];
  for (const item of response.output) {
    if (item?.type === "message") {
      const said = item.content.map((part) => (part?.type === "refusal" ? part.refusal : (part?.text ?? ""))).join("");
      text += said;
      if (said !== "") parts.push({ type: "text", text: said });
    } else if (item?.type === "function_call") {
      const call = { id: item.call_id, name: item.name, arguments: item.arguments };
      toolCalls.push(call);
      parts.push({ type: "tool-call", ...call });
    } else if (item?.type === "reasoning") {
      const { texts, canReturn } = readReasoning(item.item);
      reasoning.push(...texts);
      if (canReturn) parts.push(item);
    }
  }
  return defined({
    text,
    reasoning: reasoning.join("\n\n") || undefined,
    toolCalls,
    parts: parts.some(({ type }) => type === "reasoning") ? parts : undefined,
    finishReason: toFinishReason(response, toolCalls.length > 0),
    usage: response.usage ? toUsage(response.usage, response.service_tier) : undefined,
    model: response.model ?? requestedModel,
  });
}

/** What a reasoning item shows, and whether it holds what a server that stored nothing can go on from. */
export function readReasoning(item: Record<string, unknown>): { texts: string[]; canReturn: boolean } {
  const parsed = reasoningTexts.safeParse(item);
  if (!parsed.success) return { texts: [], canReturn: false };
  const { summary, content, encrypted_content: encrypted } = parsed.data;
  const thoughts = content ?? [];
  return {
    texts: [...summary, ...thoughts].map(({ text }) => text),
    canReturn: Boolean(encrypted) || thoughts.length > 0,
  };
}

/** The status of a response in our terms ("The response object", `incomplete_details`). */
export function toFinishReason(
  { status, incomplete_details: details }: EndedResponse,
  hasToolCalls: boolean,
): FinishReason {
  if (status === "incomplete") return details?.reason === "content_filter" ? "content_filter" : "length";
  return hasToolCalls ? "tool_calls" : "stop";
}

export function toUsage(usage: WireUsage, tier?: string | null): Usage {
  const { cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens } = usage.input_tokens_details ?? {};
  const outputTokens = usage.output_tokens ?? 0;
  return {
    inputTokens: usage.input_tokens,
    outputTokens,
    ...countReasoning(usage.output_tokens_details?.reasoning_tokens, outputTokens),
    ...(cachedTokens ? { cachedTokens } : {}),
    ...(cacheWriteTokens ? { cacheWriteTokens } : {}),
    ...(tier === "flex" ? { isFlex: true } : {}),
  };
}

/** Codes of a failed response that have a status of their own elsewhere (API reference, `ResponseError`; "Error codes"). */
const statuses: Record<string, number> = {
  rate_limit_exceeded: 429,
  insufficient_quota: 429,
  invalid_prompt: 400,
  bio_policy: 400,
  context_length_exceeded: 400,
  invalid_encrypted_content: 400,
};

/** The error of a response that failed after its status 200. What is wrong with a picture has many codes. */
export function toFailure(failure: WireFailure | null | undefined): AppError {
  const code = failure?.code ?? "";
  const status = statuses[code] ?? (code.includes("image") ? 400 : undefined);
  const error = failure ?? {};
  return status === undefined ? fromStreamError(error) : fromWireError(status, {}, JSON.stringify({ error }));
}
