import { z } from "zod";
import { parseSvcOptions } from "../../../src/gateway/chat/svc-options.ts";
import {
  countTokensBodySchema,
  messageEventSchema,
  messageSchema,
  messagesBodySchema,
  tokensCountSchema,
} from "../../../src/gateway/messages-api/schemas.ts";
import { toChat } from "../../../src/gateway/messages-api/to-chat.ts";
import { toMessageEvents } from "../../../src/gateway/messages-api/to-events.ts";
import { toMessage } from "../../../src/gateway/messages-api/to-message.ts";
import { newId } from "../../../src/ids.ts";
import { declareRoutes } from "../../route.ts";
import { modelCallErrors, svcOptionsHeader, toGatewayCaller } from "../chat.ts";
import { anthropicDialect, toErrorEvent } from "./errors.ts";

const SURFACE = "anthropic";

const routes = declareRoutes({ auth: "member", tags: ["Anthropic-compatible"] });

/** Anthropic's clients name here that they use its beta interface, which has the same paths. */
const betaQuery = z.object({ beta: z.string().max(10).optional() });

export const anthropicMessageRoutes = [
  routes.post("/v1/messages", {
    summary: "A message in Anthropic's shape, as JSON or as a stream of events",
    description:
      "For clients of Anthropic's API: set their base URL to the address without `/v1`. The key may come as `x-api-key`. " +
      "Tools that Anthropic runs, and what they left in a conversation, are named in `x-svc-ignored`. `logId`, `costUsd` and " +
      "`cached` are added to the response, and to `message_delta` of a stream. Errors have Anthropic's shape.",
    dialect: anthropicDialect,
    query: betaQuery,
    body: messagesBodySchema,
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
    async handler(input) {
      const { body, platform } = input;
      const { request: asked, ignored } = toChat(body);
      const request = { ...asked, options: parseSvcOptions(input.header("x-svc-options")) };
      for (const name of ignored) input.ignore(name);
      const settings = platform.gateway.ignoredBy(input.caller.tenantId, request);
      for (const setting of settings instanceof Promise ? await settings : settings) input.ignore(setting);
      const caller = toGatewayCaller(input, SURFACE);
      if (body.stream !== true)
        return { status: 200, body: toMessage(await platform.gateway.complete(caller, request)) };
      const inputTokens = await platform.gateway.countTokens(caller.tenantId, request);
      const about = { id: newId("log"), model: body.model, inputTokens };
      const events = toMessageEvents(platform.gateway.stream(caller, request), about);
      return { status: 200, events: toSse(events), heartbeat: PING, toErrorEvent };
    },
  }),
  routes.post("/v1/messages/count_tokens", {
    summary: "An estimate of the tokens of a message's prompt",
    dialect: anthropicDialect,
    query: betaQuery,
    body: countTokensBodySchema,
    responses: { 200: { description: "The count", body: tokensCountSchema } },
    errors: ["unknown_model"],
    example: { model: "meta-llm", messages: [{ role: "user", content: "What does a lease protect a job from?" }] },
    async result(input) {
      const { request, ignored } = toChat(input.body);
      for (const name of ignored) input.ignore(name);
      return { input_tokens: await input.platform.gateway.countTokens(input.caller.tenantId, request) };
    },
  }),
];

const PING = { event: "ping", data: { type: "ping" } };

async function* toSse(batches: ReturnType<typeof toMessageEvents>) {
  for await (const batch of batches) yield batch.map((data) => ({ event: data.type, data }));
}
