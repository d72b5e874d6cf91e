import type { z } from "zod";
import { parseSvcOptions } from "../../../src/gateway/chat/request.ts";
import { invalidRequest } from "../../../src/lib/errors.ts";
import type { Resumed } from "../../../src/run-models/deps.ts";
import { toOwnName, withOwnName } from "../../../src/surfaces/responses/field-names.ts";
import type { SearchedChat } from "../../../src/surfaces/responses/file-search/searching-chat.ts";
import { fromResponsesBody } from "../../../src/surfaces/responses/request.ts";
import { type ResponsesBody, responsesBodySchema } from "../../../src/surfaces/responses/request-schemas.ts";
import { beginResponse, type MadeResponse, toResponse } from "../../../src/surfaces/responses/response.ts";
import { responseEventSchema, responseObjectSchema } from "../../../src/surfaces/responses/response-schemas.ts";
import type { Conversation } from "../../../src/surfaces/responses/stored/recall.ts";
import { makeResponseStream } from "../../../src/surfaces/responses/stream.ts";
import { toStoredCaller } from "../../../src/tenancy/roles.ts";
import { acceptOnce, withCallback } from "../../prefer.ts";
import { declareRoutes, type HandlerInput, type Reply } from "../../route.ts";
import { named } from "../../schema-names.ts";
import { modelCallErrors, runErrors, svcOptionsHeader, toGatewayCaller } from "../chat.ts";
import { decideByInput } from "./response-approvals.ts";
import { recallInput, withContents } from "./response-input.ts";
import { toMessage, toSse } from "./stored-responses.ts";

const SURFACE = "responses";
/** Most names of what is left out that one response lists; the input may have 2,000 such items. */
const MAX_IGNORED = 20;

const bodySchema = responsesBodySchema.extend({
  callback: withCallback.callback.describe("Of a response in the background; notified of its end by a signed webhook"),
});

const routes = declareRoutes({ auth: "member", tags: ["OpenAI-compatible"] });

export const openAiResponseRoutes = [
  routes.post("/v1/responses", {
    summary: "Response in the shape of OpenAI's Responses API, as JSON or as a stream of events",
    description:
      "For clients of OpenAI's API: set their base URL to `/v1`. Functions and custom tools are offered to the model; `file_search` searches vector stores for any model, which cites what it finds; other tools " +
      "that run at OpenAI, and their items, are left out and named in `x-svc-ignored`. Unless `store` is false, the response is kept for `RESPONSE_DAYS`: it can be read, " +
      "continued by `previous_response_id` and referred to by its items' ids. With " +
      '`include: ["reasoning.encrypted_content"]` a response has the reasoning of any provider as items that go back in ' +
      "`input` as they are. With `background: true` a job makes it: the response is there at once, `queued`, to be polled, " +
      "streamed or cancelled by its id; `callback` is notified of its end by `response.completed` and so on, signed. `logId`, `costUsd` and `cached` are added to the response.",
    body: named("ResponsesRequest", bodySchema),
    headers: {
      "x-svc-options": svcOptionsHeader,
      "x-svc-surface": "Tags the source of the request for analytics; default `responses`",
    },
    responses: { 200: { description: "The response", body: responseObjectSchema, events: responseEventSchema } },
    errors: [...modelCallErrors, ...runErrors, "not_found", "quota_exceeded", "source_refused"],
    example: { model: "meta-llm", input: "What does a lease protect a job from?" },
    screen({ body, platform: { chat } }) {
      if (!chat.isRegulated(body.model)) return;
      const { request, places } = fromResponsesBody(body, withoutReferences(body));
      try {
        chat.screen(request);
      } catch (error) {
        throw withOwnName(error, places);
      }
    },
    async handler(given) {
      const input = await withContents(given);
      const { body, platform } = input;
      const conversation = await recallInput(input);
      const asked = await planResponse(input, conversation);
      const { planned, places } = asked;
      // Nothing of a regulated profile's chats is kept but their answers, and those by their runs.
      const isRegulated = platform.chat.isRegulated(body.model);
      const isStored = body.store !== false && !isRegulated;
      if (isRegulated && body.store !== false) input.ignore("store");
      requireKept(body, isRegulated);
      if (planned === undefined) return makeInBackground(input, { ...asked, conversation, isRegulated });
      if (body.callback) throw invalidRequest("callback", "callback: only a response in the background has one.");
      const store = isStored ? await platform.responses.prepare(input.caller, conversation) : undefined;
      const begun = beginResponse(isRegulated ? { model: body.model, input: "", store: false } : body);
      if (body.stream !== true) {
        const outcome = await platform.responseChat.answer(planned).catch(withOwnNames(places));
        const made = toResponse(begun, body, outcome);
        const { response, json } = (await store?.(made)) ?? { response: made.response };
        if (response.store !== isStored) input.ignore("store");
        if (response.conversation?.id !== begun.conversation?.id) input.ignore("conversation");
        return { status: 200, body: response, ...(json === undefined ? {} : { text: json }) };
      }
      const batches = platform.responseChat.stream(planned);
      const keep = async (made: MadeResponse) => (await store?.(made))?.response ?? made.response;
      const stream = makeResponseStream({ begun, body, batches, places, keep });
      return {
        status: 200,
        events: toSse(stream.events()),
        toErrorEvent: (error) => toMessage(stream.toFailure(error)),
      };
    },
  }),
];

