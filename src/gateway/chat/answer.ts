import { createHash } from "node:crypto";
import { defined } from "../../lib/defined.ts";
import { AppError } from "../../lib/errors.ts";
import { guardFor } from "../../tenancy/guard-policies.ts";
import type { GatewayDeps } from "../deps.ts";
import { type AssistantPart, markReasoning } from "../messages.ts";
import { beginCall, type GatewayCaller, withEndUser } from "../money/account.ts";
import { notingBlocked } from "../money/note-blocked.ts";
import { isComplete } from "../providers/finish-reasons.ts";
import type { CompletionResult } from "../providers/provider.ts";
import { type ModelAttempt, withFallbacks } from "../resilience/retry.ts";
import { estimateUsage } from "../tokens.ts";
import { attempt, toCompletionRequest, toRoutingView } from "./attempt.ts";
import { makeCompressor, withReport } from "./compress.ts";
import { guardAnswer, guardRequest } from "./guard-chat.ts";
import { withoutFence } from "./json-fence.ts";
import type { CachedResponse, ChatOutcome } from "./outcome.ts";
import { ignoredAt, type Plan, type PlannedChat, planChat } from "./plan.ts";
import type { ChatRequest } from "./request.ts";
import type { ResponseCache } from "./response-cache.ts";
import { restoreOutcome, restoreStream } from "./restore-chat.ts";
import { makeSingleFlight } from "./single-flight.ts";
import { type StreamEvent, streamChat } from "./stream.ts";
import { makeStreamedResponse, toDeltas } from "./streamed-response.ts";

/** How long an answer is kept when the request does not say, in seconds. */
const DEFAULT_TTL_SECONDS = 300;

/** Answers chats. Each is planned first, and then answered once, either whole or as a stream. */
export type Answerer = {
  /** Throws as `planChat`. */
  plan(caller: GatewayCaller, request: ChatRequest): Promise<PlannedChat>;
  /** Throws as `complete` does. */
  answer(chat: PlannedChat): Promise<ChatOutcome>;
  /** Batches of deltas, then one `end`; an empty batch says that the model is called and has not answered yet. */
  stream(chat: PlannedChat): AsyncIterable<StreamEvent[]>;
};

/**
 * Answers chats by models. Identical chats of a tenant share one call: the answer comes from the cache, or from a call that is
 * under way. A chat is cacheable if it says so, or if its temperature is 0. Only complete answers are cached. The answer of a
 * fallback is not cached, since the key does not name the fallback.
 */
