import { z } from "zod";
import type { Ineligible } from "../../src/batches/provider/batches.ts";
import { parseSvcOptions, toChatRequest } from "../../src/gateway/chat/request.ts";
import {
  toChatResponse,
  toPreprocessing,
  toReasoningDetails,
  toWireToolCalls,
  toWireUsage,
  usesPromptCache,
} from "../../src/gateway/chat/response.ts";
import { type ChatEvent, isSilent, isStep, toReasoningText } from "../../src/gateway/chat/steps.ts";
import type { StreamEnd } from "../../src/gateway/chat/stream.ts";
import { toWireLogprobs } from "../../src/gateway/logprobs.ts";
import { defaultModelAlias } from "../../src/gateway/providers/edge/models.ts";
import {
  type ChatBody,
  chatBodySchema,
  chatEventSchema,
  chatResponseSchema,
  citationsOfRun,
} from "../../src/gateway/schemas.ts";
import { defined } from "../../src/lib/defined.ts";
import { AppError, type ErrorCode, invalidRequest, isBudgetExhausted } from "../../src/lib/errors.ts";
import type { ChatCaller, PlannedAnswer } from "../../src/run-models/deps.ts";
import type { JobRecord } from "../../src/store/job-record.ts";
import { rootOf } from "../../src/tenancy/roles.ts";
import { boundForWidget } from "../middleware/widget-access.ts";
import { acceptedSchema, readPreference, replyWithJob, reserveJob } from "../prefer.ts";
import { declareRoutes, type HandlerInput, type SseMessage } from "../route.ts";
import { named } from "../schema-names.ts";
import { answerVisitor, conceal, concealing, sourceFields, visitorEventSchema } from "./visitor-answers.ts";

/** Describes `x-svc-options` in the documentation. */
export const svcOptionsHeader =
  "`key=value` pairs: `compress=true`, `cache=true|false`, `cache-ttl=SECONDS`, `strict=true` (reject a setting that the model does not take, instead of adjusting it or leaving it out)";
const DEFAULT_SURFACE = "api";
const WIDGET_SURFACE = "widget";

/** Errors that any model call can end with. */
export const modelCallErrors = [
  "unknown_model",
  "model_not_found",
  "provider_not_configured",
  "provider_key_refused",
  "budget_exhausted",
  "compliance_blocked",
  "provider_key_unreadable",
  "provider_rejected",
  "provider_failed",
  "response_format_mismatch",
  "provider_rate_limited",
  "provider_timeout",
] as const satisfies readonly ErrorCode[];

/** Errors that a chat can end with besides, where an agent or a composite pattern may be its model. */
export const runErrors = ["wrong_state", "timeout"] as const satisfies readonly ErrorCode[];

const responseSchema = named(
  "ChatResponse",
  chatResponseSchema.extend({ ...sourceFields, citations: z.union([sourceFields.citations, citationsOfRun]) }),
);
const eventSchema = named("ChatEvent", z.union([visitorEventSchema, chatEventSchema]));

const routes = declareRoutes({ auth: "member", tags: ["Gateway"] });

export const chatRoutes = [
  routes.post("/ai/chat", {
    isForWidgets: true,
    summary: "Chat completion, as JSON or as a stream of server-sent events",
    description:
      "With `stream: true` the response is `text/event-stream`: deltas, then one event with `done: true`. A failure after the " +
      "first byte is an event `{ error, done: true }`. A widget key takes bodies of 64 KiB at most, no `tools` and no JSON schema; its responses " +
      "have `WIDGET_MAX_TOKENS` tokens at most (default 1,024), and `prefer_async` and the headers below are ignored. A chat with " +
      "`prefer_async` is answered 202 at once; `Prefer: wait=N` waits up to N seconds for its batch.",
    body: chatBodySchema,
    headers: {
      "x-svc-options": svcOptionsHeader,
      "x-svc-debug": "`true` adds `_preprocessing`",
      "x-svc-surface":
        "Tags the source of the request for analytics, in 64 characters at most; any but letters, digits and `_ . : / -` become a dash. Beyond 100 a day they count as `other`",
    },
    responses: {
      200: { description: "The completion", body: responseSchema, events: eventSchema },
      202: { description: "With `prefer_async`: it waits for a batch; follow it at `Location`", body: acceptedSchema },
    },
    errors: [...modelCallErrors, ...runErrors],
    example: { messages: [{ role: "user", content: "What does a lease protect a job from?" }] },
    screen({ body, caller, platform: { chat } }) {
      if (!caller.widget && chat.isRegulated(body.model ?? defaultModelAlias)) chat.screen(toChatRequest(body));
    },
    async handler(input) {
      const { body, platform } = input;
      // Visitors of a page get responses, but neither jobs nor debugging data.
      const { widget } = input.caller;
      const isWidget = widget !== undefined;
      const options = isWidget ? {} : parseSvcOptions(input.header("x-svc-options"));
      const { widgetMaxTokens } = platform.config.limits;
      if (widget?.answersFrom) {
        const asked = { caller: toGatewayCaller(input), widget, body: boundForWidget(body, widget, widgetMaxTokens) };
        return answerVisitor(platform, asked);
      }
      const asked = widget ? await asAgent({ ...input, body: boundForWidget(body, widget, widgetMaxTokens) }) : body;
      const hasDebug = !isWidget && input.header("x-svc-debug") === "true";
      const request = { ...toChatRequest(asked), options: { ...options, debug: hasDebug } };
      const caller = toGatewayCaller(input);
      const chat = await (isWidget ? platform.gateway : platform.chat).plan(caller, request);
      for (const setting of chat.ignored) input.ignore(setting);
      const mayWait = body.prefer_async === true;
      const batched = mayWait ? await acceptForBatch(input, body, chat) : { headers: {} };
      if ("job" in batched) {
        return replyWithJob(input, batched.job, { status: 200, preference: readPreference(input.header("prefer"), 0) });
      }
      const { headers } = batched;
      if (body.stream) {
        const events = toSseEvents(platform.chat.stream(chat), hasDebug);
        return { status: 200, headers, events: isWidget ? concealing(events) : events };
      }
      const completing = platform.chat.answer(chat);
      const outcome = await (isWidget ? completing.catch(conceal) : completing);
      return { status: 200, headers, body: toChatResponse(outcome, hasDebug) };
    },
  }),
];

