import type { CataloguedModel } from "../../gateway/catalogue.ts";
import type { Answerer } from "../../gateway/chat/answer.ts";
import type { ForwardedChat } from "../../gateway/chat/forward.ts";
import type { PlannedChat } from "../../gateway/chat/plan.ts";
import { type EmbedOutcome, type EmbedRequest, toEmbeddingList, toEmbedRequest } from "../../gateway/embed.ts";
import type { GatewayCaller } from "../../gateway/money/account.ts";
import type { ExternalJob } from "../../jobs/external-jobs.ts";
import type { Jobs } from "../../jobs/jobs.ts";
import type { WorkContext } from "../../jobs/work.ts";
import { AppError, invalidRequest } from "../../lib/errors.ts";
import { sizeInWords } from "../../lib/size-in-words.ts";
import type { FileBatchRecord } from "../../store/file-store.ts";
import { fromOpenAi } from "../../surfaces/chat-completions/openai.ts";
import { toForwarded } from "../../surfaces/messages/forwarded.ts";
import { refuseServerState } from "../../surfaces/messages/server-state.ts";
import { toChat } from "../../surfaces/messages/to-chat.ts";
import { unreadFields } from "../../surfaces/messages/unread-fields.ts";
import type { Batches } from "../provider/batches.ts";
import { requireUnblocked } from "./guard-upload.ts";
import { messagesEndpoint, readBody } from "./read-lines.ts";
import { fromResponseLine } from "./response-lines.ts";

/** What answers the requests of batches. */
export type ItemDeps = {
  jobs: Pick<Jobs, "held">;
  batches: Pick<Batches, "accept">;
  embed(caller: GatewayCaller, request: EmbedRequest): Promise<EmbedOutcome>;
  /** The model of a name, if requests of the Messages API go to its provider as they come. */
  findForwarding(tenantId: string, name: string): Promise<CataloguedModel | undefined>;
  plan: Answerer["plan"];
};

type Item = { held: ExternalJob; body: unknown } & Pick<WorkContext, "signal" | "share">;

/** The store takes no record above 16 MB, and a request stands in one. */
const MAX_REQUEST_BYTES = 12 << 20;

/**
 * Begins the work on a request of a batch, under its job: a chat waits from then on, an embedding is made at once.
 * @throws AppError as the gateway does, `compliance_blocked`, `invalid_request`, `request_too_large`.
 */
export async function beginItem(
  deps: ItemDeps,
  batch: FileBatchRecord,
  { held, body, signal, share }: Item,
): Promise<void> {
  const { tenantId, keyId, endpoint } = batch;
  const { jobId } = held;
  requireUnblocked(body);
  const surface = endpoint === messagesEndpoint ? "anthropic-batch" : "openai-batch";
  const caller: GatewayCaller = { tenantId, keyId, surface, signal, origin: { jobId } };
  if (Buffer.byteLength(JSON.stringify(body) ?? "") > MAX_REQUEST_BYTES)
    throw new AppError("request_too_large", `A request of a batch has ${sizeInWords(MAX_REQUEST_BYTES)} at most.`);
  if (endpoint === "/v1/embeddings") {
    const wanted = readBody("/v1/embeddings", body);
    await deps.jobs.held.hold({ ...held, title: wanted.model ?? "" });
    const outcome = await deps.embed(caller, await toEmbedRequest(wanted));
    await share(() => deps.jobs.held.end(jobId, { result: toEmbeddingList(outcome, wanted.encoding_format) }));
    return;
  }
  const { chat, ...answeredAs } = await readItem(deps, { batch, caller, body });
  const asked = { jobId, startedBy: held.startedBy, isRetried: true, ...answeredAs };
  const accepted = await deps.batches.accept(caller, chat, asked);
  if ("ineligible" in accepted)
    throw new AppError("invalid_request", `model: it has no batches (${accepted.ineligible})`);
}

type ReadItem = { batch: FileBatchRecord; caller: GatewayCaller; body: unknown };

/** The chat of a request, planned, and as what it is to be answered. */
async function readItem(deps: ItemDeps, item: ReadItem) {
  const { batch, caller, body } = item;
  if (batch.endpoint === messagesEndpoint) return toMessagesChat(deps, item);
  if (batch.endpoint !== "/v1/responses")
    return { chat: await deps.plan(caller, fromOpenAi(readBody("/v1/chat/completions", body))) };
  const { chat: asked, response } = fromResponseLine(readBody("/v1/responses", body));
  const chat = await deps.plan(caller, asked);
  return { chat, response: { ...response, ignored: [...response.ignored, ...chat.ignored] } };
}

type MessagesChat = { chat: PlannedChat | ForwardedChat; message: { ignored: string[] } };

/** A request of the Messages API: as it came for a model whose provider has this API, translated for any other. */
async function toMessagesChat(
  { findForwarding, plan }: ItemDeps,
  { batch: { tenantId, sentWith }, caller, body: params }: ReadItem,
): Promise<MessagesChat> {
  const name = Object(params).model;
  const model = typeof name === "string" ? await findForwarding(tenantId, name) : undefined;
  if (model !== undefined && sentWith !== undefined) {
    const raw = { ...sentWith, body: JSON.stringify(params) };
    return { chat: toForwarded(model, { ...Object(params), model: name }, raw), message: { ignored: [] } };
  }
  refuseServerState(Object(params));
  const body = readBody(messagesEndpoint, params);
  if (body.stream === true) throw invalidRequest("stream", "stream: A batch does not stream.");
  const { request, ignored } = toChat(body);
  const chat = await plan(caller, request);
  return { chat, message: { ignored: [...unreadFields(Object(params)), ...ignored, ...chat.ignored] } };
}
