import { parseSvcOptions } from "../../../src/gateway/chat/svc-options.ts";
import { toOwnName, withOwnName } from "../../../src/gateway/responses/field-names.ts";
import { fromResponsesBody } from "../../../src/gateway/responses/request.ts";
import { type ResponsesBody, responsesBodySchema } from "../../../src/gateway/responses/request-schemas.ts";
import { beginResponse, toResponse } from "../../../src/gateway/responses/response.ts";
import { responseEventSchema, responseObjectSchema } from "../../../src/gateway/responses/response-schemas.ts";
import { makeResponseStream, type NumberedEvent } from "../../../src/gateway/responses/stream.ts";
import { type Conversation, newConversation, refersToStored } from "../../../src/responses/recall.ts";
import { declareRoutes, type HandlerInput, type SseMessage } from "../../route.ts";
import { modelCallErrors, runErrors, svcOptionsHeader, toGatewayCaller } from "../chat.ts";

const SURFACE = "responses";
/** Most names of what is left out that one response lists; the input may have 2,000 such items. */
const MAX_IGNORED = 20;

const routes = declareRoutes({ auth: "member", tags: ["OpenAI-compatible"] });

export const openAiResponseRoutes = [
  routes.post("/v1/responses", {
    summary: "Response in the shape of OpenAI's Responses API, as JSON or as a stream of events",
    description:
      "For clients of OpenAI's API: set their base URL to `/v1`. Tools and items of another type than `function` are left " +
      "out and named in `x-svc-ignored`. Unless `store` is false, the response is kept for `RESPONSE_DAYS`: it can be read, " +
      "continued by `previous_response_id` and referred to by its items' ids. With " +
      '`include: ["reasoning.encrypted_content"]` a response has the reasoning of any provider as items that go back in ' +
      "`input` as they are. `logId`, `costUsd` and `cached` are added to the response.",
    body: responsesBodySchema,
    headers: {
      "x-svc-options": svcOptionsHeader,
      "x-svc-surface": "Tags the source of the request for analytics; default `responses`",
    },
    responses: { 200: { description: "The response", body: responseObjectSchema, events: responseEventSchema } },
    errors: [...modelCallErrors, ...runErrors, "not_found", "quota_exceeded"],
    example: { model: "meta-llm", input: "What does a lease protect a job from?" },
    screen({ body, platform: { chat } }) {
      if (!chat.isRegulated(body.model)) return;
      const { request, places } = fromResponsesBody(body, withoutReferences(body));
      withOwnNames(places, () => chat.screen(request));
    },
    async handler(input) {
      const { body, platform } = input;
      const { tenantId } = input.caller;
      const conversation = refersToStored(body) ? await recall(input) : newConversation(body);
      const { request, places } = await readRequest(input, conversation);
      // Nothing of a regulated profile's chats is kept but their answers, and those by their runs.
      const isRegulated = platform.chat.isRegulated(body.model);
      const isStored = body.store !== false && !isRegulated;
      if (isRegulated && body.store !== false) input.ignore("store");
      const store = isStored ? await platform.responses.prepare(tenantId, conversation) : undefined;
      const keep = async (made: ReturnType<typeof toResponse>) => {
        const response = (await store?.(made)) ?? made.response;
        if (response.store !== isStored && body.stream !== true) input.ignore("store");
        return response;
      };
      const caller = toGatewayCaller(input, SURFACE);
      const begun = beginResponse(isRegulated ? { model: body.model, input: "" } : body, isStored);
      if (body.stream !== true) {
        const outcome = await platform.chat.complete(caller, request).catch((error: unknown) => {
          throw withOwnName(error, places);
        });
        return { status: 200, body: await keep(toResponse(begun, body, outcome)) };
      }
      const batches = platform.chat.stream(caller, request);
      const stream = makeResponseStream({ begun, body, batches, places, keep });
      return {
        status: 200,
        events: toSse(stream.events()),
        toErrorEvent: (error) => toMessage(stream.toFailure(error)),
      };
    },
  }),
];

type ResponsesInput = HandlerInput<unknown, unknown, ResponsesBody>;

const recall = ({ body, caller: { tenantId }, platform, reserve }: ResponsesInput) =>
  platform.responses.recall({ tenantId, body, reserve });

/** What a body says itself. */
const withoutReferences = ({ input }: ResponsesBody) => ({
  before: [],
  input:
    typeof input === "string"
      ? input
      : input.map((item) => (item.type === "item_reference" ? { type: "other" as const } : item)),
});

/** The chat that a response is asked of; names what of the body is not used. */
async function readRequest(input: ResponsesInput, conversation: Conversation) {
  const { body, platform } = input;
  const { request: asked, ignored, places } = fromResponsesBody(body, conversation);
  const options = parseSvcOptions(input.header("x-svc-options"));
  // What its caller does not want to be kept is cached only where they ask for that.
  const request = { ...asked, options: body.store === false ? { cache: false, ...options } : options };
  const misfits = withOwnNames(places, () => platform.chat.ignoredBy(input.caller.tenantId, request));
  for (const name of misfits instanceof Promise ? await misfits : misfits) ignored.push(toOwnName(name, places));
  for (const name of ignored.slice(0, MAX_IGNORED)) input.ignore(name);
  return { request, places };
}

/** Throws with the names of fields that this API has. */
function withOwnNames<T>(places: readonly string[], work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw withOwnName(error, places);
  }
}

async function* toSse(batches: AsyncIterable<NumberedEvent[]>): AsyncGenerator<SseMessage[]> {
  for await (const batch of batches) yield batch.map(toMessage);
}

const toMessage = (data: NumberedEvent): SseMessage => ({ event: data.type, data });
