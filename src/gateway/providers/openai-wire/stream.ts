import { type EventReader, parseEvent } from "../event-stream.ts";
import type { StreamPart } from "../provider.ts";
import { fromStreamError, malformed } from "../wire-errors.ts";
import { fromWireUsage, toFinishReason } from "./chat.ts";
import { readReasoningDetails, type WireChunk } from "./schemas.ts";

/** Tool calls of one answer, at most: more than any request has tools. */
const MAX_CALLS = 1_024;

/** Reads OpenAI's chunks. The `end` waits for `[DONE]`, for the usage comes after the finish reason. */
export function makeChunkReader(): EventReader {
  let finish: string | undefined;
  let hasToolCalls = false;
  let isDone = false;
  const end = (): StreamPart[] => [{ type: "end", finishReason: toFinishReason(finish, hasToolCalls) }];
  return {
    read: (data, parts) => {
      if (data === "[DONE]") {
        if (finish === undefined) return;
        isDone = true;
        parts.push(...end());
        return;
      }
      const chunk: WireChunk = parseEvent(data); // the shape is checked field by field below
      if (chunk.error) throw fromStreamError(chunk.error);
      const usage = fromWireUsage(chunk.usage, chunk.service_tier);
      if (usage !== undefined) parts.push({ type: "usage", usage });
      const choice = chunk.choices?.[0]; // only one is ever asked for
      if (choice === undefined) return;
      if (choice.delta && readDelta(choice.delta, parts)) hasToolCalls = true;
      if (typeof choice.finish_reason === "string") finish = choice.finish_reason;
    },
    isWhole: () => finish !== undefined,
    isDone: () => isDone,
    promptUsage: () => undefined,
    end,
  };
}

type WireDelta = NonNullable<NonNullable<WireChunk["choices"]>[number]["delta"]>;

/** Adds the parts of a delta; true when it calls tools. */
function readDelta(delta: WireDelta, parts: StreamPart[]): boolean {
  const text = delta.content ?? delta.refusal;
  if (typeof text === "string" && text.length > 0) parts.push({ type: "text-delta", text });
  const reasoning = delta.reasoning_content ?? delta.reasoning;
  if (typeof reasoning === "string" && reasoning.length > 0) parts.push({ type: "reasoning-delta", text: reasoning });
  if (delta.reasoning_details) {
    for (const item of readReasoningDetails(delta.reasoning_details)) parts.push({ type: "reasoning-item", item });
  }
  if (!Array.isArray(delta.tool_calls)) return false;
  delta.tool_calls.forEach((call, n) => {
    const name = call.function?.name;
    const index = call.index ?? n;
    if (!Number.isInteger(index) || index < 0 || index >= MAX_CALLS)
      throw malformed("a tool call at an impossible place");
    parts.push({
      type: "tool-call-delta",
      index,
      ...(typeof call.id === "string" && { id: call.id }),
      ...(typeof name === "string" && { name }),
      argumentsDelta: call.function?.arguments ?? "",
    });
  });
  return delta.tool_calls.length > 0;
}
