import type { OutputItem, ResponseEvent } from "../response-schemas.ts";

type Unfinished = Map<number, OutputItem>;

/**
 * The events that end the items of an attempt that was cut, as incomplete, and how many items its events have begun. Clients
 * refuse items that have no end, and others in the places of earlier ones.
 */
export function closeUnfinished(events: readonly ResponseEvent[]): { events: ResponseEvent[]; items: number } {
  const unfinished: Unfinished = new Map();
  let items = 0;
  for (const event of events) {
    if (!("output_index" in event)) continue;
    items = Math.max(items, event.output_index + 1);
    if (event.type === "response.output_item.added") unfinished.set(event.output_index, event.item);
    else if (event.type === "response.output_item.done") unfinished.delete(event.output_index);
    else grow(unfinished, event);
  }
  const closing = [...unfinished].map(([output_index, item]): ResponseEvent => {
    return { type: "response.output_item.done", output_index, item: toIncomplete(item) };
  });
  return { events: closing, items };
}

function toIncomplete(item: OutputItem): OutputItem {
  if (item.type === "reasoning" || item.type === "mcp_approval_request") return item;
  if (item.type === "mcp_call") return { ...item, status: "failed", error: "The attempt was cut." };
  return { ...item, status: "incomplete" };
}

/** Adds to an item what one of its events says of it. */
function grow(unfinished: Unfinished, event: Extract<ResponseEvent, { output_index: number; item_id: string }>): void {
  const item = unfinished.get(event.output_index);
  const set = (grown: OutputItem) => void unfinished.set(event.output_index, grown);
  if (item?.type === "message") {
    if (event.type === "response.content_part.added") set({ ...item, content: [event.part] });
    if (event.type === "response.output_text.delta") {
      set({ ...item, content: item.content.map((part) => ({ ...part, text: part.text + event.delta })) });
    }
    if (event.type === "response.output_text.annotation.added") {
      const cite = (part: (typeof item.content)[number]) => [...part.annotations, event.annotation];
      set({ ...item, content: item.content.map((part) => ({ ...part, annotations: cite(part) })) });
    }
  } else if (item?.type === "reasoning") {
    if (event.type === "response.reasoning_summary_part.added") set({ ...item, summary: [event.part] });
    if (event.type === "response.reasoning_summary_text.delta") {
      set({ ...item, summary: item.summary.map((part) => ({ ...part, text: part.text + event.delta })) });
    }
  } else if (item?.type === "function_call" && event.type === "response.function_call_arguments.delta") {
    set({ ...item, arguments: item.arguments + event.delta });
  } else if (item?.type === "mcp_call" && event.type === "response.mcp_call_arguments.delta") {
    set({ ...item, arguments: item.arguments + event.delta });
  } else if (item?.type === "custom_tool_call" && event.type === "response.custom_tool_call_input.delta") {
    set({ ...item, input: item.input + event.delta });
  }
}
