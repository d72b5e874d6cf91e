import { z } from "zod";
import { guardLines } from "../../../src/batches/file/guard-upload.ts";
import { MAX_MESSAGE_REQUESTS, messagesEndpoint } from "../../../src/batches/file/read-lines.ts";
import type { MessageResult } from "../../../src/batches/file/write-answers.ts";
import { invalidRequest } from "../../../src/lib/errors.ts";
import { idSchema } from "../../../src/lib/ids.ts";
import { type FileBatchRecord, openFileBatchStates } from "../../../src/store/file-store.ts";
import { toForwardedHeaders } from "../../../src/surfaces/messages/forwarded.ts";
import { messagesBodySchema } from "../../../src/surfaces/messages/schemas.ts";
import { ownKeyOf } from "../../../src/tenancy/roles.ts";
import { declareRoutes } from "../../route.ts";
import { named } from "../../schema-names.ts";
import { anthropicDialect, toAnthropicError } from "./errors.ts";
import { betaQuery, toForwardedPath } from "./messages.ts";

const DAY_MS = 86_400_000;
const BATCHES = "/v1/messages/batches";

const count = z.number().int().min(0);
const time = z.iso.datetime();
/** As Anthropic has it: https://platform.claude.com/docs/en/api/messages/batches/retrieve. */
const batchSchema = named(
  "MessageBatch",
  z.object({
    id: z.string(),
    type: z.literal("message_batch"),
    processing_status: z.enum(["in_progress", "canceling", "ended"]),
    request_counts: z
      .object({ processing: count, succeeded: count, errored: count, canceled: count, expired: count })
      .describe("All are `processing` until the whole batch has ended"),
    created_at: time,
    expires_at: time,
    ended_at: time.nullable(),
    cancel_initiated_at: time.nullable(),
    archived_at: time.nullable(),
    results_url: z.string().nullable().describe("The path of the results; null until the batch has ended"),
  }),
);

const customId = z
  .string()
  .regex(/^[a-zA-Z0-9_-]{1,64}$/, "must be 1 to 64 letters, digits, hyphens and underscores")
  .describe("Names the request in the results; each once");
const requestsOf = <S extends z.ZodType>(paramsSchema: S) =>
  z.object({
    requests: z
      .array(z.object({ custom_id: customId, params: paramsSchema }))
      .min(1)
      .max(MAX_MESSAGE_REQUESTS)
      .superRefine(requireOwnIds),
  });

function requireOwnIds(requests: readonly { custom_id: string }[], context: z.core.$RefinementCtx): void {
  const seen = new Set<string>();
  for (const [place, { custom_id: id }] of requests.entries()) {
    if (seen.has(id))
      context.addIssue({ code: "custom", path: [place, "custom_id"], message: "must be used only once" });
    seen.add(id);
  }
}

const params = z.object({ id: idSchema("messageBatch") });
const pageQuery = betaQuery.strict().extend({
  after_id: z.string().max(100).optional().describe("The page after this batch, of older ones"),
  before_id: z.string().max(100).optional().describe("The page before this batch, of newer ones"),
  limit: z.coerce.number().int().min(1).max(1_000).default(20),
});

const routes = declareRoutes({ auth: "member", tags: ["Anthropic-compatible"] });
const common = { dialect: anthropicDialect, query: betaQuery };
const batchResponse = { 200: { description: "The batch", body: batchSchema } };

