import type { z } from "zod";
import { AppError, type ErrorCode } from "../../src/errors.ts";
import type { Ineligible } from "../../src/gateway/batches/provider/batches.ts";
import { type ChatRequest, toChatRequest } from "../../src/gateway/chat/request.ts";
import { toChatResponse, toPreprocessing, toWireToolCall } from "../../src/gateway/chat/response.ts";
import type { StreamEnd, StreamEvent } from "../../src/gateway/chat/stream.ts";
import { parseSvcOptions } from "../../src/gateway/chat/svc-options.ts";
import type { GatewayCaller } from "../../src/gateway/money/account.ts";
import { type ChatBody, chatBodySchema, chatEventSchema, chatResponseSchema } from "../../src/gateway/schemas.ts";
import { acceptedSchema, reserveJob, toAcceptedReply } from "../prefer.ts";
import { type AnyRoute, type HandlerInput, type JsonReply, route, type SseMessage } from "../route.ts";

const DEFAULT_SURFACE = "api";
const WIDGET_SURFACE = "widget";
const surfacePattern = /^[\w.:/-]{1,64}$/;

/** What any call of a model can fail with. */
export const modelCallErrors = [
  "unknown_model",
  "provider_not_configured",
  "provider_key_refused",
  "budget_exhausted",
  "provider_key_unreadable",
  "provider_failed",
  "provider_rate_limited",
  "provider_timeout",
] as const satisfies readonly ErrorCode[];

const chat = route({
  method: "post",
  path: "/ai/chat",
  auth: "member",
  isForWidgets: true,
  tags: ["Gateway"],
  summary: "Chat completion, as JSON or as a stream of server-sent events",
  description:
    "With `stream: true` the answer is `text/event-stream`: deltas, then one event with `done: true`. A failure after the " +
    "first byte is an event `{ error, done: true }`. A widget key takes bodies of 64 KiB at most and no `tools`; its answers " +
    "have `WIDGET_MAX_TOKENS` tokens at most (default 1,024), and `prefer_async` and the headers below are ignored.",
  body: chatBodySchema,
  headers: {
    "x-svc-options": "`key=value` pairs: `compress=true`, `cache=true|false`, `cache-ttl=SECONDS`",
    "x-svc-debug": "`true` adds `_preprocessing`",
    "x-svc-surface": "Tags the source of the request for analytics; up to 64 letters, digits and `_ . : / -`",
  },
  responses: {
    200: { description: "The completion", body: chatResponseSchema, events: chatEventSchema },
    202: { description: "With `prefer_async`: it waits for a batch; follow it at `Location`", body: acceptedSchema },
  },
  errors: modelCallErrors,
  example: { messages: [{ role: "user", content: "What does a lease protect a job from?" }] },
  async handler(input) {
    const { body, platform } = input;
    // A page's visitors get answers, and neither jobs nor a look behind them.
    const isWidget = input.caller.widget !== undefined;
    const options = isWidget ? {} : parseSvcOptions(input.header("x-svc-options"));
    const { widgetMaxTokens } = platform.config.limits;
    const asked = isWidget ? await asAgent({ ...input, body: boundForWidget(body, widgetMaxTokens) }) : body;
    const request = { ...toChatRequest(asked), options };
    const caller = toGatewayCaller(input);
    const hasDebug = !isWidget && input.header("x-svc-debug") === "true";
    const mayWait = body.prefer_async === true && !isWidget;
    const batched = mayWait ? await acceptForBatch(input, body, { caller, request }) : { headers: {} };
    if ("reply" in batched) return batched.reply;
    const { headers } = batched;
    if (body.stream)
      return { status: 200, headers, events: toSseEvents(platform.gateway.stream(caller, request), hasDebug) };
    return { status: 200, headers, body: toChatResponse(await platform.gateway.complete(caller, request), hasDebug) };
  },
});

/** Who makes a model call on behalf of a request. @throws AppError `invalid_request` for a bad `x-svc-surface`. */
export function toGatewayCaller(
  { caller, header, signal }: HandlerInput,
  defaultSurface: string = DEFAULT_SURFACE,
): GatewayCaller {
  // Visitors of a page do not choose the rows of its tenant's usage.
  const surface = caller.widget ? WIDGET_SURFACE : (header("x-svc-surface") ?? defaultSurface);
  if (!surfacePattern.test(surface)) {
    throw new AppError("invalid_request", "x-svc-surface takes up to 64 letters, digits and _ . : / -", {
      param: "x-svc-surface",
    });
  }
  return { tenantId: caller.tenantId, keyId: caller.keyId, surface, signal };
}

