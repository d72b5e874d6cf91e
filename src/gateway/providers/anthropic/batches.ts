import { z } from "zod";
import { AppError } from "../../../errors.ts";
import { askForJson, askForLines, type BatchRequest } from "../batch-http.ts";
import type { BatchLineResult, CallContext, ProviderBatches } from "../provider.ts";
import { fromWireError, malformed } from "../wire-errors.ts";
import { fromMessage } from "./chat.ts";
import { toMessagesParams } from "./request.ts";

const BATCHES = "/v1/messages/batches";
/** How many of the newest batches are looked through for one of ours. */
const LOOK_BACK = 100;
/** How far the provider's clock may be behind ours, in ms. */
const CLOCK_SKEW_MS = 60_000;

const counts = z.record(z.string(), z.number());
const wireBatch = z.object({
  id: z.string(),
  processing_status: z.string(),
  created_at: z.string(),
  request_counts: counts,
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
 * batch whose id was lost is known by its size and by being none of the others; a group hands in one at a time for that.
 */
export function makeAnthropicBatches(
  baseUrl: string,
  toHeaders: (apiKey: string | undefined) => Record<string, string>,
): ProviderBatches {
  const toCall = (
    method: BatchRequest["method"],
    path: string,
    { apiKey }: CallContext,
    body?: string,
  ): BatchRequest => ({
    method,
    url: `${baseUrl}${path}`,
    headers: { ...toHeaders(apiKey), ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body }),
  });
  return {
    async submit(_batchId, lines, context) {
      const requests = lines.map(({ customId, request }) => ({
        custom_id: customId,
        params: toMessagesParams(request),
      }));
      const made = await askForJson(toCall("POST", BATCHES, context, JSON.stringify({ requests })), context);
      return parse(wireBatch, made).id;
    },
    async find({ size, since, isKnown }, context) {
      const list = await askForJson(toCall("GET", `${BATCHES}?limit=${LOOK_BACK}`, context), context);
      const { data } = parse(z.object({ data: z.array(wireBatch) }), list);
      const alike = data.filter(
        (batch) =>
          Date.parse(batch.created_at) >= since.getTime() - CLOCK_SKEW_MS &&
          Object.values(batch.request_counts).reduce((sum, count) => sum + count, 0) === size,
      );
      const known = await isKnown(alike.map(({ id }) => id));
      return alike.find(({ id }) => !known.has(id))?.id;
    },
    async hasEnded(id, context) {
      const batch = parse(wireBatch, await askForJson(toCall("GET", `${BATCHES}/${id}`, context), context));
      return batch.processing_status === "ended";
    },
    async *results(id, context) {
      for await (const line of askForLines(toCall("GET", `${BATCHES}/${id}/results`, context), context)) {
        yield toLineResult(parse(wireResult, line));
      }
    },
  };
}

function toLineResult({ custom_id: customId, result }: z.output<typeof wireResult>): BatchLineResult {
  switch (result.type) {
    case "succeeded":
      return { customId, result: fromMessage(result.message, "") };
    case "errored":
      return { customId, error: fromWireError(400, {}, JSON.stringify(result.error)) };
    case "canceled":
      return { customId, error: new AppError("provider_failed", "The provider cancelled the request.") };
    case "expired":
      return { customId, isExpired: true };
    default:
      return result satisfies never;
  }
}

function parse<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw malformed("an answer that does not fit its batch interface", parsed.error);
}
