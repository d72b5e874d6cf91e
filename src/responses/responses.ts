import { invalidRequest, notFound } from "../errors.ts";
import type { ChatOptions } from "../gateway/chat/request.ts";
import type { ResponsesBody } from "../gateway/responses/request-schemas.ts";
import { beginResponse, type MadeResponse } from "../gateway/responses/response.ts";
import type { ResponseObject } from "../gateway/responses/response-schemas.ts";
import type { Jobs } from "../jobs/jobs.ts";
import { cancelWork, submitWork, unlessOver } from "../jobs/work.ts";
import type { BackgroundResponse, StoredResponse } from "../store/response-store.ts";
import { starterOf } from "../tenancy/roles.ts";
import { type BackgroundDeps, type BackgroundRequest, makeBackgroundWork } from "./background.ts";
import { closeResponse } from "./close-response.ts";
import { type Conversations, makeConversations } from "./conversations.ts";
import { type Draft, type DraftDeps, makeDrafts } from "./drafts.ts";
import { followEvents } from "./follow-events.ts";
import { type InputFiles, withFiles } from "./input-files.ts";
import { toInputItemId } from "./item-ids.ts";
import { type Conversation, parseItems, recall, toInputItem, toItems, toolItems } from "./recall.ts";
import { readResponse } from "./records.ts";
import { type Included, toIncluded, toShownItem } from "./views.ts";

type ResponsesDeps = Omit<BackgroundDeps, "notify" | "join"> &
  Omit<DraftDeps, "config"> & { jobs: Jobs; config: { keptDays: number; maxConversationBytes: number } };

/** A response that is to be made in the background. */
type BackgroundCall = {
  caller: BackgroundResponse["caller"] & { tenantId: string };
  body: ResponsesBody;
  options: ChatOptions;
  conversation: Conversation;
  jobId: string;
};

/** Responses of the Responses API that can be read again, continued, and made in the background. */
export function makeResponses({ quotas, config, logger, jobs, ...given }: ResponsesDeps) {
  const conversations = makeConversations({ store: given.store.conversations, quotas, config });
  const deps: BackgroundDeps = { ...given, notify: jobs.notifications.changed, join: joinOf(conversations) };
  const { responses, responseEvents } = deps.store;
  const work = makeBackgroundWork(deps);
  const drafts = makeDrafts({ store: deps.store, quotas, config, logger });
  const find = async (tenantId: string, id: string): Promise<StoredResponse | BackgroundResponse> => {
    const record = await responses.get(tenantId, id);
    if (record === null) throw notFound("response");
    return record;
  };
  /** Ends a response that is open, and its job. */
  const stop = async (record: BackgroundResponse) => {
    await closeResponse(deps, record, "cancelled");
    const { tenantId, jobId } = record;
    await unlessOver(cancelWork(jobs, [work], { tenantId, jobId }));
  };
  return {
    work,
    conversations,
    /** See `recall`. */
    recall: (asked: Parameters<typeof recall>[1]) =>
      recall({ store: deps.store, maxBytes: config.maxConversationBytes }, asked),
    /** See `withFiles`. */
    withFiles: <B extends Pick<ResponsesBody, "input">>(files: InputFiles, body: B) =>
      withFiles(files, { body, maxBytes: config.maxConversationBytes }),
    /**
     * Prepares to store the response to a conversation, before a model is called; the result does it, and adds it to the
     * conversation that it joins. See `makeDrafts`.
     * @throws AppError `request_too_large`; `quota_exceeded` when the tenant stores too much.
     */
    async prepare(tenantId: string, conversation: Conversation) {
      const draft = await drafts.begin(tenantId, conversation);
      return (made: MadeResponse) => keepMade({ drafts, conversations, logger }, draft, made);
    },
    /**
     * Records a response that is to be made in the background, and submits its job.
     * @throws AppError `request_too_large`, `quota_exceeded`, `unavailable`.
     */
    async accept({ caller: { tenantId, ...caller }, body, options, conversation, jobId }: BackgroundCall) {
      const draft = await drafts.begin(tenantId, conversation);
      const response: ResponseObject = { ...beginResponse(body), status: "queued" };
      const asked: BackgroundRequest = { body: { ...body, input: toolItems(conversation.input) }, options };
      const request = JSON.stringify(asked);
      const stored = drafts.toRecord(draft, { response, kept: [] }, Buffer.byteLength(request));
      const isStreamed = body.stream === true;
      const about = { jobId, caller, isStreamed, isOpen: true as const, updatedAt: stored.createdAt };
      const record: BackgroundResponse = { ...stored, ...about, request };
      await responses.insert(record);
      const shown = { title: body.model, ...starterOf(caller) }; // nothing of what is said in it
      return { job: await submitWork(jobs, work, { record, isInteractive: isStreamed, ...shown }) };
    },
    /** A stored response; with its reasoning where it is to go back, and with what its searches found. @throws AppError `not_found`. */
    async get(tenantId: string, id: string, included: Included = nothing): Promise<ResponseObject> {
      return toShown(await find(tenantId, id), included);
    },
    /**
     * The recorded events of a response that was made in the background, those after number `after`, until its end.
     * @throws AppError `not_found`; `invalid_request` for a response whose events are not recorded.
     */
    async events(tenantId: string, id: string, { after, signal }: { after: number; signal: AbortSignal }) {
      const record = await find(tenantId, id);
      requireStreamed(record);
      return followEvents({ store: deps.store, watch: jobs.watch }, record, { after, signal });
    },
    /** Cancels a response in the background; one that has ended stays as it is. @throws AppError `not_found`, `invalid_request`. */
    async cancel(tenantId: string, id: string): Promise<ResponseObject> {
      const record = await find(tenantId, id);
      if (!("jobId" in record))
        throw invalidRequest("id", "id: only a response made with background can be cancelled.");
      if (record.isOpen) await stop(record as BackgroundResponse);
      return toShown(await find(tenantId, id), nothing);
    },
    /** The items of the input of a response, in their order. @throws AppError `not_found`. */
    async inputItems(tenantId: string, id: string, isSealedShown: boolean) {
      const { input } = await find(tenantId, id);
      return parseItems(input).map((item, place) =>
        toShownItem({ id: toInputItemId(id, item, place), item, isSealedShown }),
      );
    },
    /** Deletes a response with all that it has; one that is open is cancelled. @throws AppError `not_found`. */
    async remove(tenantId: string, id: string): Promise<void> {
      const record = await find(tenantId, id);
      if (record.isOpen) await stop(record as BackgroundResponse);
      if ("jobId" in record) await responseEvents.erase(tenantId, id);
      if (!(await responses.remove(tenantId, id))) throw notFound("response");
    },
  };
}

