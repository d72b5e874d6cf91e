import { z } from "zod";
import { errorOf } from "../../../definitions/runs.ts";
import { chatOptionsSchema } from "../../../gateway/chat/request.ts";
import { responsesQueue } from "../../../jobs/queues.ts";
import type { ReservedJob } from "../../../jobs/submit.ts";
import { defineWork, recordsOf, type Work, type WorkContext } from "../../../jobs/work.ts";
import { AppError, type ErrorView, fromErrorView, isCancel, notFound, toErrorView } from "../../../lib/errors.ts";
import { derivedId, idSchema } from "../../../lib/ids.ts";
import type { ChatCaller } from "../../../run-models/deps.ts";
import { type BackgroundResponse, isBackground, type OpenResponse } from "../../../store/response-store.ts";
import { isStoreFailure } from "../../../store/store-errors.ts";
import { fromStoredCaller } from "../../../tenancy/roles.ts";
import { withOwnName } from "../field-names.ts";
import type { Round } from "../file-search/rounds.ts";
import type { SearchingChat } from "../file-search/searching-chat.ts";
import { readRounds } from "../file-search/stored-rounds.ts";
import { fromResponsesBody } from "../request.ts";
import { inputItemSchema, type ResponsesBody, responsesBodySchema } from "../request-schemas.ts";
import { failResponse, type MadeResponse, toResponse } from "../response.ts";
import type { ResponseObject } from "../response-schemas.ts";
import { toOutputEvents } from "../stream.ts";
import { endLog, type LogDeps, type LoggedEnd, openLog } from "./event-log.ts";
import { type RecallStore, readBefore, toInputItem } from "./recall.ts";
import { readItems, readResponse, toTexts } from "./records.ts";

export type BackgroundDeps = Omit<CloseDeps, "store"> & {
  store: LogDeps["store"] & RecallStore;
  chat: Pick<SearchingChat, "plan" | "answer" | "stream">;
};

/** What the record of a response in the background keeps to ask for it, besides its items: of the input of its body the tools alone. */
const requestRecord = z.object({
  body: responsesBodySchema.extend({ input: z.array(inputItemSchema) }),
  options: chatOptionsSchema,
  resumes: z.object({ jobId: idSchema("job"), seen: z.number() }).optional(),
});
export type BackgroundRequest = z.output<typeof requestRecord>;

/** Responses in the background as durable work. */
export function makeBackgroundWork(deps: BackgroundDeps): Work {
  const { responses } = deps.store;
  const records = recordsOf<OpenResponse>({ ...responses, get: findOpen(deps) });
  return defineWork<OpenResponse>({
    queue: responsesQueue,
    idField: "responseId",
    run: (context) => run(deps, context),
    ...records,
    async report(job) {
      const id = job.subject.responseId ?? "";
      const record = await responses.get(job.tenantId, id);
      const status = record && record.isOpen !== true ? readResponse(record).status : job.status;
      const createdAt = job.finishedAt ?? job.updatedAt;
      return {
        id: `evt_${job._id.slice(job._id.indexOf("_") + 1)}`,
        object: "event",
        created_at: Math.floor(createdAt.getTime() / 1_000),
        type: `response.${status}`,
        data: { id },
      };
    },
    async closeOrphan(open, job) {
      if (!job) return void (await records.reject(open));
      const record = await findOpen(deps)(open.tenantId, open._id);
      if (record) await closeResponse(deps, record, job.status === "cancelled" ? "cancelled" : errorOf(job));
    },
  });
}

const findOpen =
  ({ store }: LogDeps) =>
  async (tenantId: string, id: string): Promise<BackgroundResponse | null> => {
    const record = await store.responses.get(tenantId, id);
    return record?.isOpen === true && isBackground(record) ? record : null;
  };

/**
 * Makes a response, or continues where an earlier attempt left its events. The model is asked again.
 * @throws AppError as the response failed; `cancelled`; the signal's reason.
 */
