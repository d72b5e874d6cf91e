import { z } from "zod";
import { idSchema } from "../../../src/lib/ids.ts";
import { searchResults } from "../../../src/surfaces/responses/file-search.ts";
import { sealedReasoning } from "../../../src/surfaces/responses/request.ts";
import { responseEventSchema, responseObjectSchema } from "../../../src/surfaces/responses/response-schemas.ts";
import { withoutResults } from "../../../src/surfaces/responses/stored/views.ts";
import type { NumberedEvent } from "../../../src/surfaces/responses/stream.ts";
import { declareRoutes, type SseMessage } from "../../route.ts";
import { formatSseMessage } from "../../sse.ts";
import { includes, including, itemPageSchema, itemsQuery, toItemPage } from "./items.ts";

const params = z.object({ id: idSchema("response") });

const routes = declareRoutes({ auth: "member", tags: ["OpenAI-compatible"] });

export const storedResponseRoutes = [
  routes.get("/v1/responses/:id", {
    isOfOwn: "responses",
    summary: "A stored response, as it is now, or its events",
    description:
      "`stream=true` gives the events of a response that was made with `background` and `stream`, also while it is made: those " +
      "after the number `starting_after`, up to its end.",
    params,
    query: including.extend({
      stream: z.enum(["true", "false"]).optional(),
      starting_after: z.coerce
        .number()
        .int()
        .min(0)
        .optional()
        .describe("The number of the last event that was received"),
      include_obfuscation: z.enum(["true", "false"]).optional().describe("Nothing is obfuscated"),
    }),
    responses: { 200: { description: "The response", body: responseObjectSchema, events: responseEventSchema } },
    async handler({ params: { id }, query, caller, platform: { responses }, signal, reserve, inTurn }) {
      const { tenantId, collections } = caller;
      if (query.stream !== "true") {
        // Another key may have searched what this one must not read.
        const areResultsShown = collections === undefined && includes(query, searchResults);
        const included = { isSealedShown: includes(query, sealedReasoning), areResultsShown };
        return { status: 200, body: await responses.read(tenantId, id, { ...included, reserve, inTurn }) };
      }
      const events = await responses.events(tenantId, id, {
        after: query.starting_after ?? -1,
        signal,
        inTurn,
        reserve,
      });
      return { status: 200, events: toSse(collections ? withoutResults(events) : events), isEager: true };
    },
  }),
  routes.post("/v1/responses/:id/cancel", {
    isOfOwn: "responses",
    summary: "Cancel a response in the background",
    description: "One that has ended stays as it is.",
    params,
    responses: { 200: { description: "The response as it is now", body: responseObjectSchema } },
    errors: ["invalid_request"],
    result: ({ params: { id }, caller, platform }) => platform.responses.cancel(caller.tenantId, id),
  }),
  routes.get("/v1/responses/:id/input_items", {
    isOfOwn: "responses",
    summary: "The items of a stored response's own input, the last one first",
    description:
      "Without those of the responses before it. What the input referred to is in the places of the references.",
    params,
    query: itemsQuery,
    responses: { 200: { description: "A page of items", body: itemPageSchema } },
    async result({ params: { id }, query, caller, platform, inTurn }) {
      const isSealedShown = includes(query, sealedReasoning);
      const items = await inTurn(() => platform.responses.inputItems(caller.tenantId, id, isSealedShown));
      return toItemPage(items, query);
    },
  }),
  routes.delete("/v1/responses/:id", {
    isOfOwn: "responses",
    summary: "Delete a stored response",
    description:
      "What continues it can be read, and cannot be continued any more. One that is made in the background is cancelled.",
    params,
    responses: {
      200: {
        description: "It is deleted",
        body: z.object({ id: z.string(), object: z.literal("response"), deleted: z.literal(true) }),
      },
    },
    async result({ params: { id }, caller, platform }) {
      await platform.responses.remove(caller.tenantId, id);
      return { id, object: "response", deleted: true };
    },
  }),
];

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
