import type { ChatOptions } from "../../../gateway/chat/request.ts";
import type { Jobs } from "../../../jobs/jobs.ts";
import { cancelWork, submitWork, unlessOver } from "../../../jobs/work.ts";
import { invalidRequest, notFound } from "../../../lib/errors.ts";
import type { Resumed } from "../../../run-models/deps.ts";
import { type BackgroundResponse, isBackground, type StoredResponse } from "../../../store/response-store.ts";
import { starterOf, type Viewer } from "../../../tenancy/roles.ts";
import type { ResponsesBody } from "../request-schemas.ts";
import { beginResponse, type MadeResponse } from "../response.ts";
import type { ResponseObject } from "../response-schemas.ts";
import { type BackgroundDeps, type BackgroundRequest, closeResponse, makeBackgroundWork } from "./background.ts";
import { type Conversations, makeConversations } from "./conversations.ts";
import { type Draft, type DraftDeps, makeDrafts } from "./drafts.ts";
import { type InputFiles, withFiles } from "./input-files.ts";
import { makeOwnOnly } from "./own-only.ts";
import {
  type FollowOptions,
  followEvents,
  found,
  LARGE_BYTES,
  makeReads,
  nothingMore,
  type Reading,
  toShown,
} from "./read-response.ts";
import { type Conversation, recall, referredBy, toInputItem, toItems, toolItems } from "./recall.ts";
import { readItems } from "./records.ts";

type ResponsesDeps = Omit<BackgroundDeps, "notify" | "join"> &
  Omit<DraftDeps, "config"> & { jobs: Jobs; config: { keptDays: number; maxConversationBytes: number } };

/** A response that is to be made in the background. */
type BackgroundCall = {
  caller: BackgroundResponse["caller"] & { tenantId: string };
  body: ResponsesBody;
  options: ChatOptions;
  conversation: Conversation;
  jobId: string;
  /** The run that goes on in it. */
  resumes?: Resumed | undefined;
};

/** Responses of the Responses API that can be read again, continued, and made in the background. */
export function makeResponses({ quotas, config, logger, jobs, ...given }: ResponsesDeps) {
  const conversations = makeConversations({ store: given.store.conversations, quotas, config });
  const deps: BackgroundDeps = { ...given, notify: jobs.notifications.changed, join: joinOf(conversations) };
  const { responses, responseEvents } = deps.store;
  const requireOwn = makeOwnOnly(deps.store);
  const work = makeBackgroundWork(deps);
  const drafts = makeDrafts({ store: deps.store, quotas, config, logger });
  const find = async (tenantId: string, id: string): Promise<StoredResponse | BackgroundResponse> => {
    return found(await responses.get(tenantId, id));
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
    ...makeReads(responses),
    /** See `makeOwnOnly`. */
    requireOwn,
    /** See `recall`. @throws AppError also `not_found` for what the caller must not see. */
    recall: recallOf({ store: deps.store, maxBytes: config.maxConversationBytes }, requireOwn),
    /** See `withFiles`. */
    withFiles: <B extends Pick<ResponsesBody, "input">>(files: InputFiles, body: B) =>
      withFiles(files, { body, maxBytes: config.maxConversationBytes }),
    /**
     * Prepares to store the response to a conversation, before a model is called; the result does it, and adds it to the
     * conversation that it joins. See `makeDrafts`.
     * @throws AppError `request_too_large`; `quota_exceeded` when the tenant stores too much.
     */
    async prepare(caller: Viewer, conversation: Conversation) {
      const draft = await drafts.begin(caller, conversation);
      return (made: MadeResponse) => keepMade({ drafts, conversations, logger }, draft, made);
    },
    /**
     * Records a response that is to be made in the background, and submits its job.
     * @throws AppError `request_too_large`, `quota_exceeded`, `unavailable`.
     */
    async accept({ caller: { tenantId, ...caller }, body, options, conversation, jobId, resumes }: BackgroundCall) {
      const draft = await drafts.begin({ tenantId, keyId: caller.keyId }, conversation);
      const response: ResponseObject = { ...beginResponse(body), status: "queued" };
      const asked: BackgroundRequest = { body: { ...body, input: toolItems(conversation.input) }, options, resumes };
      const request = JSON.stringify(asked);
      const stored = drafts.toRecord(draft, { response, kept: [] }, Buffer.byteLength(request));
      const isStreamed = body.stream === true;
      const about = { jobId, caller, isStreamed, isOpen: true as const, updatedAt: stored.createdAt };
      const record: BackgroundResponse = { ...stored, ...about, request };
      await responses.insert(record);
      const shown = { title: body.model, ...starterOf(caller) }; // nothing of what is said in it
      return { job: await submitWork(jobs, work, { record, isInteractive: isStreamed, ...shown }) };
    },
    /**
     * The recorded events of a response that was made in the background, those after number `after`, until its end.
     * @throws AppError `not_found`; `invalid_request` for a response whose events are not recorded.
     */
    async events(
      tenantId: string,
      id: string,
      { reserve, ...options }: FollowOptions & Partial<Pick<Reading, "reserve">>,
    ) {
      const { jobId, ...record } = found(await responses.withoutTexts(tenantId, id));
      if (!record.isStreamed || jobId === undefined)
        throw invalidRequest(
          "stream",
          "stream: only a response made with background and stream can be streamed again.",
        );
      const { response, output } = record.bytes;
      const lastBytes = response + 2 * output; // its last event has all of it, and stands beside what is kept
      if (lastBytes > LARGE_BYTES) reserve?.(4 * lastBytes); // as it is stored, parsed, formatted and sent
      return followEvents({ store: deps.store, watch: jobs.watch }, { ...record, jobId }, options);
    },
    /** Cancels a response in the background; one that has ended stays as it is. @throws AppError `not_found`, `invalid_request`. */
    async cancel(tenantId: string, id: string): Promise<ResponseObject> {
      const record = await find(tenantId, id);
      if (!isBackground(record))
        throw invalidRequest("id", "id: only a response made with background can be cancelled.");
      if (record.isOpen) await stop(record);
      return toShown(await find(tenantId, id), nothingMore);
    },
    /** Deletes a response with all that it has; one that is open is cancelled. @throws AppError `not_found`. */
    async remove(tenantId: string, id: string): Promise<void> {
      const record = await find(tenantId, id);
      if (isBackground(record) && record.isOpen) await stop(record);
      if (isBackground(record)) await responseEvents.erase(tenantId, id);
      if (!(await responses.remove(tenantId, id))) throw notFound("response");
    },
  };
}

const recallOf =
  (deps: Parameters<typeof recall>[0], requireOwn: ReturnType<typeof makeOwnOnly>) =>
  async ({ caller, ...asked }: Omit<Parameters<typeof recall>[1], "tenantId"> & { caller: Viewer }) => {
    await requireOwn(caller, referredBy(asked.body));
    return recall(deps, { ...asked, tenantId: caller.tenantId });
  };

const joinOf =
  (conversations: Conversations): BackgroundDeps["join"] =>
  async ({ tenantId, conversationId, chain, input }, made) => {
    if (conversationId === undefined || chain.length > 0) return;
    await conversations.join(tenantId, { conversationId, input: readItems(input).map(toInputItem), made });
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
