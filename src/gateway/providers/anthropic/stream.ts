import { type EventReader, parseEvent } from "../event-stream.ts";
import type { StreamPart } from "../provider.ts";
import { fromStreamError } from "../wire-errors.ts";
import { toFinishReason, toUsage } from "./chat.ts";
import type { WireEvent, WireUsage } from "./wire-schemas.ts";

/** A tool call whose arguments are arriving: its place among the calls, and whether any came. */
type OpenCall = { index: number; hasArguments: boolean; input: unknown };

/** Reads the events of a streamed message. It is whole when `message_delta` had the stop reason. */
export function makeMessageReader(): EventReader {
  const calls = new Map<number, OpenCall>();
  const reasoning = makeReasoningReader();
  let callCount = 0;
  let stopReason: string | undefined;
  let isDone = false;
  let usage: WireUsage = {};
  let hasPromptUsage = false;
  const end = (): StreamPart[] => [{ type: "end", finishReason: toFinishReason(stopReason) }];
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
    const call = { index: callCount++, hasArguments: false, input: block.input };
    calls.set(event.index ?? call.index, call);
    parts.push(toCallStart(call.index, block));
  };
  const readBlockDelta = ({ index, delta }: WireEvent, parts: StreamPart[]) => {
    if (delta?.type === "text_delta" && delta.text) parts.push({ type: "text-delta", text: delta.text });
    else if (delta?.type === "thinking_delta" || delta?.type === "signature_delta") reasoning.add(delta, parts);
    else if (delta?.type === "input_json_delta" && delta.partial_json) {
      const call = calls.get(index ?? 0);
      if (call === undefined) return;
      call.hasArguments = true;
      parts.push({ type: "tool-call-delta", index: call.index, argumentsDelta: delta.partial_json });
    }
  };
  /** A call without arguments sends none, or its whole input at the block's start. */
  const readBlockStop = ({ index }: WireEvent, parts: StreamPart[]) => {
    reasoning.end(parts);
    const call = calls.get(index ?? 0);
    if (call === undefined || call.hasArguments) return;
    call.hasArguments = true;
    parts.push({ type: "tool-call-delta", index: call.index, argumentsDelta: JSON.stringify(call.input ?? {}) });
  };
  return {
    read: (data, parts) => {
      const event: WireEvent = parseEvent(data); // the shape is checked field by field
      if (event.type === "error" || event.error) throw fromStreamError(event.error);
      if (event.type === "message_start") usage = { ...event.message?.usage };
      else if (event.type === "message_delta") {
        usage = { ...usage, ...withoutNulls(event.usage) };
        if (typeof usage.output_tokens === "number" && typeof usage.input_tokens === "number")
          parts.push({ type: "usage", usage: toUsage(usage) });
        stopReason = event.delta?.stop_reason ?? stopReason;
      } else if (event.type === "message_stop") {
        if (stopReason === undefined) return;
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
    isWhole: () => stopReason !== undefined,
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

function toCallStart(index: number, { id, name }: NonNullable<WireEvent["content_block"]>): StreamPart {
  return {
    type: "tool-call-delta",
    index,
    ...(typeof id === "string" ? { id } : {}),
    ...(typeof name === "string" ? { name } : {}),
    argumentsDelta: "",
  };
}

/** What the start of a message reports of its prompt. */
function toPromptUsage(usage: WireUsage) {
  return typeof usage.input_tokens === "number" ? toUsage({ ...usage, output_tokens: 0 }) : undefined;
}

/** The end of a stream may repeat the prompt's numbers or leave them null; null says nothing. */
function withoutNulls(usage: WireUsage | null | undefined): WireUsage {
  return Object.fromEntries(Object.entries(usage ?? {}).filter(([, value]) => typeof value === "number"));
}