async function run(deps: BackgroundDeps, context: WorkContext) {
  const { tenantId, recordId, signal } = context;
  const record = await deps.store.responses.begin(tenantId, recordId);
  if (record === null) return endedResult(deps, tenantId, recordId);
  const confirm = () => context.progress({ stage: "response", done: 1, total: 1 });
  try {
    const asked = await readRequest(deps, record, context);
    const status = await (record.isStreamed ? stream : complete)(deps, record, { ...asked, confirm });
    return status === undefined ? endedResult(deps, tenantId, recordId) : { responseId: recordId, status };
  } catch (error) {
    const isCancelled = isCancel(signal.reason) || isCancel(error);
    const isRetryable = !(error instanceof AppError) || error.retryable;
    const mayResume = isStoreFailure(error) || (isRetryable && !context.isLastAttempt);
    const hasFailed = !isCancelled && !signal.aborted && !mayResume;
    if (hasFailed) await confirm();
    if (isCancelled || hasFailed) await closeResponse(deps, record, isCancelled ? "cancelled" : toErrorView(error));
    throw error;
  }
}

/** What a job returns, or throws, whose response has ended, by an attempt before or from outside. */
async function endedResult({ store }: BackgroundDeps, tenantId: string, responseId: string) {
  const record = await store.responses.get(tenantId, responseId);
  if (record === null || !isBackground(record))
    throw new AppError("cancelled", "The response was deleted.", { cause: notFound("response") });
  const { status } = readResponse(record);
  if (status === "cancelled") throw new AppError("cancelled", "The response was cancelled.");
  if (record.error) throw fromErrorView(record.error, "The response failed.");
  return { responseId, status };
}

type Asked = Awaited<ReturnType<typeof readRequest>> & {
  /** Throws when another worker has the job, which alone may end its response then. */
  confirm(): Promise<void>;
};

/** Most bytes of the turns that are kept; beyond them an attempt after a crash begins again. */
const MAX_ROUNDS_BYTES = 3 << 20;

function keepRounds({ responses }: BackgroundDeps["store"], { tenantId, _id }: BackgroundResponse) {
  return async (rounds: readonly Round[]): Promise<void> => {
    const text = JSON.stringify(rounds);
    if (Buffer.byteLength(text) <= MAX_ROUNDS_BYTES) await responses.keepRounds(tenantId, _id, text);
  };
}

async function readRequest({ store }: BackgroundDeps, record: BackgroundResponse, { jobId, signal }: WorkContext) {
  const { body: kept, options, resumes } = requestRecord.parse(JSON.parse(record.request ?? "{}"));
  const own = readItems(record.input).map(toInputItem);
  const body: ResponsesBody = { ...kept, input: [...kept.input, ...own] };
  const { chain, conversationId } = record;
  const before = await readBefore(store, record.tenantId, { chain, conversationId, own: record._id });
  const { request: asked, places, fileSearch } = fromResponsesBody(body, { before, input: own });
  const { _id: from, tenantId, createdAt: at } = record;
  // The run of an agent or a pattern is found again by the next attempt.
  const { surface, ...stored } = record.caller;
  const runJob: ReservedJob = { jobId: derivedId("job", { at, from }), mayBeThere: true, state: "unused" };
  const about = { surface, signal, origin: { jobId }, runJob, resumes, endsAtApproval: true as const };
  const caller: ChatCaller = { ...fromStoredCaller(tenantId, stored), ...about };
  const begun: ResponseObject = { ...readResponse(record), status: "in_progress" };
  const rounds = { past: readRounds(record.rounds), keep: keepRounds(store, record) };
  return { body, begun, searched: { request: { ...asked, options }, fileSearch, rounds }, places, caller };
}

