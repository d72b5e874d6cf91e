import { z } from "zod";
import { AppError } from "../../../errors.ts";
import { askForJson, askForLines, type BatchRequest } from "../batch-http.ts";
import { fromWireChat, toWireChat, type WireDialect } from "../openai-wire/chat.ts";
import type { BatchLine, BatchLineResult, CallContext, ProviderBatches } from "../provider.ts";
import { fromWireError, malformed } from "../wire-errors.ts";

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
type WireBatch = z.output<typeof wireBatch>;

const wireLine = z.object({
  custom_id: z.string(),
  response: z.object({ status_code: z.number(), body: z.unknown() }).nullish(),
  error: z.object({ code: z.string().nullish(), message: z.string().nullish() }).nullish(),
});

/** OpenAI's Batch API: https://platform.openai.com/docs/guides/batch. A file of lines, and a batch that names it. */
export function makeOpenAiBatches(baseUrl: string, dialect: WireDialect): ProviderBatches {
  const toCall = (
    method: BatchRequest["method"],
    path: string,
    { apiKey }: CallContext,
    body?: { type: string; content: string | Buffer },
  ): BatchRequest => ({
    method,
    url: `${baseUrl}${path}`,
    headers: {
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      ...(body === undefined ? {} : { "content-type": body.type }),
    },
    ...(body === undefined ? {} : { body: body.content }),
  });
  const read = async (id: string, context: CallContext) =>
    parse(wireBatch, await askForJson(toCall("GET", `/batches/${id}`, context), context));
  const upload = async (batchId: string, lines: readonly BatchLine[], context: CallContext) => {
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new Blob([toFile(lines, dialect)], { type: "application/jsonl" }), `${batchId}.jsonl`);
    const encoded = new Response(form); // which knows how multipart/form-data is written
    const content = Buffer.from(await encoded.arrayBuffer());
    const type = encoded.headers.get("content-type") ?? "";
    const file = await askForJson(toCall("POST", "/files", context, { type, content }), context);
    return parse(z.object({ id: z.string() }), file).id;
  };
  return {
    async submit(batchId, lines, context) {
      const content = JSON.stringify({
        input_file_id: await upload(batchId, lines, context),
        endpoint: "/v1/chat/completions",
        completion_window: "24h",
        metadata: { [OUR_ID]: batchId },
      });
      return parse(
        wireBatch,
        await askForJson(toCall("POST", "/batches", context, { type: "application/json", content }), context),
      ).id;
    },
    async find({ batchId }, context) {
      const list = await askForJson(toCall("GET", `/batches?limit=${LOOK_BACK}`, context), context);
      const { data } = parse(z.object({ data: z.array(wireBatch) }), list);
      return data.find(({ metadata }) => metadata?.[OUR_ID] === batchId)?.id;
    },
    hasEnded: async (id, context) => endedStates.has((await read(id, context)).status),
    async *results(id, context) {
      const batch = await read(id, context);
      if (batch.status === "failed") throw refused(batch);
      for (const file of [batch.output_file_id, batch.error_file_id]) {
        if (!file) continue;
        for await (const line of askForLines(toCall("GET", `/files/${file}/content`, context), context)) {
          yield toLineResult(parse(wireLine, line));
        }
      }
    },
  };
}

function toFile(lines: readonly BatchLine[], dialect: WireDialect): string {
  return lines
    .map(({ customId, request }) => {
      const head = JSON.stringify({ custom_id: customId, method: "POST", url: "/v1/chat/completions" });
      return `${head.slice(0, -1)},"body":${toWireChat(request, dialect, false)}}\n`;
    })
    .join("");
}

function toLineResult({ custom_id: customId, response, error }: z.output<typeof wireLine>): BatchLineResult {
  if (error?.code === "batch_expired") return { customId, isExpired: true };
  if (!response) {
    return { customId, error: new AppError("provider_failed", error?.message ?? "The provider gave no answer.") };
  }
  const body = JSON.stringify(response.body);
  if (response.status_code >= 300) return { customId, error: fromWireError(response.status_code, {}, body) };
  return { customId, result: fromWireChat(body, "") };
}

/** The error of a batch that was not accepted as a whole: the same for each of its lines. */
function refused({ errors }: WireBatch): AppError {
  const reason = errors?.data?.[0]?.message ?? "no reason was given";
  return new AppError("provider_failed", `The provider refused the batch: ${reason}`);
}

function parse<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw malformed("an answer that does not fit its batch interface", parsed.error);
}