export const anthropicBatchRoutes = [
  routes.post(BATCHES, {
    ...common,
    summary: "Answer many messages within a day, at half the price",
    description:
      "Each request becomes a job of its own, as with `prefer_async`. Those for Claude models at Anthropic go to it as its own " +
      "batches, with their `params` as they came; all others are translated as by `/v1/messages`.",
    body: requestsOf(z.looseObject({})),
    documentedBody: requestsOf(messagesBodySchema),
    bodyLimit: "content",
    responses: batchResponse,
    errors: ["quota_exceeded"],
    async result({ body, bytes: sent, query, header, caller, platform }) {
      const { quotas, batches } = platform;
      const guard = await platform.guards.forCall(caller);
      const kept = guard?.has("input", "mask", "block")
        ? { requests: await guardLines(guard, body.requests) }
        : undefined;
      const bytes = kept === undefined && sent ? sent : Buffer.from(JSON.stringify(kept ?? body));
      await quotas.check(caller.tenantId, "openJobs");
      await quotas.check(caller.tenantId, "openBatches");
      await quotas.check(caller.tenantId, "storedBytes", bytes.length);
      const sentWith = { path: toForwardedPath(BATCHES, query), headers: toForwardedHeaders(header) };
      return toView(await batches.files.createMessages(caller, { bytes, total: body.requests.length, sentWith }));
    },
  }),
  routes.get(BATCHES, {
    ...common,
    summary: "Batches of messages, newest first",
    query: pageQuery,
    responses: {
      200: {
        description: "A page of batches",
        body: z.object({
          data: z.array(batchSchema),
          has_more: z.boolean(),
          first_id: z.string().nullable(),
          last_id: z.string().nullable(),
        }),
      },
    },
    async result({ query: { after_id: cursor, before_id: newerThan, limit }, caller, platform }) {
      if (cursor !== undefined && newerThan !== undefined)
        throw invalidRequest("before_id", "before_id and after_id exclude each other.");
      const page = { limit, cursor, newerThan };
      const found = await platform.store.files.listBatches(caller.tenantId, [messagesEndpoint], {
        ...page,
        keyId: ownKeyOf(caller),
      });
      const data = found.data.map(toView);
      const ends = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
      return { data, has_more: found.nextCursor !== null, ...ends };
    },
  }),
  routes.get(`${BATCHES}/:id`, {
    ...common,
    summary: "One batch of messages",
    params,
    responses: batchResponse,
    result: async ({ params: { id }, caller, platform }) => toView(await platform.batches.files.batch(caller, id)),
  }),
  routes.get(`${BATCHES}/:id/results`, {
    ...common,
    summary: "The results of a batch that has ended",
    description:
      "JSON lines, each `{ custom_id, result }`. `result.type` is `succeeded`, `errored`, `canceled` or `expired`. The answer " +
      "to a translated request has `logId` and `costUsd` too, and names in `_ignored` what of the request was not used.",
    params,
    responses: { 200: { description: "JSON lines", contentType: "application/x-jsonl", body: z.string() } },
    errors: ["wrong_state"],
    async handler({ params: { id }, caller, platform, inTurn }) {
      const { pieces } = await inTurn(() => platform.batches.files.results(caller, id));
      const headers = { "content-type": "application/x-jsonl" };
      return { status: 200, headers, bytes: toAnthropicResults(pieces) };
    },
  }),
  routes.post(`${BATCHES}/:id/cancel`, {
    ...common,
    summary: "Stop a batch of messages",
    description: "What has been answered until then is in its results.",
    params,
    responses: batchResponse,
    errors: ["wrong_state"],
    result: async ({ params: { id }, caller, platform }) => toView(await platform.batches.files.cancel(caller, id)),
  }),
  routes.delete(`${BATCHES}/:id`, {
    ...common,
    summary: "Delete a batch that has ended, with its requests and results",
    params,
    responses: {
      200: {
        description: "It is deleted",
        body: z.object({ id: z.string(), type: z.literal("message_batch_deleted") }),
      },
    },
    errors: ["wrong_state"],
    async result({ params: { id }, caller, platform }) {
      await platform.batches.files.remove(caller, id);
      return { id, type: "message_batch_deleted" };
    },
  }),
];

function toView(batch: FileBatchRecord): z.output<typeof batchSchema> {
  const { _id: id, status, reachedAt, createdAt, archivedAt, total, completed, failed, expired = 0 } = batch;
  const hasEnded = !openFileBatchStates.includes(status);
  const ended = reachedAt.completed ?? reachedAt.cancelled ?? reachedAt.failed;
  return {
    id,
    type: "message_batch",
    processing_status: hasEnded ? "ended" : status === "cancelling" ? "canceling" : "in_progress",
    request_counts: {
      processing: hasEnded ? 0 : total,
      succeeded: hasEnded ? completed : 0,
      errored: hasEnded ? failed - expired : 0,
      canceled: hasEnded ? total - completed - failed : 0,
      expired: hasEnded ? expired : 0,
    },
    created_at: createdAt.toISOString(),
    expires_at: new Date(createdAt.getTime() + DAY_MS).toISOString(),
    ended_at: ended?.toISOString() ?? null,
    cancel_initiated_at: reachedAt.cancelling?.toISOString() ?? null,
    archived_at: archivedAt?.toISOString() ?? null,
    results_url: hasEnded ? `${BATCHES}/${id}/results` : null,
  };
}

/** Bytes of a line by which it is known what it is: an id of 64 at most, and the type of the result. */
const HEAD_BYTES = 160;
const NEW_LINE = 10;

/** The results as Anthropic's clients read them. Most lines are messages, which go on as they come, however long they are. */
export async function* toAnthropicResults(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let held: Buffer = Buffer.alloc(0); // the start of a line that is not known yet, or an error's
  let isPassing = false; // in a line that goes on as it is
  for await (const piece of pieces) {
    const ready: Buffer[] = [];
    held = Buffer.concat([held, piece]);
    while (held.length > 0) {
      const end = held.indexOf(NEW_LINE) + 1;
      const line = end === 0 ? held : held.subarray(0, end);
      if (!isPassing && end === 0 && (held.length < HEAD_BYTES || isError(held))) break;
      ready.push(!isPassing && isError(line) ? toErrorLine(line) : line);
      isPassing = end === 0;
      held = held.subarray(line.length);
    }
    yield Buffer.concat(ready);
  }
  yield held;
}

/** By its head, which an id and the text of a message cannot look like. */
const isError = (line: Buffer) => line.subarray(0, HEAD_BYTES).includes('"result":{"type":"errored"');

function toErrorLine(line: Buffer): Buffer {
  const { result, ...head }: { result: Extract<MessageResult, { type: "errored" }> } = JSON.parse(
    line.toString("utf8"),
  ); // as it was written
  const { body: error } = toAnthropicError({ ...result.error, requestId: result.jobId });
  return Buffer.from(`${JSON.stringify({ ...head, result: { type: result.type, error } })}\n`);
}
