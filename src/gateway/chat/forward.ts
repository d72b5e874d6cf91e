import { AppError } from "../../lib/errors.ts";
import { tryParseJson } from "../../lib/try-parse-json.ts";
import { guardFor, type PolicyGuard, takeBy } from "../../tenancy/guard-policies.ts";
import { type CataloguedModel, findModel } from "../catalogue.ts";
import type { GatewayDeps } from "../deps.ts";
import { type GatewayCaller, withEndUser } from "../money/account.ts";
import { notingBlocked } from "../money/note-blocked.ts";
import { boundChat } from "../money/prices.ts";
import type { CompletionRequest, Forwarding, RawAnswer, RawEvents, RawRequest } from "../providers/provider.ts";
import { askModel, type ModelAttempt, withFallbacks } from "../resilience/retry.ts";
import { attemptTarget, findKeys, isUsable, notConfigured, toTarget } from "../resilience/target.ts";
import { providerFault } from "../resilience/transport-errors.ts";
import { boundPromptTokens, estimateMessageTokens, estimateTokens } from "../tokens.ts";
import { toCompletionRequest, toContent } from "./attempt.ts";
import { makePartsGuard } from "./guard-chat.ts";
import type { Plan } from "./plan.ts";
import type { ChatRequest } from "./request.ts";
import { factsOf } from "./stream.ts";
import { makeStreamedResponse } from "./streamed-response.ts";

/** A request that goes to its model's provider as it came. */
export type ForwardedChat = {
  model: CataloguedModel;
  requested: string;
  raw: RawRequest;
  /** The request as messages of our own form, for counting; undefined if that form cannot hold all of it. */
  chat: ChatRequest | undefined;
  /** Upper bound for the tokens of the rest; undefined if its bytes give none. */
  unreadTokens: number | undefined;
  maxTokens: number | undefined;
};

export const makeForwardedChats = (deps: GatewayDeps) => ({
  find: (tenantId: string, name: string) => findForwarding(deps, tenantId, name),
  complete: (caller: GatewayCaller, chat: ForwardedChat) => forward(deps, caller, chat),
  stream: (caller: GatewayCaller, chat: ForwardedChat) => forwardStream(deps, caller, chat),
  /** Set for a request that costs nothing, such as counting tokens. */
  free: (caller: GatewayCaller, chat: ForwardedChat) => forwardFree(deps, caller, chat),
});

/** The model of a name, if requests of the Messages API go to its provider as they come. */
export async function findForwarding(deps: GatewayDeps, tenantId: string, name: string) {
  const model = await findModel(deps, tenantId, name);
  if (model === undefined || !forwardingOf(deps, model)) return undefined;
  return (await deps.guards.masks(tenantId)) ? undefined : model; // a text with marks is another one
}

const forwardingOf = ({ providers }: GatewayDeps, { reach, provider }: CataloguedModel): Forwarding | undefined =>
  (reach?.().provider ?? providers.get(provider))?.forward;

/**
 * Answers a forwarded chat: with the key, the breaker and the retries of its model, set aside of the budget and settled in
 * the ledger as any other. It has no fallbacks, which do not read its format, and no cache.
 * @throws AppError as `complete`; `budget_exhausted` where the budget does not pay for the answer that is asked for.
 */
async function forward(deps: GatewayDeps, given: GatewayCaller, chat: ForwardedChat): Promise<RawAnswer> {
  const caller = await withGuard(deps, given, chat);
  return askForwarded(deps, caller, chat, async (modelAttempt) => {
    const { about, wire, toEnd } = toCounted(caller, chat);
    const { call, result } = await askModel(
      deps,
      modelAttempt,
      { ...about, isStreamed: false, describe: (answer: RawAnswer) => answer },
      (call) => {
        call.capped(wire);
        return (context) => requireForwarding(deps, chat.model).send(chat.raw, context);
      },
    );
    const { usage, finishReason, text } = result;
    const refusal = caller.guard && (await refusalOf(caller.guard, result));
    const error = refusal && { error: refusal };
    call.settle({ usage, ...(finishReason && { finishReason }), ...toEnd(text), ...error });
    if (refusal) throw refusal;
    return result;
  });
}

/** The same as a stream of whole events. It retries until the first event, never after it. It may also throw in the middle. */
async function* forwardStream(deps: GatewayDeps, given: GatewayCaller, chat: ForwardedChat): AsyncGenerator<Buffer> {
  const caller = await withGuard(deps, given, chat);
  const hold = caller.guard?.isOn("output", "toolInput") ? holdBack(caller.guard) : undefined;
  const { about, wire, toEnd } = toCounted(caller, chat);
  const { call, iterator, first, permit } = await askForwarded(deps, caller, chat, async (modelAttempt) => {
    const { call, result } = await askModel(deps, modelAttempt, { ...about, isStreamed: true }, (call) => {
      call.capped(wire);
      return async (context, permit) => {
        const iterator = requireForwarding(deps, chat.model).stream(chat.raw, context)[Symbol.asyncIterator]();
        const first = await iterator.next();
        if (first.done) throw providerFault("The provider sent an empty stream.");
        return { iterator, first: first.value, permit };
      };
    });
    return { call, ...result };
  });
  call.onFirstToken();
  const response = makeStreamedResponse();
  let failure: unknown = new AppError("client_closed", "The reader left the stream.");
  try {
    for (let next: RawEvents | undefined = first; next !== undefined; next = await nextOf(iterator)) {
      response.take(next.parts, chat.model.provider);
      if (response.finish() !== undefined) failure = undefined;
      const bytes = hold ? await hold(next) : next.bytes;
      if (bytes.length > 0) yield bytes;
      if (next.failure === undefined) continue;
      failure = next.failure; // its reader has it
      return;
    }
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    await iterator.return?.();
    permit.note(() => factsOf(response));
    permit.leave(failure);
    const end = toEnd(response.content().text);
    const finishReason = response.finish()?.finishReason;
    call.settle({
      ...end,
      usage: response.usage(),
      estimate: () => response.measure({ messages: wire.messages, model: chat.model }),
      ...(finishReason && { finishReason }),
      ...(failure === undefined ? {} : { error: failure }),
    });
  }
}