function requireStreamed(record: StoredResponse | BackgroundResponse): asserts record is BackgroundResponse {
  if ("isStreamed" in record && record.isStreamed) return;
  throw invalidRequest("stream", "stream: only a response made with background and stream can be streamed again.");
}

const joinOf =
  (conversations: Conversations): BackgroundDeps["join"] =>
  async ({ tenantId, conversationId, chain, input }, made) => {
    if (conversationId === undefined || chain.length > 0) return;
    await conversations.join(tenantId, { conversationId, input: parseItems(input).map(toInputItem), made });
  };

/** Stores a response, and adds it to the conversation that it joins. Its answer is there and paid, so its caller gets it. */
async function keepMade(
  {
    drafts,
    conversations,
    logger,
  }: Pick<DraftDeps, "logger"> & {
    drafts: ReturnType<typeof makeDrafts>;
    conversations: Conversations;
  },
  draft: Draft,
  made: MadeResponse,
) {
  const { tenantId, conversation } = draft;
  const { conversationId, chain, input } = conversation;
  if (conversationId === undefined || chain.length > 0) return drafts.keep(draft, made);
  try {
    await conversations.join(tenantId, { conversationId, input: toItems(input), made });
  } catch (error) {
    logger.warn({ err: error, tenantId, conversationId }, "a response could not join its conversation");
    return drafts.keep(draft, { ...made, response: { ...made.response, conversation: null } });
  }
  return drafts.keep(draft, made);
}

const nothing: Included = { isSealedShown: false, areResultsShown: false };

/** A response as its caller gets it. */
function toShown(record: StoredResponse | BackgroundResponse, included: Included): ResponseObject {
  const response = readResponse(record);
  const { status } = response;
  return {
    ...response,
    status: status === "queued" && "startedAt" in record ? "in_progress" : status,
    output: response.output.map((item) => toIncluded(item, included)),
  };
}
