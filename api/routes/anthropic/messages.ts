import { z } from "zod";
import type { ForwardedChat } from "../../../src/gateway/chat/forward.ts";
import { parseSvcOptions } from "../../../src/gateway/chat/request.ts";
import { estimatePrompt } from "../../../src/gateway/count-prompt.ts";
import { newId } from "../../../src/lib/ids.ts";
import { toForwarded, toForwardedHeaders } from "../../../src/surfaces/messages/forwarded.ts";
import {
  countTokensBodySchema,
  messageEventSchema,
  messageSchema,
  messagesBodySchema,
  tokensCountSchema,
} from "../../../src/surfaces/messages/schemas.ts";
import { refuseServerState } from "../../../src/surfaces/messages/server-state.ts";
import { toChat } from "../../../src/surfaces/messages/to-chat.ts";
import { toMessageEvents } from "../../../src/surfaces/messages/to-events.ts";
import { toMessage } from "../../../src/surfaces/messages/to-message.ts";
import { unreadFields } from "../../../src/surfaces/messages/unread-fields.ts";
import { parseBody } from "../../read-input.ts";
import { declareRoutes, type HandlerInput } from "../../route.ts";
import { modelCallErrors, svcOptionsHeader, toGatewayCaller } from "../chat.ts";
import { anthropicDialect, toErrorEvent } from "./errors.ts";

/** Anthropic's clients name here that they use its beta interface, which has the same paths. */
export const betaQuery = z.object({ beta: z.string().max(10).optional() });

/** A path as a request for Anthropic is forwarded to it. */
export function toForwardedPath(path: string, { beta }: z.output<typeof betaQuery>): string {
  return beta === undefined ? path : `${path}?beta=${encodeURIComponent(beta)}`;
}

const SURFACE = "anthropic";

const routes = declareRoutes({ auth: "member", tags: ["Anthropic-compatible"] });

/** What is read of a body that may go on as it came. */
const forwardableBody = z.looseObject({ model: z.string().min(1).max(200), stream: z.boolean().nullish() });

export const anthropicMessageRoutes = [
  routes.post("/v1/messages", {
    summary: "A message in Anthropic's shape, as JSON or as a stream of events",
    description:
      "For clients of Anthropic's API: set their base URL to the address without `/v1`. The key may come as `x-api-key`. " +
      "Requests for Anthropic's own models go to it, and its answers come back, byte for byte; for all others: " +
      "tools that Anthropic runs, and what they left in a conversation, are named in `x-svc-ignored`. `logId`, `costUsd` and " +
      "`cached` are added to the response, and to `message_delta` of a stream. Errors have Anthropic's shape.",
    dialect: anthropicDialect,
    query: betaQuery,
    body: forwardableBody,
    documentedBody: messagesBodySchema,
    headers: {
      "x-svc-options": svcOptionsHeader,
      "x-svc-surface": "Tags the source of the request for analytics; default `anthropic`",
    },
    responses: { 200: { description: "The message", body: messageSchema, events: messageEventSchema } },
    errors: modelCallErrors,
    example: {
      model: "meta-llm",
      max_tokens: 200,
      messages: [{ role: "user", content: "What does a lease protect a job from?" }],
    },
    screen({ body, platform }) {
      if (!platform.chat.isRegulated(body.model)) return;
      platform.chat.screen(toChat(parseBody(messagesBodySchema, { body, ignore: () => undefined }, () => [])).request);
    },
    async handler(input) {
      const { platform } = input;
      const caller = toGatewayCaller(input, SURFACE);
      const forwarded = await findForwarded(input, "/v1/messages");
      if (forwarded !== undefined) {
        const { forwarding } = platform.gateway;
        if (input.body.stream === true)
          return { status: 200, events: forwarding.stream(caller, forwarded), heartbeat: PING, toErrorEvent };
        return { status: 200, body: (await forwarding.complete(caller, forwarded)).body };
      }
      refuseServerState(input.body);
      const body = parseBody(messagesBodySchema, input, unreadFields);
      const { request: asked, ignored } = toChat(body);
      const request = { ...asked, options: parseSvcOptions(input.header("x-svc-options")) };
      for (const name of ignored) input.ignore(name);
      const chat = await platform.chat.plan(caller, request);
      for (const setting of chat.ignored) input.ignore(setting);
      if (body.stream !== true) return { status: 200, body: toMessage(await platform.chat.answer(chat)) };
      const inputTokens = estimatePrompt(request, "run" in chat ? undefined : chat.plan.routing.model);
      const about = { id: newId("log"), model: body.model, inputTokens };
      const events = toMessageEvents(platform.chat.stream(chat), about);
      return { status: 200, events: toSse(events), heartbeat: PING, toErrorEvent };
    },
  }),
  routes.post("/v1/messages/count_tokens", {
    summary: "The tokens of a message's prompt: by Anthropic for its models, estimated for others",
    dialect: anthropicDialect,
    query: betaQuery,
    body: forwardableBody,
    documentedBody: countTokensBodySchema,
    responses: { 200: { description: "The count", body: tokensCountSchema } },
    errors: modelCallErrors,
    example: { model: "meta-llm", messages: [{ role: "user", content: "What does a lease protect a job from?" }] },
    async handler(input) {
      const { caller, platform } = input;
      const forwarded = await findForwarded(input, "/v1/messages/count_tokens");
      if (forwarded !== undefined) {
        const { body } = await platform.gateway.forwarding.free(toGatewayCaller(input, SURFACE), forwarded);
        return { status: 200, body };
      }
      refuseServerState(input.body);
      const { request, ignored } = toChat(parseBody(countTokensBodySchema, input, unreadFields));
      for (const name of ignored) input.ignore(name);
      return { status: 200, body: { input_tokens: await platform.chat.countTokens(caller.tenantId, request) } };
    },
  }),
];

type ForwardableInput = HandlerInput<unknown, z.output<typeof betaQuery>, z.output<typeof forwardableBody>>;

/** The request as it goes on to the provider of its model; undefined for a model whose provider has another API. */
async function findForwarded(input: ForwardableInput, path: string): Promise<ForwardedChat | undefined> {
  const { body, bytes, query, platform, caller, header } = input;
  const model = await platform.gateway.forwarding.find(caller.tenantId, body.model);
  if (model === undefined || bytes === undefined) return undefined;
  if (header("x-svc-options") !== undefined) input.ignore("x-svc-options");
  return toForwarded(model, body, {
    path: toForwardedPath(path, query),
    // A custom provider has its own name for the model.
    body: model.wireId === undefined ? bytes.toString("utf8") : JSON.stringify({ ...body, model: model.wireId }),
    headers: toForwardedHeaders(header),
  });
}

const PING = { event: "ping", data: { type: "ping" } };

async function* toSse(batches: ReturnType<typeof toMessageEvents>) {
  for await (const batch of batches) yield batch.map((data) => ({ event: data.type, data }));
}
