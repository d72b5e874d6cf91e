import { type ChatDelta, type ChatEvent, toReasoningText } from "../../gateway/chat/steps.ts";
import type { StreamEnd } from "../../gateway/chat/stream.ts";
import { defined } from "../../lib/defined.ts";
import { AppError } from "../../lib/errors.ts";
import type { AnswerBlock, BlockDelta, MessageEvent } from "./schemas.ts";
import { stopReasons, toMessageId, toMessageUsage, toThinking } from "./to-message.ts";

/** The events of a streamed message, those of one batch together. `inputTokens` is the estimate that it begins with. */
export async function* toMessageEvents(
  batches: AsyncIterable<ChatEvent[]>,
  { id, model, inputTokens }: { id: string; model: string; inputTokens: number },
): AsyncGenerator<MessageEvent[]> {
  const blocks = makeBlocks();
  let hasBegun = false;
  for await (const batch of batches) {
    const events: MessageEvent[] = hasBegun ? [] : [toStart(id, model, inputTokens), { type: "ping" }];
    hasBegun = true;
    for (const event of batch) {
      if (event.type !== "end") blocks.take(event, events);
      else {
        blocks.close(events);
        events.push(...toEnd(event));
      }
    }
    yield events;
  }
}

function toStart(id: string, model: string, inputTokens: number): MessageEvent {
  const usage = toMessageUsage({ inputTokens, outputTokens: 0 });
  const about = { id: toMessageId(id), type: "message" as const, role: "assistant" as const, model, content: [] };
  return { type: "message_start", message: { ...about, stop_reason: null, stop_sequence: null, usage } };
}

function toEnd({ finishReason, providerFinishReason, usage, logId, costUsd, cached }: StreamEnd): MessageEvent[] {
  const delta = { stop_reason: stopReasons[finishReason], stop_sequence: null };
  return [
    {
      type: "message_delta",
      delta,
      usage: toMessageUsage(usage),
      logId,
      costUsd,
      cached,
      ...defined({ providerFinishReason }),
    },
    { type: "message_stop" },
  ];
}

/** Puts deltas into blocks, one after the other: the next begins when the last has ended. */
function makeBlocks() {
  let index = -1;
  let open: string | undefined;
  const calls = new Set<number>();
  const close = (events: MessageEvent[]) => {
    if (open !== undefined) events.push({ type: "content_block_stop", index });
    open = undefined;
  };
  const begin = (kind: string, block: AnswerBlock, events: MessageEvent[]) => {
    if (open === kind) return;
    close(events);
    open = kind;
    index += 1;
    events.push({ type: "content_block_start", index, content_block: block });
  };
  const add = (delta: BlockDelta, events: MessageEvent[]) => {
    events.push({ type: "content_block_delta", index, delta });
  };
  /** Reasoning whose text has been streamed already gets its signature; other reasoning is a block of its own. */
  const takeItem = (part: Extract<ChatDelta, { type: "reasoning-item" }>, events: MessageEvent[]) => {
    const block = toThinking(part);
    if (block.type !== "thinking") begin("item", block, events);
    else {
      begin("thinking", { type: "thinking", thinking: "", signature: "" }, events);
      add({ type: "signature_delta", signature: block.signature }, events);
    }
    close(events);
  };
  const takeCall = (event: Extract<ChatDelta, { type: "tool-call-delta" }>, events: MessageEvent[]) => {
    const kind = `call ${event.index}`;
    if (open !== kind && calls.has(event.index))
      throw new AppError("provider_failed", "The provider mixed the parts of several tool calls.");
    calls.add(event.index);
    const { id = `call_${event.index}`, name = "", argumentsDelta } = event;
    begin(kind, { type: "tool_use", id, name, input: {} }, events);
    if (argumentsDelta !== "") add({ type: "input_json_delta", partial_json: argumentsDelta }, events);
  };
  return {
    take(event: ChatDelta, events: MessageEvent[]): void {
      if (event.type === "text-delta") {
        begin("text", { type: "text", text: "" }, events);
        add({ type: "text_delta", text: event.text }, events);
      } else if (event.type === "reasoning-item") takeItem(event, events);
      else if (event.type === "tool-call-delta") takeCall(event, events);
      else {
        const thinking = toReasoningText(event);
        if (thinking === "") return;
        begin("thinking", { type: "thinking", thinking: "", signature: "" }, events);
        add({ type: "thinking_delta", thinking }, events);
      }
    },
    close,
  };
}
