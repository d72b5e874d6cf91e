import type { NumberedEvent } from "../../../src/surfaces/responses/stream.ts";
import type { SseMessage } from "../../route.ts";
import { formatSseMessage } from "../../sse.ts";

/** The events of a response as the bytes of its stream, those of one batch together. */
export async function* toSse(batches: AsyncIterable<NumberedEvent[]>): AsyncGenerator<Buffer> {
  const formatDelta = makeDeltaFormat();
  for await (const batch of batches) {
    let text = "";
    for (const event of batch)
      text += event.type === "response.output_text.delta" ? formatDelta(event) : formatSseMessage(toMessage(event));
    yield Buffer.from(text);
  }
}

export const toMessage = (data: NumberedEvent): SseMessage => ({ event: data.type, data });

type TextDelta = Extract<NumberedEvent, { type: "response.output_text.delta" }>;

/** A stream has an event for each token of its text: what those of one item begin with is made once. */
function makeDeltaFormat() {
  let head = "";
  let itemId: string | undefined;
  return ({ type, item_id, output_index, content_index, delta, sequence_number }: TextDelta): string => {
    if (item_id !== itemId) {
      const json = JSON.stringify({ type, item_id, output_index, content_index });
      head = `event: ${type}\ndata: ${json.slice(0, -1)},"logprobs":[],"delta":`;
      itemId = item_id;
    }
    return `${head}${JSON.stringify(delta)},"sequence_number":${sequence_number}}\n\n`;
  };
}
