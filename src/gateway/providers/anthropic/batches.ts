import { z } from "zod";
import { AppError } from "../../../lib/errors.ts";
import { makeBatchClient, readItem } from "../batch-http.ts";
import type { BatchItemResult, ProviderBatches, ToHeaders } from "../provider.ts";
import { fromItemError } from "../wire-errors.ts";
import { fromMessage } from "./chat.ts";
import { toMessagesParams } from "./request.ts";

const BATCHES = "/v1/messages/batches";
/** How many of the newest batches are searched for one of ours. */
const LOOK_BACK = 100;
/** How far the provider's clock may be behind ours, in ms. */
const CLOCK_SKEW_MS = 60_000;

const wireBatch = z.object({
  id: z.string(),
  processing_status: z.string(),
  created_at: z.string(),
  request_counts: z.record(z.string(), z.number()),
});

const wireResult = z.object({
  custom_id: z.string(),
  result: z.discriminatedUnion("type", [
    z.object({ type: z.literal("succeeded"), message: z.unknown() }),
    z.object({ type: z.literal("errored"), error: z.unknown() }),
    z.object({ type: z.literal("canceled") }),
    z.object({ type: z.literal("expired") }),
  ]),
});

/**
 * Anthropic's Message Batches: https://docs.anthropic.com/en/api/creating-message-batches. They carry no name of ours, so a
 * batch whose id was lost is known by its size and by being none of the others; a group submits one at a time for that.
 */
export function makeAnthropicBatches(baseUrl: string, toHeaders: ToHeaders): ProviderBatches {
  const client = makeBatchClient(baseUrl, toHeaders);
  return {
    async submit(_batchId, items, context) {
      const requests = items.map(({ customId, request, raw }) => {
        const params = raw?.body ?? JSON.stringify(toMessagesParams(request));
        return `{"custom_id":${JSON.stringify(customId)},"params":${params}}`;
      });
      const body = { type: "application/json", content: `{"requests":[${requests.join(",")}]}` };
      const { path = BATCHES, headers = {} } = items[0]?.raw ?? {}; // all of a batch have the same
      return (await client.json(wireBatch, { path, headers, body }, context)).id;
    },
    async find({ size, since, isKnown }, context) {
      const newest = { path: `${BATCHES}?limit=${LOOK_BACK}` };
      const { data } = await client.json(z.object({ data: z.array(wireBatch) }), newest, context);
      const alike = data.filter(
        (batch) =>
          Date.parse(batch.created_at) >= since.getTime() - CLOCK_SKEW_MS &&
          Object.values(batch.request_counts).reduce((sum, count) => sum + count, 0) === size,
      );
      const known = await isKnown(alike.map(({ id }) => id));
      return alike.find(({ id }) => !known.has(id))?.id;
    },
    hasEnded: async (id, context) =>
      (await client.json(wireBatch, { path: `${BATCHES}/${id}` }, context)).processing_status === "ended",
    async *results(id, context) {
      for await (const item of client.lines(wireResult, `${BATCHES}/${id}/results`, context)) yield toItemResult(item);
    },
  };
}

function toItemResult({ custom_id: customId, result }: z.output<typeof wireResult>): BatchItemResult {
  switch (result.type) {
    case "succeeded":
      return readItem(customId, () => ({
        result: fromMessage(JSON.stringify(result.message), ""),
        raw: result.message,
      }));
    case "errored":
      return { customId, error: fromItemError(result.error) };
    case "canceled":
      return { customId, error: new AppError("provider_failed", "The provider cancelled the request.") };
    case "expired":
      return { customId, isExpired: true };
    default:
      return result satisfies never;
  }
}