/** Who makes a model call on behalf of a request. */
export function toGatewayCaller(
  { caller, header, signal, platform, reservation, ignore }: HandlerInput,
  defaultSurface: string = DEFAULT_SURFACE,
): ChatCaller {
  // Visitors of a page must not choose the rows of its tenant's usage.
  const named = caller.widget ? WIDGET_SURFACE : header("x-svc-surface");
  const surface = (named && platform.gateway.surfaceOf(caller.tenantId, named)) || defaultSurface;
  const { tenantId, keyId, subject, role, collections, keyBudgetUsd } = caller;
  return {
    tenantId,
    keyId,
    keyBudgetUsd,
    subject,
    role,
    collections,
    surface,
    signal,
    runJob: reservation,
    onIgnored: ignore,
    mayRestore: reservation === undefined,
  };
}

type ChatInput = HandlerInput<unknown, unknown, ChatBody>;

/** The body of a chat, with the model and prompt of the key's agent, if any. @throws AppError `insufficient_scope`: deleted. */
async function asAgent({ body, caller, platform }: ChatInput): Promise<ChatBody> {
  const agentId = caller.widget?.agentId;
  if (agentId === undefined) return body;
  const definition = await platform.agents.definitionOf(caller.tenantId, agentId);
  if (definition === null) throw new AppError("insufficient_scope", "The agent of this widget key was deleted.");
  const { model, systemPrompt } = definition;
  const messages = body.messages.filter(({ role }) => role !== "system"); // a visitor must not speak as the system
  if (messages.length === 0) throw invalidRequest("messages", "Send a message besides those of the system.");
  return { ...body, messages, model, systemPrompt, temperature: definition.temperature ?? body.temperature };
}

/** The job of a chat in the next batch, or says in a header why the chat is answered at once. */
async function acceptForBatch(
  input: HandlerInput,
  body: ChatBody,
  chat: PlannedAnswer,
): Promise<{ job: JobRecord } | { headers: Record<string, string> }> {
  const ineligible = (reason: Ineligible) => ({ headers: { "x-svc-batch": `ineligible; reason=${reason}` } });
  if (input.caller.widget) return ineligible("widget-key");
  if (body.stream) return ineligible("streamed");
  if ("run" in chat) return ineligible("run");
  const reserved = await reserveJob(input);
  if ("job" in reserved) return reserved;
  const { quotas, batches, jobs } = input.platform;
  const { tenantId, subject: startedBy } = input.caller;
  const admit = () => quotas.check(tenantId, "openJobs");
  const accept = () => batches.chats.accept(chat.caller, chat, { ...reserved, startedBy, admit });
  const accepted = await jobs.inTurn(rootOf(input.caller), accept).catch(withoutRoom);
  return "job" in accepted ? accepted : ineligible(accepted.ineligible);
}

/** Only an immediate call may use the last remainder of a budget, so this one is answered now. */
function withoutRoom(error: unknown): { ineligible: Ineligible } {
  if (isBudgetExhausted(error)) return { ineligible: "budget" };
  throw error;
}

async function* toSseEvents(events: AsyncIterable<ChatEvent[]>, hasDebug: boolean): AsyncGenerator<SseMessage[]> {
  for await (const batch of events) {
    const messages: SseMessage[] = [];
    for (const event of batch) {
      if (isSilent(event)) continue;
      if (event.type === "text-delta") {
        const marks = event.logprobs ? { logprobs: toWireLogprobs(event.logprobs) } : {};
        messages.push({ data: { delta: { content: event.text }, ...marks, done: false } });
      } else if (event.type === "reasoning-delta" || isStep(event)) {
        messages.push({ data: { delta: { content: "", reasoning: toReasoningText(event) }, done: false } });
      } else if (event.type === "end") {
        const details = toReasoningDetails(event.parts);
        if (details) messages.push({ data: { delta: { content: "", reasoning_details: details }, done: false } });
        messages.push({ data: toFinalEvent(event, hasDebug) });
      }
    }
    yield messages;
  }
}

function toFinalEvent(end: StreamEnd, hasDebug: boolean): z.input<typeof chatEventSchema> {
  const { logId, usage, finishReason, providerFinishReason, model, cached, costUsd } = end;
  const { inputTokens, outputTokens } = usage;
  const about = { logId, inputTokens, outputTokens, finishReason, model, cached, costUsd };
  const toolCalls = toWireToolCalls(end.toolCalls);
  const citations = end.citations && [...end.citations];
  const counted = usesPromptCache(usage) ? { usage: toWireUsage(usage) } : {};
  return {
    done: true,
    ...about,
    ...counted,
    ...defined({ toolCalls, providerFinishReason, citations }),
    ...toPreprocessing(end, hasDebug),
  };
}
