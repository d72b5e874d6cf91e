import { z } from "zod";
import type { OutputItem } from "../response-schemas.ts";
import type { NumberedEvent } from "../stream.ts";
import type { KeptItem } from "./item-ids.ts";

/** An item of a response's input, as OpenAI's lists have it: https://platform.openai.com/docs/api-reference/responses/input-items. */
export const shownItemSchema = z.looseObject({
  id: z.string(),
  type: z.string().describe("`message`, `reasoning`, or the call of a tool or its output"),
});
type ShownItem = z.output<typeof shownItemSchema>;

/** What of a response is shown to those alone who ask for it: its sealed reasoning, and what its searches found. */
export type Included = { isSealedShown: boolean; areResultsShown: boolean };

/** An item without what was not asked for. */
export function toIncluded(item: OutputItem, { isSealedShown, areResultsShown }: Included): OutputItem {
  if (item.type === "file_search_call" && !areResultsShown) return { ...item, results: null };
  if (item.type !== "reasoning" || isSealedShown) return item;
  const { encrypted_content: _sealed, ...shown } = item;
  return shown;
}

/** The events of a response without what its searches found. */
export async function* withoutResults(batches: AsyncIterable<NumberedEvent[]>): AsyncGenerator<NumberedEvent[]> {
  const hide = (item: OutputItem) => toIncluded(item, { isSealedShown: true, areResultsShown: false });
  for await (const batch of batches)
    yield batch.map((event) => {
      if ("item" in event) return { ...event, item: hide(event.item) };
      if (!("response" in event)) return event;
      return { ...event, response: { ...event.response, output: event.response.output.map(hide) } };
    });
}

type Given = { id: string; item: KeptItem | OutputItem; isSealedShown: boolean };

/** An item with its id; a text that stood for itself as the one part that it is. */
export function toShownItem({ id, item, isSealedShown }: Given): ShownItem {
  const status = "completed";
  switch (item.type) {
    case "function_call":
    case "function_call_output":
    case "custom_tool_call":
    case "custom_tool_call_output":
    case "mcp_call":
    case "file_search_call":
      return { status, ...item, id };
    case "compaction":
    case "mcp_approval_response":
      return { ...item, id };
    case "mcp_approval_request":
      return item;
    case "reasoning":
      return {
        id,
        type: item.type,
        summary: "summary" in item ? item.summary : [],
        ...(isSealedShown && item.encrypted_content ? { encrypted_content: item.encrypted_content } : {}),
      };
    default: {
      const { role, content } = item;
      const type = role === "assistant" ? "output_text" : "input_text";
      const marks = role === "assistant" ? { annotations: [], logprobs: [] } : {};
      const parts = typeof content === "string" ? [{ type, text: content, ...marks }] : content;
      return { id, type: "message", status, role, content: parts };
    }
  }
}
