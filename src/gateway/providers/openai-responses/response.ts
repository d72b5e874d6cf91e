import { defined } from "../../../lib/defined.ts";
import type { ProvidedPart, ToolCall } from "../../messages.ts";
import { type Finish, readFinish } from "../finish-reasons.ts";
import { type CompletionResult, type Served, type ToolDefinition, toServed, type Usage } from "../provider.ts";
import { readCalls, type WireCall } from "../tool-calls.ts";
import { toTokens } from "../usage.ts";
import { endedInError, fromReportedError, parseWire } from "../wire-errors.ts";
import {
  type EndedResponse,
  reasoningTexts,
  startedResponse,
  type WireResponse,
  type WireUsage,
  wireResponse,
} from "./schemas.ts";

/**
 * Reads the answer of `POST /responses`.
 * @throws AppError `provider_failed` when it is not one or has failed; that of the status which a failed one names.
 */
export function fromResponse(
  body: string,
  requestedModel: string,
  tools?: readonly ToolDefinition[],
): CompletionResult {
  const response = parseWire(wireResponse, body, "is not a response");
  const result = toResult(response, requestedModel, tools);
  const finish = toFinish(response, result.toolCalls.length > 0);
  if (finish !== "error") return result;
  if (result.text === "" && response.error) throw fromReportedError(response.error);
  throw endedInError(result, response.error);
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

function toResult(response: WireResponse, requestedModel: string, tools?: readonly ToolDefinition[]): CompletionResult {
  const said = response.output.flatMap((item) => (item?.type === "message" ? item.content.map(toText) : []));
  const thoughts = response.output.flatMap((item) =>
    item?.type === "reasoning" ? readReasoning(item.item).texts : [],
  );
  const asked = response.output.flatMap((item): WireCall[] =>
    item?.type === "function_call" ? [{ id: item.call_id ?? item.id, name: item.name, arguments: item.arguments }] : [],
  );
  const finish = toFinish(response, asked.length > 0);
  const ended: Finish = finish === "error" ? { finishReason: "stop" } : finish;
  const toolCalls = readCalls(asked, defined({ isCut: ended.finishReason === "length", tools }));
  const parts = toParts(response.output, toolCalls);
  return defined({
    text: said.join(""),
    reasoning: thoughts.join("\n\n") || undefined,
    toolCalls,
    parts: parts.some(({ type }) => type === "reasoning") ? parts : undefined,
    ...ended,
    usage: response.usage ? toUsage(response.usage, response.service_tier) : undefined,
    responseId: response.id || undefined,
    model: response.model ?? requestedModel,
  });
}

type Said = { type: "output_text"; text: string } | { type: "refusal"; refusal: string } | undefined;
const toText = (part: Said) => (part?.type === "refusal" ? part.refusal : (part?.text ?? ""));

/** The output in its order; its calls are read already. */
function toParts(output: WireResponse["output"], toolCalls: readonly ToolCall[]): ProvidedPart[] {
  let place = 0;
  return output.flatMap((item): ProvidedPart[] => {
    if (item?.type === "message") {
      const text = item.content.map(toText).join("");
      return text === "" ? [] : [{ type: "text", text }];
    }
    if (item?.type === "reasoning") return readReasoning(item.item).canReturn ? [item] : [];
    const call = item?.type === "function_call" ? toolCalls[place++] : undefined;
    return call ? [{ type: "tool-call", ...call }] : [];
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

/** The status of a response in our terms ("The response object", `incomplete_details`); `error` for one that has failed. */
export function toFinish(
  { status, incomplete_details: details }: Partial<EndedResponse>,
  hasToolCalls: boolean,
): Finish | "error" {
  const reason = status === "incomplete" ? (details?.reason ?? "length") : (status ?? "completed");
  return readFinish(reason, hasToolCalls) ?? { finishReason: "length", providerFinishReason: reason };
}

export function toUsage(usage: WireUsage, tier?: string | null): Usage {
  return toTokens({
    input: usage.input_tokens,
    output: usage.output_tokens,
    total: usage.total_tokens,
    ofInput: usage.input_tokens_details,
    ofOutput: usage.output_tokens_details,
    tier,
  });
}
