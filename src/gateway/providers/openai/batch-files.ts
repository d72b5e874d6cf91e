import { z } from "zod";
import { AppError } from "../../../lib/errors.ts";
import { makeBatchClient } from "../batch-http.ts";
import { bearer } from "../openai-wire/provider.ts";
import type { CallContext } from "../provider.ts";

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
export type WireItem = z.output<typeof wireItem>;

/** OpenAI's Batch API: https://platform.openai.com/docs/guides/batch. A file of items, and a batch that names it. */
export function makeBatchFiles(baseUrl: string) {
  const client = makeBatchClient(baseUrl, bearer);
  const read = (id: string, context: CallContext) => client.json(wireBatch, { path: `/batches/${id}` }, context);
  const upload = async (batchId: string, file: string, context: CallContext) => {
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new Blob([file], { type: "application/jsonl" }), `${batchId}.jsonl`);
    const encoded = new Response(form); // which knows how multipart/form-data is written
    const content = Buffer.from(await encoded.arrayBuffer());
    const body = { type: encoded.headers.get("content-type") ?? "", content };
    return (await client.json(z.object({ id: z.string() }), { path: "/files", body }, context)).id;
  };
  return {
    /** Submits a file of JSON Lines under our id; the provider's id of the batch. */
    async submit(
      { batchId, endpoint, file }: { batchId: string; endpoint: string; file: string },
      context: CallContext,
    ): Promise<string> {
      const content = JSON.stringify({
        input_file_id: await upload(batchId, file, context),
        endpoint,
        completion_window: "24h",
        metadata: { [OUR_ID]: batchId },
      });
      const body = { type: "application/json", content };
      return (await client.json(wireBatch, { path: "/batches", body }, context)).id;
    },
    /** The provider's id of the batch that has our id, among its newest. */
    async find(batchId: string, context: CallContext): Promise<string | undefined> {
      const newest = { path: `/batches?limit=${LOOK_BACK}` };
      const { data } = await client.json(z.object({ data: z.array(wireBatch) }), newest, context);
      return data.find(({ metadata }) => metadata?.[OUR_ID] === batchId)?.id;
    },
    hasEnded: async (id: string, context: CallContext): Promise<boolean> =>
      endedStates.has((await read(id, context)).status),
    /** The items of a batch that has ended. @throws AppError `provider_failed` for one that the provider rejected. */
    async *items(id: string, context: CallContext): AsyncGenerator<WireItem> {
      const { status, errors, ...batch } = await read(id, context);
      if (status === "failed") {
        const reason = errors?.data?.[0]?.message ?? "no reason was given";
        throw new AppError("provider_failed", `The provider rejected the batch: ${reason}`);
      }
      for (const file of [batch.output_file_id, batch.error_file_id]) {
        if (file) yield* client.lines(wireItem, `/files/${file}/content`, context);
      }
    },
  };
}