/** The answer to a forwarded request that costs nothing, in one attempt. */
async function forwardFree(deps: GatewayDeps, given: GatewayCaller, chat: ForwardedChat): Promise<RawAnswer> {
  const caller = await withGuard(deps, given, chat);
  const target = toTarget(deps, await planForwarded(deps, caller, chat), chat.model);
  const attempt = { signal: caller.signal, onCharged: () => undefined, onAttempt: () => undefined };
  return attemptTarget(target, attempt, (context) => requireForwarding(deps, chat.model).send(chat.raw, context));
}

/**
 * The caller, with the guard of a request that goes on as it came: it is read, and what must not pass is refused.
 * @throws AppError `compliance_blocked`, `unavailable`.
 */
export async function withGuard<C extends GatewayCaller>(
  deps: GatewayDeps,
  caller: C,
  { raw, model, requested }: ForwardedChat,
): Promise<C> {
  const guard = await guardFor(deps, caller);
  if (guard === undefined) return caller;
  const guarded = { ...caller, guard };
  const findRouting = async () => ({ requested, model, reason: "named", fallbacks: [] });
  await notingBlocked(deps, guarded, { kind: "chat", isStreamed: false, findRouting }, () => {
    const hasMedia = /"type"\s*:\s*"(?:image|document)"/.test(raw.body);
    if (hasMedia && !guard.takesMedia && guard.has("input", "block")) guard.refuseMedia("messages");
    return takeBy(guard, "input", JSON.parse(raw.body), { isWire: true });
  });
  return guarded;
}

/** The error of an answer that must not pass. */
async function refusalOf(guard: PolicyGuard, { body }: RawAnswer): Promise<AppError | undefined> {
  try {
    await takeBy(guard, "output", tryParseJson(body) ?? body, { isWire: true });
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

/** Holds back the bytes of a stream for as long as a guard holds back what they say. It throws as `makePartsGuard`. */
function holdBack(guard: PolicyGuard) {
  const guarded = makePartsGuard(guard);
  let held: Buffer[] = [];
  return async ({ bytes, parts }: RawEvents): Promise<Buffer> => {
    await guarded(parts);
    held.push(bytes);
    if (guarded.isHolding()) return Buffer.alloc(0);
    const all = held.length === 1 ? bytes : Buffer.concat(held);
    held = [];
    return all;
  };
}

async function nextOf(iterator: AsyncIterator<RawEvents>): Promise<RawEvents | undefined> {
  const { done, value } = await iterator.next();
  return done ? undefined : value;
}

async function askForwarded<T>(
  deps: GatewayDeps,
  caller: GatewayCaller,
  chat: ForwardedChat,
  ask: (modelAttempt: ModelAttempt) => Promise<T>,
): Promise<T> {
  return withFallbacks(deps, await planForwarded(deps, caller, chat), ask);
}

/** @throws AppError `provider_not_configured` where there is no key for the provider of the model. */
export async function planForwarded(
  deps: GatewayDeps,
  { tenantId }: Pick<GatewayCaller, "tenantId">,
  { model, requested }: ForwardedChat,
): Promise<Plan> {
  const keys = await findKeys(deps, tenantId, { providers: [model.provider], required: model.provider });
  if (!isUsable(keys, model)) throw notConfigured(model);
  return { routing: { requested, model, reason: "named", fallbacks: [] }, keys, tenantId };
}

function requireForwarding(deps: GatewayDeps, model: CataloguedModel): Forwarding {
  const forwarding = forwardingOf(deps, model);
  if (forwarding === undefined) throw notConfigured(model);
  return forwarding;
}

/** Counts a forwarded request: by our own form if that holds all of it, else by its text. */
export function toCountedRequest({ model, raw, chat, unreadTokens, maxTokens }: ForwardedChat) {
  const known = chat && toCompletionRequest(chat, model);
  const opaque = { model: model.id, messages: [{ role: "user" as const, content: raw.body }] };
  const wire: CompletionRequest = { ...(known ?? opaque), ...(maxTokens === undefined ? {} : { maxTokens }) };
  const toBounds = () => {
    const readTokens = known ? boundPromptTokens(known, model) : 0;
    const promptTokens = unreadTokens === undefined ? model.contextWindow : readTokens + unreadTokens;
    const bounds = boundChat(model, wire, promptTokens);
    return { ...bounds, leastNanoUsd: bounds.askedNanoUsd }; // its limit is not lowered
  };
  return { known, wire, toBounds };
}

/** The facts about a forwarded request that its record and the budget need. */
function toCounted(caller: GatewayCaller, chat: ForwardedChat) {
  const { model, raw } = chat;
  const { known, wire, toBounds } = toCountedRequest(chat);
  const inputTokens = () => (known ? estimateMessageTokens(known.messages, model) : estimateTokens(raw.body));
  const toEnd = (text: string) => ({
    estimate: () => ({ inputTokens: inputTokens(), outputTokens: estimateTokens(text) }),
    content: () => toContent(wire.messages, text, caller),
  });
  const named = withEndUser(caller, chat.chat ?? {});
  return { wire, toEnd, about: { caller: named, kind: "chat" as const, inputTokens, toBounds } };
}
