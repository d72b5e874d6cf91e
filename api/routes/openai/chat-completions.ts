import { parseSvcOptions } from "../../../src/gateway/chat/request.ts";
import { toChatResponse, toReasoningDetails, toWireUsage } from "../../../src/gateway/chat/response.ts";
import { type ChatDelta, type ChatEvent, isSilent, toReasoningText } from "../../../src/gateway/chat/steps.ts";
import { toWireLogprobs } from "../../../src/gateway/logprobs.ts";
import { defined } from "../../../src/lib/defined.ts";
import { newId } from "../../../src/lib/ids.ts";
import { fromOpenAi, secondsNow, toAnnotations, toCompletion } from "../../../src/surfaces/chat-completions/openai.ts";
import {
  type OpenAiChunk,
  openAiChatBodySchema,
  openAiCompletionSchema,
  openAiEventSchema,
} from "../../../src/surfaces/chat-completions/openai-schemas.ts";
import { declareRoutes, type SseMessage } from "../../route.ts";
import { modelCallErrors, runErrors, svcOptionsHeader, toGatewayCaller } from "../chat.ts";

const SURFACE = "openai";

type ChunkOptions = { requestedModel: string; hasUsage: boolean };

const routes = declareRoutes({ auth: "member", tags: ["OpenAI-compatible"] });

export const openAiChatRoutes = [
  routes.post("/v1/chat/completions", {
    summary: "Chat completion in OpenAI's shape, as JSON or as a stream of chunks",
    description:
      "For clients of OpenAI's API: set their base URL to `/v1`. `logId`, `costUsd` and `cached` are added to the " +
      "response, and to the chunk that ends a stream.",
    body: openAiChatBodySchema,
    headers: {
      "x-svc-options": svcOptionsHeader,
      "x-svc-surface": "Tags the source of the request for analytics; default `openai`",
    },
    responses: { 200: { description: "The completion", body: openAiCompletionSchema, events: openAiEventSchema } },
    errors: [...modelCallErrors, ...runErrors],
    example: { model: "meta-llm", messages: [{ role: "user", content: "What does a lease protect a job from?" }] },
    screen({ body, platform }) {
      if (platform.chat.isRegulated(body.model)) platform.chat.screen(fromOpenAi(body));
    },
    async handler(input) {
      const { body, platform } = input;
      const request = { ...fromOpenAi(body), options: parseSvcOptions(input.header("x-svc-options")) };
      const chat = await platform.chat.plan(toGatewayCaller(input, SURFACE), request);
      for (const setting of chat.ignored) input.ignore(setting);
      if (body.stream !== true) {
        return { status: 200, body: toCompletion(toChatResponse(await platform.chat.answer(chat))) };
      }
      const hasUsage = body.stream_options?.include_usage === true;
      const events = toChunks(platform.chat.stream(chat), { requestedModel: body.model, hasUsage });
      return { status: 200, events, toErrorEvent: (error) => ({ data: { error } }) };
    },
  }),
];

/** The chunks of a stream, those of one batch in one write. The role comes first; the usage, if requested, last. */
async function* toChunks(batches: AsyncIterable<ChatEvent[]>, { requestedModel, hasUsage }: ChunkOptions) {
  const head = { id: `chatcmpl-${newId("log")}`, object: "chat.completion.chunk" as const, created: secondsNow() };
  const noUsage = hasUsage ? { usage: null } : {};
  const toChunk = (model: string, delta: Delta, ended: Partial<Ended> = {}): OpenAiChunk => ({
    ...head,
    model,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...ended }],
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
      if (event.type === "reasoning-item" || isSilent(event)) continue; // reasoning comes together, at the end
      if (event.type !== "end") messages.push({ data: toChunk(requestedModel, toDelta(event), logprobsOf(event)) });
      else {
        const { model, logId, costUsd, cached, finishReason, providerFinishReason, usage } = event;
        const details = toReasoningDetails(event.parts);
        if (details) messages.push({ data: toChunk(model, { reasoning_details: details }) });
        const annotations = toAnnotations(event.citations);
        if (annotations) messages.push({ data: toChunk(model, { annotations }) });
        const citations = event.citations && [...event.citations];
        const account = { logId, costUsd, cached, ...defined({ providerFinishReason, citations }) };
        messages.push({ data: { ...toChunk(model, {}, { finish_reason: finishReason }), ...account } });
        if (hasUsage) messages.push({ data: { ...head, model, choices: [], usage: toWireUsage(usage) } });
        messages.push({ data: "[DONE]" });
      }
    }
    yield messages;
  }
}

type Delta = OpenAiChunk["choices"][number]["delta"];
type Ended = Pick<OpenAiChunk["choices"][number], "finish_reason" | "logprobs">;

const logprobsOf = (event: ChatDelta): Partial<Ended> =>
  event.type === "text-delta" && event.logprobs ? { logprobs: toWireLogprobs(event.logprobs) } : {};

function toDelta(event: Exclude<ChatDelta, { type: "reasoning-item" }>): Delta {
  if (event.type === "text-delta") return { content: event.text };
  if (event.type !== "tool-call-delta") return { reasoning_content: toReasoningText(event) };
  const { index, id, name, argumentsDelta } = event;
  const head = id === undefined ? {} : ({ id, type: "function" } as const);
  return { tool_calls: [{ index, ...head, function: defined({ name, arguments: argumentsDelta }) }] };
}