/**
 * A body that a visitor of a page may send: without tools, and with a cap on the tokens of its answer.
 * @throws AppError `invalid_request` for tools and for a higher cap.
 */
function boundForWidget(body: ChatBody, maxTokens: number): ChatBody {
  for (const param of ["tools", "tool_choice"] as const) {
    if (body[param] === undefined) continue;
    throw new AppError("invalid_request", `${param}: a widget key takes no tools.`, { param });
  }
  for (const param of ["maxTokens", "max_tokens"] as const) {
    if ((body[param] ?? 0) <= maxTokens) continue;
    throw new AppError("invalid_request", `${param}: a widget key gets ${maxTokens} tokens at most.`, { param });
  }
  return { ...body, maxTokens: body.maxTokens ?? body.max_tokens ?? maxTokens };
}

/**
 * The body of a chat, where a widget key chats as an agent with the agent's model and system prompt instead of its own.
 * @throws AppError `insufficient_scope` when the agent is gone.
 */
async function asAgent({ body, caller, platform }: HandlerInput<unknown, unknown, ChatBody>): Promise<ChatBody> {
  const agentId = caller.widget?.agentId;
  if (agentId === undefined) return body;
  const definition = await platform.agents.definitionOf(caller.tenantId, agentId);
  if (definition === null) throw new AppError("insufficient_scope", "The agent of this widget key is gone.");
  const { model, systemPrompt, temperature = body.temperature } = definition;
  const messages = body.messages.filter(({ role }) => role !== "system"); // nor may a visitor speak as the system
  if (messages.length === 0) {
    throw new AppError("invalid_request", "Send a message besides those of the system.", { param: "messages" });
  }
  return { ...body, messages, model, systemPrompt, ...(temperature === undefined ? {} : { temperature }) };
}

/** Answers with a job of the next batch, or says in a header why the chat is answered at once. */
async function acceptForBatch(
  input: HandlerInput,
  body: ChatBody,
  call: { caller: GatewayCaller; request: ChatRequest },
): Promise<{ reply: JsonReply } | { headers: Record<string, string> }> {
  const ineligible = (reason: Ineligible) => ({ headers: { "x-svc-batch": `ineligible; reason=${reason}` } });
  if (body.stream) return ineligible("streamed");
  const reserved = await reserveJob(input);
  if ("job" in reserved) return { reply: toAcceptedReply(reserved.job) };
  const accepted = await input.platform.gateway.batches.accept(call.caller, call.request, reserved.jobId);
  return "job" in accepted ? { reply: toAcceptedReply(accepted.job) } : ineligible(accepted.ineligible);
}

async function* toSseEvents(events: AsyncIterable<StreamEvent[]>, hasDebug: boolean): AsyncGenerator<SseMessage[]> {
  for await (const batch of events) {
    const messages: SseMessage[] = [];
    for (const event of batch) {
      if (event.type === "text-delta") messages.push({ data: { delta: { content: event.text }, done: false } });
      else if (event.type === "reasoning-delta") {
        messages.push({ data: { delta: { content: "", reasoning: event.text }, done: false } });
      } else if (event.type === "end") messages.push({ data: toFinalEvent(event, hasDebug) });
    }
    yield messages;
  }
}

function toFinalEvent(end: StreamEnd, hasDebug: boolean): z.input<typeof chatEventSchema> {
  const toolCalls = end.toolCalls.map(toWireToolCall);
  return {
    done: true,
    logId: end.logId,
    inputTokens: end.usage.inputTokens,
    outputTokens: end.usage.outputTokens,
    finishReason: end.finishReason,
    model: end.model,
    cached: end.cached,
    costUsd: end.costUsd,
    ...(toolCalls.length > 0 ? { toolCalls } : {}),
    ...toPreprocessing(end, hasDebug),
  };
}

export const chatRoutes: readonly AnyRoute[] = [chat];