export function makeAnswerer(deps: GatewayDeps, responses: ResponseCache): Answerer {
  const compress = makeCompressor();
  const completions = makeSingleFlight<ChatOutcome>();
  const streams = makeSingleFlight<StreamEvent[]>();

  const keep = (key: string, { caller: { tenantId }, plan, request }: PlannedChat, outcome: CachedResponse) => {
    const { text, reasoning, toolCalls, parts, finishReason, model, provider, usage, logprobs } = outcome;
    if (!isComplete(finishReason) || model !== plan.routing.model.id) return;
    const ttlSeconds = request.options?.cacheTtlSeconds ?? DEFAULT_TTL_SECONDS;
    const response = defined({ text, reasoning, toolCalls, parts, finishReason, model, provider, usage, logprobs });
    responses.put({ tenantId, key, response, ttlSeconds });
  };

  async function completeCached(chat: PlannedChat): Promise<ChatOutcome> {
    const { caller, plan } = chat;
    const key = toKey(chat);
    const begin = async function* (signal: AbortSignal): AsyncGenerator<ChatOutcome> {
      const outcome = await complete(deps, { ...chat, caller: { ...caller, signal } });
      keep(key, chat, outcome);
      yield outcome;
    };
    const kept = completions.has(key) ? null : await responses.get(key);
    if (kept !== null) return { ...kept, ...openCopy(deps, caller, plan, false).end(kept), cache: "hit" };
    const copy = completions.has(key) ? openCopy(deps, caller, plan, false) : undefined;
    try {
      const outcome = await firstOf(completions.join(key, begin, caller.signal));
      return copy ? { ...outcome, ...copy.end(outcome), cache: "shared" } : { ...outcome, cache: "miss" };
    } catch (error) {
      copy?.fail(error);
      throw error;
    }
  }

  async function* streamCached(chat: PlannedChat): AsyncGenerator<StreamEvent[]> {
    const { caller, plan } = chat;
    const key = toKey(chat);
    const begin = async function* (signal: AbortSignal): AsyncGenerator<StreamEvent[]> {
      const response = makeStreamedResponse();
      for await (const batch of streamChat(deps, { ...chat, caller: { ...caller, signal } })) {
        response.take(batch, plan.routing.model.provider);
        const end = batch.find((event) => event.type === "end");
        if (end !== undefined) keep(key, chat, { ...end, ...response.content() });
        yield batch;
      }
    };
    const kept = streams.has(key) ? null : await responses.get(key);
    if (kept !== null) {
      yield toEvents(kept, openCopy(deps, caller, plan, true).end(kept));
      return;
    }
    const copy = streams.has(key) ? openCopy(deps, caller, plan, true) : undefined;
    let failure: unknown = new AppError("client_closed", "The reader left the stream.");
    try {
      for await (const batch of streams.join(key, begin, caller.signal)) {
        yield batch.map((event): StreamEvent => {
          if (event.type !== "end") return event;
          return copy ? { ...event, ...copy.end(event), cache: "shared" } : { ...event, cache: "miss" };
        });
      }
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      copy?.fail(failure); // has no effect on a stream that has ended
    }
  }

  return {
    async plan(given, whole) {
      const { guard, request: asked } = await guardAsked(deps, given, whole);
      const caller = withEndUser(guard ? { ...given, guard } : given, asked);
      if (asked.options?.compress !== true) return planWhole(deps, caller, asked);
      const { request, report } = await compress(caller, asked);
      return { ...(await planWhole(deps, caller, request)), compression: report };
    },
    async answer(chat) {
      return toGiven(chat, await (isCacheable(chat.request) ? completeCached(chat) : complete(deps, chat)));
    },
    stream(chat) {
      return toGivenStream(chat, isCacheable(chat.request) ? streamCached(chat) : streamChat(deps, chat));
    },
  };
}

/** An outcome as its caller gets it, which no cache has. */
function toGiven({ caller: { guard }, compression }: PlannedChat, guarded: ChatOutcome): ChatOutcome {
  const outcome = guard?.restores ? restoreOutcome(guard, guarded) : guarded;
  return compression ? { ...outcome, compression } : outcome;
}

/** The same for a stream. */
function toGivenStream({ caller: { guard }, compression }: PlannedChat, guarded: AsyncIterable<StreamEvent[]>) {
  const events = guard?.restores ? restoreStream(guard, guarded) : guarded;
  return compression ? withReport(events, compression) : events;
}

/** A chat as its tenant's guards let it go to a model. The guard of an earlier part of the same call goes on. */
async function guardAsked(deps: GatewayDeps, caller: GatewayCaller, request: ChatRequest) {
  const guard = caller.guard ?? (await guardFor(deps, caller));
  if (guard === undefined) return { guard, request };
  const findRouting = async () => (await planChat(deps, caller.tenantId, request)).routing;
  const about = { kind: "chat", isStreamed: false, findRouting } as const;
  return { guard, request: await notingBlocked(deps, { ...caller, guard }, about, () => guardRequest(guard, request)) };
}

async function planWhole(deps: GatewayDeps, caller: GatewayCaller, request: ChatRequest): Promise<PlannedChat> {
  const plan = await planChat(deps, caller.tenantId, request);
  return { caller, request, plan, ignored: ignoredAt(plan.routing.model, request) };
}

