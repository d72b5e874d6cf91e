import { type EventReader, parseEvent, readNames } from "../event-stream.ts";
import { type Finish, finishOf, readFinish } from "../finish-reasons.ts";
import type { AnswerNames, StreamPart, ToolDefinition } from "../provider.ts";
import { makeCallReader } from "../tool-calls.ts";
import { endedInError, fromReportedError } from "../wire-errors.ts";
import { toUsage } from "./chat.ts";
import type { WireEvent, WireUsage } from "./wire-schemas.ts";

/** Reads the events of a streamed message. It is whole when `message_delta` had the stop reason. `tools`: those of the request. */
export function makeMessageReader(tools?: readonly ToolDefinition[]): EventReader {
  const calls = makeCallReader(tools);
  /** What calls have at their start already, by their places. */
  const inputs = new Map<number, unknown>();
  const reasoning = makeReasoningReader();
  let finish: Finish | undefined;
  let names: AnswerNames = {};
  let isDone = false;
  let usage: WireUsage = {};
  let hasPromptUsage = false;
  const end = (): StreamPart[] => {
    const parts: StreamPart[] = [];
    calls.endAll(parts, finish?.finishReason === "length");
    return [...parts, { type: "end", ...finishOf(finish, calls.count() > 0), ...names }];
  };
  /** The prompt's usage comes with the first content: alone it would make a stream that has not begun look begun. */
  const addPromptUsage = (parts: StreamPart[]) => {
    const promptUsage = toPromptUsage(usage);
    if (hasPromptUsage || promptUsage === undefined) return;
    hasPromptUsage = true;
    parts.push({ type: "prompt-usage", usage: promptUsage });
  };
  const readBlockStart = (event: WireEvent, parts: StreamPart[]) => {
    const block = event.content_block;
    if (block?.type === "text" && block.text) parts.push({ type: "text-delta", text: block.text });
    if (block?.type === "thinking" || block?.type === "redacted_thinking") reasoning.begin(block, parts);
    if (block?.type !== "tool_use") return;
    const slot = event.index ?? calls.count();
    inputs.set(slot, block.input);
    calls.begin(slot, { id: block.id, name: block.name }, parts);
  };
  const readBlockDelta = ({ index, delta }: WireEvent, parts: StreamPart[]) => {
    if (delta?.type === "text_delta" && delta.text) parts.push({ type: "text-delta", text: delta.text });
    else if (delta?.type === "thinking_delta" || delta?.type === "signature_delta") reasoning.add(delta, parts);
    else if (delta?.type === "input_json_delta" && delta.partial_json) calls.add(index ?? 0, delta.partial_json, parts);
  };
  /** A call without arguments sends none, or its whole input at the block's start. */
  const readBlockStop = ({ index = 0 }: WireEvent, parts: StreamPart[]) => {
    reasoning.end(parts);
    calls.end(index, inputs.get(index), parts);
  };
  const readEnd = (reason: unknown) => {
    const ended = readFinish(reason, calls.count() > 0);
    if (ended === "error") throw endedInError({});
    finish = ended ?? finish;
  };
  return {
    read: (data, parts, name) => {
      const event: WireEvent = parseEvent(data); // the shape is checked field by field
      if (event.type === "error" || name === "error" || event.error) throw fromReportedError(event.error ?? event);
      if (event.type === "message_start") {
        usage = { ...event.message?.usage };
        names = readNames(event.message ?? {});
      } else if (event.type === "message_delta") {
        usage = { ...usage, ...withoutNulls(event.usage) };
        if (typeof usage.output_tokens === "number" && typeof usage.input_tokens === "number")
          parts.push({ type: "usage", usage: toUsage(usage) });
        readEnd(event.delta?.stop_reason);
      } else if (event.type === "message_stop") {
        if (finish === undefined) return;
        isDone = true;
        parts.push(...end());
      } else {
        const before = parts.length;
        if (event.type === "content_block_delta") readBlockDelta(event, parts);
        else if (event.type === "content_block_start") readBlockStart(event, parts);
        else if (event.type === "content_block_stop") readBlockStop(event, parts);
        if (parts.length > before) addPromptUsage(parts);
      }
    },
    isWhole: () => finish !== undefined,
    isDone: () => isDone,
    promptUsage: () => toPromptUsage(usage),
    end,
  };
}

/** Reads the one block of reasoning that is arriving, whose text and signature come in pieces, as a whole message has it. */
function makeReasoningReader() {
  let open: NonNullable<WireEvent["content_block"]> | undefined;
  let thinking = "";
  let signature = "";
  const add = (added: { thinking?: string; signature?: string }, parts: StreamPart[]) => {
    signature += added.signature ?? "";
    if (!added.thinking) return;
    thinking += added.thinking;
    parts.push({ type: "reasoning-delta", text: added.thinking });
  };
  return {
    begin(block: NonNullable<WireEvent["content_block"]>, parts: StreamPart[]): void {
      open = block;
      thinking = "";
      signature = "";
      add(block, parts);
    },
    add,
    end(parts: StreamPart[]): void {
      if (open === undefined) return;
      parts.push({ type: "reasoning-item", item: open.type === "thinking" ? { ...open, thinking, signature } : open });
      open = undefined;
    },
  };
}

/** What the start of a message reports of its prompt. */
function toPromptUsage(usage: WireUsage) {
  return typeof usage.input_tokens === "number" ? toUsage({ ...usage, output_tokens: 0 }) : undefined;
}

/** The end of a stream may repeat the prompt's numbers or leave them null; null says nothing. */
function withoutNulls(usage: WireUsage | null | undefined): WireUsage {
  return Object.fromEntries(Object.entries(usage ?? {}).filter(([, value]) => value !== null && value !== undefined));
}
