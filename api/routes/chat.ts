import { z } from "zod";
import { AppError, type ErrorCode } from "../../src/errors.ts";
import type { GatewayCaller } from "../../src/gateway/account.ts";
import { toChatRequest } from "../../src/gateway/chat-request.ts";
import type { ChatOutcome } from "../../src/gateway/complete.ts";
import type { ToolCall } from "../../src/gateway/providers/provider.ts";
import {
  type ChatBody,
  type ChatResponse,
  chatBodySchema,
  chatEventSchema,
  chatResponseSchema,
} from "../../src/gateway/schemas.ts";
import type { StreamEnd, StreamEvent } from "../../src/gateway/stream.ts";
import { parseSvcOptions } from "../../src/gateway/svc-options.ts";
import { type AnyRoute, type HandlerInput, route, type SseMessage } from "../route.ts";

const DEFAULT_SURFACE = "api";
const surfaceSchema = z.string().regex(/^[\w.:/-]{1,64}$/);

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
  tags: ["Gateway"],
  summary: "Chat completion, as JSON or as a stream of server-sent events",
  description:
    "With `stream: true` the answer is `text/event-stream`: deltas, then one event with `done: true`. A failure after the " +
    "first byte is an event `{ error, done: true }`.",
  body: chatBodySchema,
  headers: {
    "x-svc-options": "`key=value` pairs: `compress=true`, `cache=true|false`, `cache-ttl=SECONDS`",
    "x-svc-debug": "`true` adds `_preprocessing`",
    "x-svc-surface": "Tags the source of the request for analytics; up to 64 letters, digits and `_ . : / -`",
  },
  responses: { 200: { description: "The completion", body: chatResponseSchema, events: chatEventSchema } },
  errors: modelCallErrors,
  example: { messages: [{ role: "user", content: "What does a lease protect a job from?" }] },
  async handler(input) {
    const { body, platform } = input;
    const options = parseSvcOptions(input.header("x-svc-options"));
    const request = { ...toChatRequest(body), options };
    const caller = toGatewayCaller(input);
    const hasDebug = input.header("x-svc-debug") === "true";
    const headers = toBatchHeaders(body);
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
  const surface = surfaceSchema.safeParse(header("x-svc-surface") ?? defaultSurface);
  if (!surface.success) {
    throw new AppError("invalid_request", "x-svc-surface takes up to 64 letters, digits and _ . : / -", {
      param: "x-svc-surface",
    });
  }
  return { tenantId: caller.tenantId, keyId: caller.keyId, surface: surface.data, signal };
}

/** Says why a request that may be batched is answered at once. No provider has a batch interface yet. */
function toBatchHeaders(body: ChatBody): Record<string, string> {
  if (body.prefer_async !== true) return {};
  return { "x-svc-batch": `ineligible; reason=${body.stream ? "streamed" : "no-batch-interface"}` };
}

function toChatResponse(outcome: ChatOutcome, hasDebug: boolean): ChatResponse {
  const toolCalls = outcome.toolCalls.map(toWireToolCall);
  const { inputTokens, outputTokens } = outcome.usage;
  return {
    text: outcome.text,
    choices: [
      {
        message: {
          role: "assistant",
          content: outcome.text,
          ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
        },
        finish_reason: outcome.finishReason,
      },
    ],
    ...(toolCalls.length > 0 ? { toolCalls } : {}),
    ...(outcome.reasoning === undefined ? {} : { reasoning: outcome.reasoning }),
    logId: outcome.logId,
    inputTokens,
    outputTokens,
    usage: { prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: inputTokens + outputTokens },
    cached: outcome.cached,
    costUsd: outcome.costUsd,
    model: outcome.model,
    ...toPreprocessing(outcome, hasDebug),
  };
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

type Preprocessed = Pick<ChatOutcome, "routing" | "timingsMs" | "cache">;

function toPreprocessing({ routing, timingsMs, cache = undefined }: Preprocessed, hasDebug: boolean) {
  return hasDebug ? { _preprocessing: { routing, cache: { status: cache ?? ("off" as const) }, timingsMs } } : {};
}

/** A tool call in OpenAI's shape. */
export function toWireToolCall({ id, name, arguments: text }: ToolCall) {
  return { id, type: "function" as const, function: { name, arguments: text } };
}

export const chatRoutes: readonly AnyRoute[] = [chat];
