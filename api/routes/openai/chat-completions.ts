import { AppError } from "../../../src/errors.ts";
import type { ChatRequest } from "../../../src/gateway/chat-request.ts";
import { toChatRequest } from "../../../src/gateway/chat-request.ts";
import { toWireToolCall } from "../../../src/gateway/chat-response.ts";
import type { ChatOutcome } from "../../../src/gateway/complete.ts";
import {
  type OpenAiChatBody,
  type OpenAiChunk,
  type OpenAiCompletion,
  openAiChatBodySchema,
  openAiCompletionSchema,
  openAiEventSchema,
} from "../../../src/gateway/openai-schemas.ts";
import type { StreamEnd, StreamEvent } from "../../../src/gateway/stream.ts";
import { newId } from "../../../src/ids.ts";
import { type AnyRoute, route, type SseMessage } from "../../route.ts";
import { modelCallErrors, toGatewayCaller } from "../chat.ts";

const SURFACE = "openai";

const createCompletion = route({
  method: "post",
  path: "/v1/chat/completions",
  auth: "member",
  tags: ["OpenAI-compatible"],
  summary: "Chat completion in OpenAI's shape, as JSON or as a stream of chunks",
  description:
    "For clients that speak OpenAI's API: set their base URL to `/v1`. `logId`, `costUsd` and `cached` are added to the " +
    "answer, and to the chunk that ends a stream.",
  body: openAiChatBodySchema,
  headers: { "x-svc-surface": "Tags the source of the request for analytics; default `openai`" },
  responses: { 200: { description: "The completion", body: openAiCompletionSchema, events: openAiEventSchema } },
  errors: modelCallErrors,
  example: { model: "meta-llm", messages: [{ role: "user", content: "What does a lease protect a job from?" }] },
  async handler(input) {
    const { body, platform } = input;
    const request = fromOpenAi(body);
    const caller = toGatewayCaller(input, SURFACE);
    if (body.stream !== true) {
      return { status: 200, body: toCompletion(await platform.gateway.complete(caller, request)) };
    }
    const hasUsage = body.stream_options?.include_usage === true;
    const events = toChunks(platform.gateway.stream(caller, request), { requestedModel: body.model, hasUsage });
    return { status: 200, events, toErrorEvent: (error) => ({ data: { error } }) };
  },
});

/**
 * The chat that a body in OpenAI's shape asks for.
 * @throws AppError `invalid_request` for what `toChatRequest` refuses.
 */
export function fromOpenAi(body: OpenAiChatBody): ChatRequest {
  const maxTokens = body.max_completion_tokens ?? body.max_tokens;
  const { top_p: topP, seed, response_format: format } = body;
  const stop = typeof body.stop === "string" ? [body.stop] : (body.stop ?? undefined);
  const hasTools = body.tools !== undefined && body.tools.length > 0;
  return {
    ...toChatRequest({
      messages: body.messages.map(toMessage),
      model: body.model,
      stream: false,
      temperature: body.temperature ?? undefined,
      maxTokens: maxTokens ?? undefined,
      tools: hasTools ? body.tools : undefined,
      tool_choice: hasTools || body.tool_choice !== "auto" ? body.tool_choice : undefined,
    }),
    ...(typeof topP === "number" ? { topP } : {}),
    ...(typeof seed === "number" ? { seed } : {}),
    ...(stop !== undefined && stop.length > 0 ? { stop } : {}),
    // Text is what every model writes.
    ...(format && format.type !== "text" ? { responseFormat: format } : {}),
  };
}

function toMessage(message: OpenAiChatBody["messages"][number]) {
  const { content: given } = message;
  const content = Array.isArray(given) ? given.map((part) => part.text).join("\n") : given;
  if (message.role === "assistant") return { ...message, content };
  if (content === null || content === undefined) throw new AppError("invalid_request", "A message needs content.");
  if (message.role === "tool") return { ...message, content };
  return { role: message.role === "user" ? ("user" as const) : ("system" as const), content };
}

const secondsNow = () => Math.floor(Date.now() / 1_000);

function toUsage({ inputTokens, outputTokens }: ChatOutcome["usage"]) {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
}

/** A completion as OpenAI answers it: a message that only calls tools has no content. */
export function toCompletion(outcome: ChatOutcome): OpenAiCompletion {
  const { text, toolCalls, reasoning, finishReason, model, logId, costUsd, cached } = outcome;
  return {
    id: `chatcmpl-${logId}`,
    object: "chat.completion",
    created: secondsNow(),
    model,
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text === "" && toolCalls.length > 0 ? null : text,
          refusal: null,
          ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
          ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls.map(toWireToolCall) }),
        },
        logprobs: null,
        finish_reason: finishReason,
      },
    ],
    usage: toUsage(outcome.usage),
    logId,
    costUsd,
    cached,
  };
}

type ChunkOptions = { requestedModel: string; hasUsage: boolean };

/** The chunks of a stream, those of one batch in one write. The role comes first, the usage, when it is wanted, last. */
async function* toChunks(
  batches: AsyncIterable<StreamEvent[]>,
  { requestedModel, hasUsage }: ChunkOptions,
): AsyncGenerator<SseMessage[]> {
  const head = { id: `chatcmpl-${newId("log")}`, object: "chat.completion.chunk" as const, created: secondsNow() };
  const noUsage = hasUsage ? { usage: null } : {};
  const toChunk = (model: string, delta: Delta, finish: StreamEnd["finishReason"] | null = null): OpenAiChunk => ({
    ...head,
    model,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...noUsage,
  });
  let hasRole = false;
  for await (const batch of batches) {
    const messages: SseMessage[] = [];
    if (!hasRole && batch.length > 0) {
      messages.push({ data: toChunk(requestedModel, { role: "assistant", content: "" }) });
      hasRole = true;
    }
    for (const event of batch) {
      if (event.type !== "end") messages.push({ data: toChunk(requestedModel, toDelta(event)) });
      else {
        const { model, logId, costUsd, cached, finishReason, usage } = event;
        messages.push({ data: { ...toChunk(model, {}, finishReason), logId, costUsd, cached } });
        if (hasUsage) messages.push({ data: { ...head, model, choices: [], usage: toUsage(usage) } });
        messages.push({ data: "[DONE]" });
      }
    }
    yield messages;
  }
}

type Delta = OpenAiChunk["choices"][number]["delta"];

function toDelta(event: Exclude<StreamEvent, StreamEnd>): Delta {
  if (event.type === "text-delta") return { content: event.text };
  if (event.type === "reasoning-delta") return { reasoning_content: event.text };
  const { index, id, name, argumentsDelta } = event;
  return {
    tool_calls: [
      {
        index,
        ...(id === undefined ? {} : { id, type: "function" }),
        function: { ...(name === undefined ? {} : { name }), arguments: argumentsDelta },
      },
    ],
  };
}

export const openAiChatRoutes: readonly AnyRoute[] = [createCompletion];
