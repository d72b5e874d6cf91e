import { type EventReader, parseEvent } from "../event-stream.ts";
import type { StreamPart } from "../provider.ts";
import { malformed } from "../wire-errors.ts";
import { readReasoning, toFailure, toFinishReason, toUsage } from "./response.ts";
import { type EndedResponse, endedResponse, type WireEvent } from "./schemas.ts";

/** Reads the semantic events of a streamed response. Its last one repeats the response with its usage. */
export function makeResponseReader(): EventReader {
  const calls = makeCallReader();
  let last: EndedResponse | undefined;
  let failed: EndedResponse | undefined;
  const end = (): StreamPart[] => [{ type: "end", finishReason: toFinishReason(last ?? {}, calls.count() > 0) }];
  const readLast = (event: WireEvent, parts: StreamPart[]) => {
    const parsed = endedResponse.safeParse(event.response);
    if (!parsed.success) throw malformed("an event that holds no response", parsed.error);
    if (parsed.data.usage) parts.push({ type: "usage", usage: toUsage(parsed.data.usage, parsed.data.service_tier) });
    last = parsed.data;
    parts.push(...end());
  };
  return {
    read: (data, parts) => {
      const event: WireEvent = parseEvent(data); // the shape is checked field by field
      switch (event.type) {
        case "response.output_text.delta":
        case "response.refusal.delta":
          if (event.delta) parts.push({ type: "text-delta", text: event.delta });
          break;
        case "response.reasoning_summary_text.delta":
        case "response.reasoning_text.delta":
          if (event.delta) parts.push({ type: "reasoning-delta", text: event.delta });
          break;
        case "response.reasoning_summary_part.added":
          if (event.summary_index) parts.push({ type: "reasoning-delta", text: "\n\n" });
          break;
        case "response.output_item.added":
          calls.begin(event, parts);
          break;
        case "response.function_call_arguments.delta":
          calls.add(event.output_index, event.delta, parts);
          break;
        case "response.output_item.done":
          // Only here is the encrypted reasoning whole.
          if (event.item?.type === "reasoning" && readReasoning(event.item).canReturn)
            parts.push({ type: "reasoning-item", item: event.item });
          calls.end(event, parts);
          break;
        case "response.completed":
        case "response.incomplete":
          readLast(event, parts);
          break;
        case "response.failed":
          failed = endedResponse.safeParse(event.response).data;
          throw toFailure(failed?.error);
        case "error":
          throw toFailure(event.error ?? event);
      }
    },
    isWhole: () => last !== undefined,
    isDone: () => last !== undefined,
    /** A response that failed costs what it reports. */
    promptUsage: () => failed && toUsage(failed.usage ?? { input_tokens: 0 }),
    end,
  };
}

/** Reads the tool calls of a response, whose events name them by their places among its items. */
function makeCallReader() {
  const calls = new Map<number, { index: number; hasArguments: boolean }>();
  const add = (place = 0, text: unknown, parts: StreamPart[]) => {
    const call = calls.get(place);
    if (call === undefined || typeof text !== "string" || text === "") return;
    call.hasArguments = true;
    parts.push({ type: "tool-call-delta", index: call.index, argumentsDelta: text });
  };
  return {
    count: () => calls.size,
    begin({ item, output_index: place = 0 }: WireEvent, parts: StreamPart[]): void {
      if (item?.type !== "function_call") return;
      const index = calls.size;
      calls.set(place, { index, hasArguments: false });
      const { call_id: id, name } = item;
      parts.push({
        type: "tool-call-delta",
        index,
        ...(typeof id === "string" && { id }),
        ...(typeof name === "string" && { name }),
        argumentsDelta: "",
      });
    },
    add,
    /** Some servers send the arguments only with the whole item. */
    end({ item, output_index: place = 0 }: WireEvent, parts: StreamPart[]): void {
      if (calls.get(place)?.hasArguments === false) add(place, item?.arguments, parts);
    },
  };
}
