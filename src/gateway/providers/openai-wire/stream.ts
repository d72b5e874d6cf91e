import { type Logprob, readLogprobs } from "../../logprobs.ts";
import { type EventReader, parseEvent, readNames } from "../event-stream.ts";
import { type Finish, finishOf, readFinish } from "../finish-reasons.ts";
import type { AnswerNames, StreamPart, ToolDefinition } from "../provider.ts";
import { readReported } from "../reported-errors.ts";
import { type CallReader, makeCallReader } from "../tool-calls.ts";
import { endedInError, fromReportedError, malformed } from "../wire-errors.ts";
import { fromWireUsage, readContent } from "./completion.ts";
import { readReasoningDetails, type WireChunk, type WireDelta } from "./schemas.ts";

/** The largest number by which a server may name a place among the calls. */
const MAX_SLOT = 1_023;

/** Reads OpenAI's chunks. The `end` waits for `[DONE]`, for the usage comes after the finish reason. `tools`: those of the request. */
export function makeChunkReader(tools?: readonly ToolDefinition[]): EventReader {
  const calls = makeCallReader(tools);
  let finish: Finish | undefined;
  let isDone = false;
  let hasText = false;
  let names: AnswerNames | undefined;
  const end = (): StreamPart[] => {
    const parts: StreamPart[] = [];
    calls.endAll(parts, finish?.finishReason === "length");
    return [...parts, { type: "end", ...finishOf(finish, calls.count() > 0), ...names }];
  };
  const readChoice = (
    { delta, finish_reason: reason, logprobs, error }: NonNullable<WireChunk["choices"]>[number],
    parts: StreamPart[],
  ) => {
    if (delta) {
      const before = parts.length;
      readDelta(delta, parts, calls, readLogprobs(logprobs));
      hasText ||= parts.length > before;
    }
    const ended = readFinish(reason, calls.count() > 0);
    if (error && !hasText) throw fromReportedError(error);
    if (error || ended === "error") throw endedInError({}, error);
    finish = ended ?? finish;
  };
  return {
    read: (data, parts, name) => {
      if (data === "[DONE]") {
        if (finish === undefined) return;
        isDone = true;
        parts.push(...end());
        return;
      }
      const chunk: WireChunk = parseEvent(data); // the shape is checked field by field below
      if (chunk.error) throw fromReportedError(chunk.error);
      names ??= readNames(chunk);
      if (name === "error" || (chunk.choices === undefined && readReported(chunk))) throw fromReportedError(chunk);
      const usage = fromWireUsage(chunk.usage, chunk.service_tier);
      if (usage !== undefined) parts.push({ type: "usage", usage });
      const choice = chunk.choices?.[0]; // only one is ever asked for
      if (choice !== undefined) readChoice(choice, parts);
    },
    isWhole: () => finish !== undefined,
    isDone: () => isDone,
    promptUsage: () => undefined,
    end,
  };
}

/** Adds the parts of a delta. */
function readDelta(delta: WireDelta, parts: StreamPart[], calls: CallReader, logprobs?: Logprob[]): void {
  const said = readSaid(delta);
  const reasoning = delta.reasoning_content ?? delta.reasoning ?? said.reasoning;
  if (said.text || reasoning) calls.endAll(parts);
  if (logprobs) parts.push({ type: "text-delta", text: said.text, logprobs });
  else if (said.text) parts.push({ type: "text-delta", text: said.text });
  if (typeof reasoning === "string" && reasoning.length > 0) parts.push({ type: "reasoning-delta", text: reasoning });
  if (delta.reasoning_details) {
    for (const item of readReasoningDetails(delta.reasoning_details)) parts.push({ type: "reasoning-item", item });
  }
  if (Array.isArray(delta.tool_calls)) {
    const isOnly = delta.tool_calls.length === 1;
    delta.tool_calls.forEach((call, n) => {
      const slot = call.index === undefined || call.index === null ? (isOnly ? undefined : n) : toSlot(call.index);
      calls.take(slot, { id: call.id, ...call.function }, parts);
    });
  } else if (delta.function_call) calls.take(0, delta.function_call, parts);
}

const nothing = { text: "", reasoning: "" };

function readSaid({ content, refusal }: WireDelta) {
  if (typeof content === "string" && content !== "") return { text: content, reasoning: "" }; // nearly all of the traffic
  if (content) return readContent(content);
  return typeof refusal === "string" ? { text: refusal, reasoning: "" } : nothing;
}

function toSlot(index: unknown): number {
  const slot = Number(index);
  if (Number.isInteger(slot) && slot >= 0 && slot <= MAX_SLOT) return slot;
  throw malformed("a tool call at an impossible place");
}
