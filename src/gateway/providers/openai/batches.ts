import { z } from "zod";
import { AppError } from "../../../errors.ts";
import { makeBatchClient, readItem } from "../batch-http.ts";
import { toWireRequest } from "../openai-responses/request.ts";
import { fromResponse } from "../openai-responses/response.ts";
import { wireResponse } from "../openai-responses/schemas.ts";
import { fromWireChat, toWireChat, type WireDialect } from "../openai-wire/chat.ts";
import { bearer } from "../openai-wire/provider.ts";
import type { BatchItem, BatchItemResult, CallContext, ProviderBatches } from "../provider.ts";
import { fromWireError } from "../wire-errors.ts";
import { needsResponses } from "./choose-wire.ts";

const CHAT = "/v1/chat/completions";
const RESPONSES = "/v1/responses";
const endedStates = new Set(["completed", "failed", "expired", "cancelled"]);
/** The field of a batch's metadata that holds our id of it. */
const OUR_ID = "switchyard_batch";
/** How many of the newest batches are looked through for one of ours. */
const LOOK_BACK = 100;

const wireBatch = z.object({
  id: z.string(),
  status: z.string(),
  output_file_id: z.string().nullish(),
  error_file_id: z.string().nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
  errors: z.object({ data: z.array(z.object({ message: z.string().nullish() })).nullish() }).nullish(),
});

const wireItem = z.object({
  custom_id: z.string(),
  response: z.object({ status_code: z.number(), body: z.unknown() }).nullish(),
  error: z.object({ code: z.string().nullish(), message: z.string().nullish() }).nullish(),
});

/** OpenAI's Batch API: https://platform.openai.com/docs/guides/batch. A file of items, and a batch that names it. */
export function makeOpenAiBatches(baseUrl: string, dialect: WireDialect): ProviderBatches {
  const client = makeBatchClient(baseUrl, bearer);
  const read = (id: string, context: CallContext) => client.json(wireBatch, { path: `/batches/${id}` }, context);
  const upload = async (batchId: string, items: readonly BatchItem[], context: CallContext) => {
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new Blob([toFile(items, dialect)], { type: "application/jsonl" }), `${batchId}.jsonl`);
    const encoded = new Response(form); // which knows how multipart/form-data is written
    const content = Buffer.from(await encoded.arrayBuffer());
    const body = { type: encoded.headers.get("content-type") ?? "", content };
    return (await client.json(z.object({ id: z.string() }), { path: "/files", body }, context)).id;
  };
  return {
    kindOf: (request) => (needsResponses(request) ? RESPONSES : ""),
    async submit(batchId, items, context) {
      const content = JSON.stringify({
        input_file_id: await upload(batchId, items, context),
        endpoint: endpointOf(items),
        completion_window: "24h",
        metadata: { [OUR_ID]: batchId },
      });
      const body = { type: "application/json", content };
      return (await client.json(wireBatch, { path: "/batches", body }, context)).id;
    },
    async find({ batchId }, context) {
      const newest = { path: `/batches?limit=${LOOK_BACK}` };
      const { data } = await client.json(z.object({ data: z.array(wireBatch) }), newest, context);
      return data.find(({ metadata }) => metadata?.[OUR_ID] === batchId)?.id;
    },
    hasEnded: async (id, context) => endedStates.has((await read(id, context)).status),
    async *results(id, context) {
      const { status, errors, ...batch } = await read(id, context);
      if (status === "failed") {
        const reason = errors?.data?.[0]?.message ?? "no reason was given";
        throw new AppError("provider_failed", `The provider rejected the batch: ${reason}`);
      }
      for (const file of [batch.output_file_id, batch.error_file_id]) {
        if (!file) continue;
        for await (const item of client.lines(wireItem, `/files/${file}/content`, context)) yield toItemResult(item);
      }
    },
  };
}

const endpointOf = (items: readonly BatchItem[]) =>
  items.some(({ request }) => needsResponses(request)) ? RESPONSES : CHAT;

function toFile(items: readonly BatchItem[], dialect: WireDialect): string {
  const url = endpointOf(items);
  return items
    .map(({ customId, request }) => {
      const head = JSON.stringify({ custom_id: customId, method: "POST", url });
      const body = url === CHAT ? toWireChat(request, dialect, false) : toWireRequest(request, false);
      return `${head.slice(0, -1)},"body":${body}}\n`;
    })
    .join("");
}

function toItemResult({ custom_id: customId, response, error }: z.output<typeof wireItem>): BatchItemResult {
  if (error?.code === "batch_expired") return { customId, isExpired: true };
  if (!response) {
    return { customId, error: new AppError("provider_failed", error?.message ?? "The provider gave no answer.") };
  }
  const body = JSON.stringify(response.body);
  if (response.status_code >= 300) return { customId, error: fromWireError(response.status_code, {}, body) };
  const read = wireResponse.safeParse(response.body).success ? fromResponse : fromWireChat;
  return readItem(customId, () => ({ result: read(body, "") }));
}