const isCacheable = ({ options, temperature }: ChatRequest) => options?.cache ?? temperature === 0;

/** A hash of all that the answer depends on: the tenant, the model, and the request that the provider would get. */
function toKey({ caller: { tenantId, guard }, plan, request }: PlannedChat): string {
  const { model } = plan.routing;
  const rules = guard ? [guard.rulesKey] : []; // an answer is kept as it was guarded
  return createHash("sha256")
    .update(JSON.stringify([tenantId, model.provider, toCompletionRequest(request, model), ...rules]))
    .digest("base64url");
}

/** Zero-cost ledger entry for a cache hit or a coalesced call. */
function openCopy(deps: GatewayDeps, caller: GatewayCaller, { routing }: Plan, isStreamed: boolean) {
  const call = beginCall(deps.ledger, caller, { kind: "chat", routing, isStreamed, inputTokens: () => 0 });
  return {
    end: ({ usage, finishReason }: Pick<CachedResponse, "usage" | "finishReason">) => ({
      logId: call.logId,
      cached: true,
      routing: toRoutingView(routing),
      ...call.settle({ usage, finishReason, isCached: true }),
    }),
    fail: (error: unknown) => {
      call.settle({ error, isCached: true });
    },
  };
}

/** A cached response as a stream, in one batch. */
function toEvents(kept: CachedResponse, copy: ReturnType<ReturnType<typeof openCopy>["end"]>): StreamEvent[] {
  const { toolCalls, parts, finishReason, model, provider } = kept;
  const about = { toolCalls, finishReason, model, provider, ...defined({ parts }) };
  return [...toDeltas(kept), { type: "end", ...about, ...copy, cache: "hit" }];
}

async function firstOf<T>(items: AsyncIterable<T>): Promise<T> {
  for await (const item of items) return item;
  throw new TypeError("a call ended without an outcome");
}

/**
 * Answers a planned chat. It asks the provider with retries, then the plan's fallbacks. The record of each model that was asked
 * is settled, even if the call fails.
 * @throws AppError `provider_key_refused`, `provider_failed`, `provider_rate_limited`, `provider_timeout`, `client_closed`,
 * `response_format_mismatch`; what checks of schemas throw.
 */
function complete(deps: GatewayDeps, chat: PlannedChat): Promise<ChatOutcome> {
  return withFallbacks(deps, chat.plan, (modelAttempt) => completeAt(deps, chat, modelAttempt));
}

async function completeAt(deps: GatewayDeps, chat: PlannedChat, modelAttempt: ModelAttempt): Promise<ChatOutcome> {
  const { provider } = modelAttempt.target;
  const {
    result: said,
    model,
    request,
    settle,
    fail,
  } = await attempt(deps, chat, modelAttempt, {
    isStreamed: false,
    describe: (answer: CompletionResult) => answer,
    ask: (readable, context) => provider.complete(readable, context),
  });
  const estimate = () => estimateUsage({ messages: request.messages, model }, said.text, said.toolCalls);
  const { guard } = chat.caller;
  let result = said;
  try {
    if (guard) result = await guardAnswer(guard, said);
  } catch (error) {
    fail(error, { usage: said.usage, estimate, text: "" });
    throw error;
  }
  const { toolCalls, finishReason, providerFinishReason, reasoning, usage, logprobs } = result;
  const clean = request.responseFormat === undefined ? (text: string) => text : withoutFence;
  const text = clean(result.text);
  const parts = result.parts && markReasoning(result.parts, model.provider).map((part) => mapText(part, clean));
  const settled = await settle({ usage, estimate, finishReason, text });
  return { text, toolCalls, ...settled, ...defined({ reasoning, parts, providerFinishReason, logprobs }) };
}

const mapText = (part: AssistantPart, map: (text: string) => string): AssistantPart =>
  part.type === "text" ? { ...part, text: map(part.text) } : part;
