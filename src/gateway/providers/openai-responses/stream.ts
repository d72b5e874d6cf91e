import { type EventReader, parseEvent, readNames } from "../event-stream.ts";
import type { StreamPart, ToolDefinition } from "../provider.ts";
import { makeCallReader } from "../tool-calls.ts";
import { endedInError, fromReportedError, malformed } from "../wire-errors.ts";
import { readReasoning, toFinish, toUsage } from "./response.ts";
import { type EndedResponse, endedResponse, type WireEvent } from "./schemas.ts";

/** Reads the semantic events of a streamed response. Its last one repeats the response with its usage. `tools`: those of the request. */
export function makeResponseReader(tools?: readonly ToolDefinition[]): EventReader {
  const calls = makeCallReader(tools);
  let last: EndedResponse | undefined;
  let failed: EndedResponse | undefined;
  const end = (): StreamPart[] => {
    const finish = toFinish(last ?? {}, calls.count() > 0);
    if (finish === "error") throw endedInError({}, last?.error);
    const parts: StreamPart[] = [];
    calls.endAll(parts, finish.finishReason === "length");
    return [...parts, { type: "end", ...finish, ...readNames(last ?? {}) }];
  };
  const readLast = (event: WireEvent, parts: StreamPart[]) => {
    const parsed = endedResponse.safeParse(event.response);
    if (!parsed.success) throw malformed("an event that holds no response", parsed.error);
    if (parsed.data.usage) parts.push({ type: "usage", usage: toUsage(parsed.data.usage, parsed.data.service_tier) });
    last = parsed.data;
    parts.push(...end());
  };
  return {
    read: (data, parts, name) => {
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
          if (event.item?.type === "function_call") {
            const { call_id: callId, id, name } = event.item;
            calls.begin(event.output_index ?? 0, { id: callId ?? id, name }, parts);
          }
          break;
        case "response.function_call_arguments.delta":
          calls.add(event.output_index ?? 0, event.delta, parts);
          break;
        case "response.output_item.done":
          // Only here is the encrypted reasoning whole.
          if (event.item?.type === "reasoning" && readReasoning(event.item).canReturn)
            parts.push({ type: "reasoning-item", item: event.item });
          if (event.item?.type === "function_call") calls.end(event.output_index ?? 0, event.item.arguments, parts);
          break;
        case "response.completed":
        case "response.incomplete":
          readLast(event, parts);
          break;
        case "response.failed":
          failed = endedResponse.safeParse(event.response).data;
          throw fromReportedError(failed?.error ?? {});
        case "error":
          throw fromReportedError(event.error ?? event);
        default:
          if (event.error || name === "error") throw fromReportedError(event.error ?? event);
      }
    },
    isWhole: () => last !== undefined,
    isDone: () => last !== undefined,
    /** A response that failed costs what it reports. */
    promptUsage: () => failed && toUsage(failed.usage ?? { input_tokens: 0 }),
    end,
  };
}