/** A conversation keeps what joins it. */
function requireKept({ conversation, store }: ResponsesBody, isRegulated: boolean): void {
  if ((conversation ?? undefined) === undefined) return;
  if (isRegulated)
    throw invalidRequest("conversation", "conversation: nothing of a regulated profile's chats is kept.");
  if (store === false) throw invalidRequest("store", "store: a response that joins a conversation is kept in it.");
}

type ResponsesInput = HandlerInput<unknown, unknown, z.output<typeof bodySchema>>;

type Background = {
  searched: SearchedChat;
  places: readonly string[];
  conversation: Conversation;
  isRegulated: boolean;
  resumes: Resumed | undefined;
};

/** Accepts a response that a job makes, and replies with it as it is now, or with its events. */
async function makeInBackground(
  input: ResponsesInput,
  { searched: { request }, places, conversation, isRegulated, resumes }: Background,
): Promise<Reply> {
  const { platform, body, signal } = input;
  const { tenantId } = input.caller;
  if (body.store === false) throw invalidRequest("store", "store: a response in the background is stored.");
  if (isRegulated) throw invalidRequest("background", "background: nothing of a regulated profile's chats is kept.");
  if (body.callback) await platform.callbacks.admit(input.caller, body.callback.url);
  // The guard of a run comes before the record of the response, which keeps the input.
  const asking = toGatewayCaller(input, SURFACE);
  await platform.chat.check(asking, request).catch(withOwnNames(places));
  const { surface } = asking;
  const caller = { tenantId, ...toStoredCaller(input.caller), surface };
  const job = await acceptOnce(input, (jobId) =>
    platform.responses.accept({ caller, body, options: request.options ?? {}, conversation, jobId, resumes }),
  );
  // Only now: a refused call leaves nothing behind. The repeat of a call that was cut in between gets here too.
  if (body.callback) await platform.callbacks.expect(input.caller, job._id, body.callback.url);
  const id = job.subject.responseId ?? "";
  if (body.stream !== true) return { status: 200, body: await platform.responses.get(tenantId, id) };
  const events = await platform.responses.events(tenantId, id, { after: -1, signal });
  return { status: 200, events: toSse(events), isEager: true };
}

/** What a body says itself. */
const withoutReferences = ({ input }: ResponsesBody) => ({
  before: [],
  input:
    typeof input === "string"
      ? input
      : input.map((item) => (item.type === "item_reference" ? { type: "other" as const } : item)),
});

/** The chat that a response is asked of, planned unless a job makes it; names what of the body is not used. */
async function planResponse(input: ResponsesInput, conversation: Conversation) {
  const { body, platform } = input;
  const { request: asked, ignored, places, fileSearch } = fromResponsesBody(body, conversation);
  const options = parseSvcOptions(input.header("x-svc-options"));
  // What its caller does not want to be kept is cached only where they ask for that.
  const request = { ...asked, options: body.store === false ? { cache: false, ...options } : options };
  const searched: SearchedChat = { request, fileSearch };
  const asking = toGatewayCaller(input, SURFACE);
  const mayRestore = asking.mayRestore === true && body.store === false;
  const resumes = await decideByInput(input);
  const own = { resumes, endsAtApproval: true as const, mayRestore };
  const caller = { ...asking, ...own, onIgnored: (name: string) => input.ignore(toOwnName(name, places)) };
  await platform.responseChat.check(caller, searched);
  const planning = body.background === true ? undefined : platform.responseChat.plan(caller, searched);
  const planned = await planning?.catch(withOwnNames(places));
  const misfits = planned
    ? planned.chat.ignored
    : await platform.chat.ignoredBy(caller.tenantId, request).catch(withOwnNames(places));
  for (const name of misfits) ignored.push(toOwnName(name, places));
  for (const name of ignored.slice(0, MAX_IGNORED)) input.ignore(name);
  return { searched, planned, places, resumes };
}

/** Throws with the names of fields that this API has. */
const withOwnNames = (places: readonly string[]) => (error: unknown) => {
  throw withOwnName(error, places);
};