/** Makes a response whose events no client follows; its status, undefined when it was ended from outside. */
async function complete(deps: BackgroundDeps, record: BackgroundResponse, asked: Asked) {
  const { body, begun, searched, places, caller, confirm } = asked;
  const answering = async () => deps.chat.answer(await deps.chat.plan(caller, searched));
  const outcome = await answering().catch((error: unknown) => {
    throw withOwnName(error, places);
  });
  const { response, kept } = toResponse(begun, body, outcome);
  await confirm();
  return (await finishResponse(deps, record, { response, kept, bytes: 0 })) ? response.status : undefined;
}

/** Of the error of a response that failed, its events hold the message alone. */
function loggedFailure({ status, error }: ResponseObject): { error?: ErrorView } {
  if (status !== "failed") return {};
  return { error: toErrorView(new AppError("provider_failed", error?.message ?? "The response failed.")) };
}

/** As `complete`, with its events recorded. */
async function stream(deps: BackgroundDeps, record: BackgroundResponse, { begun, searched, caller, ...asked }: Asked) {
  const log = await openLog(deps, record, begun);
  if (log.end) {
    log.writer.close();
    await finishResponse(deps, record, { ...log.end, ...loggedFailure(log.end.response) });
    return undefined; // the record says how it ended
  }
  const { writer, items: firstItem } = log;
  const signal = AbortSignal.any([caller.signal, writer.signal]);
  let made: MadeResponse | undefined;
  const keep = async (ended: MadeResponse) => {
    made = ended;
    return ended.response;
  };
  try {
    await writer.begin();
    const planned = await deps.chat.plan({ ...caller, signal }, searched).catch((error: unknown) => {
      throw withOwnName(error, asked.places);
    });
    const batches = deps.chat.stream(planned);
    for await (const events of toOutputEvents({ ...asked, begun, batches, keep, firstItem })) {
      const end = made && events.pop();
      await writer.add(events);
      if (!made || !end) continue;
      const { response, kept } = made;
      const bytes = await writer.end(end, kept);
      return (await finishResponse(deps, record, { response, kept, bytes })) ? response.status : undefined;
    }
    throw new AppError("provider_failed", "The stream ended before the response did.", { retryable: true });
  } catch (error) {
    throw writer.signal.aborted ? writer.signal.reason : error;
  } finally {
    writer.close();
  }
}

/** What responses in the background end with. `join` adds one to the conversation that it joins. */
type CloseDeps = LogDeps & {
  join(record: BackgroundResponse, made: Pick<LoggedEnd, "response" | "kept">): Promise<void>;
};

/** Records how a response in the background has ended; false when that stood fixed already, or it is deleted. */
async function finishResponse(
  { store, join }: CloseDeps,
  record: BackgroundResponse,
  { response, kept, bytes: events, error }: LoggedEnd & { error?: ErrorView },
): Promise<boolean> {
  // Before its end is recorded: what joined twice is there once, and what did not join would be missing from then on.
  if (response.status === "completed" || response.status === "incomplete") await join(record, { response, kept });
  const texts = toTexts(response, kept);
  const { total } = record;
  return store.responses.finish(record, {
    ...texts,
    bytes: { ...texts.bytes, input: record.bytes.input, events },
    total: { items: total.items + kept.length, bytes: total.bytes + texts.bytes.output },
    ...(error ? { error } : {}),
  });
}

/** Ends an open response from outside of its work, unless its events say that it has ended: then as they say. */
export async function closeResponse(
  deps: CloseDeps,
  record: BackgroundResponse,
  why: "cancelled" | ErrorView,
): Promise<void> {
  const begun = readResponse(record);
  const isCancelled = why === "cancelled";
  const closed: ResponseObject = isCancelled ? { ...begun, status: "cancelled" } : failResponse(begun, why);
  const end = record.isStreamed ? await endLog(deps, record, closed) : { response: closed, kept: [], bytes: 0 };
  const hasFailed = !isCancelled && end.response.status === "failed";
  if (await finishResponse(deps, record, { ...end, ...(hasFailed ? { error: why } : {}) }))
    deps.notify({ _id: record.jobId, tenantId: record.tenantId });
}
