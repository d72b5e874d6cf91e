import type { ProvidedPart } from "../../messages.ts";
import { type Finish, finishOf, readFinish } from "../finish-reasons.ts";
import { type CompletionResult, type Served, type ToolDefinition, toServed, type Usage } from "../provider.ts";
import { readCalls } from "../tool-calls.ts";
import { endedInError, parseWire } from "../wire-errors.ts";
import { type WireMessage, type WireUsage, wireMessage } from "./wire-schemas.ts";

/** Reads the answer of `POST /v1/messages`. @throws AppError `provider_failed` when it is not a message, or was not finished. */
export function fromMessage(body: string, requestedModel: string, tools?: readonly ToolDefinition[]): CompletionResult {
  const message = parseWire(wireMessage, body, "is not a message");
  const result = toResult(message, requestedModel, tools);
  if (readFinish(message.stop_reason) === "error") throw endedInError(result);
  return result;
}

/** Usage and text of a message that broke off or is malformed; undefined if it is no message at all. */
export function measureMessage(begun: unknown): Served | undefined {
  const result = readMessage(begun);
  return result && toServed(result);
}

/** A message as far as it is there; undefined for what is none. */
export function readMessage(message: unknown): CompletionResult | undefined {
  const parsed = wireMessage.safeParse(message);
  return parsed.success ? toResult(parsed.data, "") : undefined;
}

function toResult(
  { id, content, stop_reason: stopReason, usage, model }: WireMessage,
  requestedModel: string,
  tools?: readonly ToolDefinition[],
): CompletionResult {
  const asked = content.flatMap((block) =>
    block?.type === "tool_use" ? [{ id: block.id, name: block.name, arguments: block.input }] : [],
  );
  const ended = toFinish(stopReason, asked.length > 0);
  const toolCalls = readCalls(asked, { isCut: false, ...(tools ? { tools } : {}) });
  let text = "";
  let reasoning = "";
  let place = 0;
  const parts = content.flatMap((block): ProvidedPart[] => {
    if (block === undefined) return [];
    if (block.type === "text") {
      text += block.text;
      return [{ type: "text", text: block.text }];
    }
    if (block.type === "tool_use") {
      const call = toolCalls[place++];
      return call ? [{ type: "tool-call", ...call }] : [];
    }
    if (block.type === "thinking") reasoning += block.thinking;
    return [{ type: "reasoning", item: block }];
  });
  return {
    text,
    toolCalls,
    ...ended,
    model: model ?? requestedModel,
    ...(id ? { responseId: id } : {}),
    ...(parts.some(({ type }) => type === "reasoning") ? { parts } : {}),
    ...(reasoning === "" ? {} : { reasoning }), // empty if the provider withholds the text
    ...(usage ? { usage: toUsage(usage) } : {}),
  };
}

/** Anthropic counts what it read from and wrote to its prompt cache apart from `input_tokens`; ours is the whole prompt. */
export function toUsage(usage: WireUsage): Usage {
  const cachedTokens = usage.cache_read_input_tokens ?? 0;
  const hourWriteTokens = usage.cache_creation?.ephemeral_1h_input_tokens ?? 0;
  const cacheWriteTokens = Math.max(usage.cache_creation_input_tokens ?? 0, hourWriteTokens);
  return {
    inputTokens: (usage.input_tokens ?? 0) + cachedTokens + cacheWriteTokens,
    outputTokens: usage.output_tokens ?? 0,
    ...(cachedTokens > 0 ? { cachedTokens } : {}),
    ...(cacheWriteTokens > 0 ? { cacheWriteTokens } : {}),
    ...(hourWriteTokens > 0 ? { hourWriteTokens } : {}),
  };
}

/** `stop_reason` in our terms ("Stop reasons" in Anthropic's documentation). An answer that its provider could not finish has failed. */
function toFinish(stopReason: string | null | undefined, hasToolCalls: boolean): Finish {
  const finish = readFinish(stopReason, hasToolCalls);
  return finishOf(finish === "error" ? undefined : finish, hasToolCalls);
}
