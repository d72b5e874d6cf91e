import { defined } from "../../lib/defined.ts";
import { AppError } from "../../lib/errors.ts";
import { beginSpan, failureOf, type Traced } from "../../observe/tracing.ts";
import type { ProviderKey } from "../../tenancy/provider-keys.ts";
import type { CataloguedModel } from "../catalogue.ts";
import type { GatewayDeps } from "../deps.ts";
import { chats } from "../providers/model.ts";
import { type CallContext, MAX_ANSWER_BYTES, type Provider } from "../providers/provider.ts";
import { isCustom, ownProvider } from "../providers/registry.ts";
import type { Breaker, Permit } from "./breaker.ts";
import { type AnswerFacts, type AskedFacts, toAnswerAttributes, toCallSpan } from "./call-attributes.ts";

/** The keys that a tenant's calls may use right now; a provider that is not among them cannot be called. */
type UsableKeys = ReadonlyMap<string, ProviderKey>;
export type KeyedTenant = { keys: UsableKeys; tenantId: string };

/** The platform's own provider has its key, if any, from the settings. */
const ownKey: ProviderKey = { keyId: `platform-${ownProvider}`, apiKey: "", source: "platform" };

/** Whether a tenant with these keys can call a model. */
export const isUsable = (keys: UsableKeys, { reach, provider }: CataloguedModel) =>
  reach !== undefined || keys.has(provider);

/** Leaves out a key that cannot be read. @throws AppError `provider_key_unreadable` for the `required` provider's. */
export async function findKeys(
  deps: Pick<GatewayDeps, "keys">,
  tenantId: string,
  wanted: { providers: Iterable<string>; required?: string },
): Promise<UsableKeys> {
  const usable = new Map<string, ProviderKey>();
  for (const provider of wanted.providers) {
    try {
      const key = provider === ownProvider ? ownKey : await deps.keys.find(tenantId, provider);
      if (key !== undefined) usable.set(provider, key);
    } catch (error) {
      const isUnreadable = error instanceof AppError && error.code === "provider_key_unreadable";
      if (provider === wanted.required || !isUnreadable) throw error;
    }
  }
  return usable;
}

/** A model with what calling it takes. */
export type Target = {
  model: CataloguedModel;
  provider: Provider;
  key: ProviderKey;
  /** Of the tenant's calls to the provider with the key. */
  breaker: Breaker;
};

/** @throws AppError `provider_not_configured` when there is no key for the model's provider. */
export function toTarget(deps: GatewayDeps, { keys, tenantId }: KeyedTenant, model: CataloguedModel): Target {
  const reached = model.reach?.();
  const provider = reached?.provider ?? deps.providers.get(model.provider);
  const key = reached?.key ?? keys.get(model.provider);
  if (provider === undefined || key === undefined) throw notConfigured(model);
  const breaker = deps.breakerOf({ provider: model.provider, model: model.id, key, tenantId });
  return { model, provider, key, breaker };
}

/** Why a model without a key cannot be called, and what to do. */
export function withoutKey({ id, provider }: CataloguedModel): string {
  if (isCustom(provider))
    return `The key of your provider ${provider} cannot be read: set it again with PUT /ai/providers/custom/${provider}.`;
  const setting = `${provider.toUpperCase()}_API_KEY`;
  return `No key is configured for ${provider}, which serves ${id}: send yours with PUT /ai/providers/${provider}/key, or the operator sets ${setting}.`;
}

/** The error of a model whose provider has no key. */
export function notConfigured(model: CataloguedModel): AppError {
  const details = { provider: model.provider };
  const code = isCustom(model.provider) ? "provider_key_unreadable" : "provider_not_configured";
  return new AppError(code, withoutKey(model), { param: "model", details });
}

type AttemptOptions<T> = Required<Pick<CallContext, "signal" | "onCharged">> & {
  onAttempt(): void;
  /** What the span of the call says of what it asks for, and of what it gives. A stream says that itself, by its permit. */
  about?: AskedFacts | undefined;
  describe?: ((result: T) => AnswerFacts) | undefined;
};

/** A permit with the span of its call, to which the answer's facts are noted before the permit ends it. */
export type AttemptPermit = Permit & { note(toAnswer: () => AnswerFacts): void };

/**
 * One attempt at a target, through its breaker and in a span of its own; `onCharged` is called when it fails and is billed.
 * `attempt` gets the permit because the call of a stream outlives it: that one leaves by itself.
 */
export async function attemptTarget<T>(
  target: Target,
  input: AttemptOptions<T>,
  attempt: (context: CallContext, permit: AttemptPermit) => Promise<T>,
): Promise<T> {
  const entered = target.breaker.enter();
  const { about = {}, describe } = input;
  const traced = beginSpan(() => toCallSpan(target.model, about));
  const permit = tracePermit(entered, traced, target.model);
  input.onAttempt();
  const { apiKey } = target.key;
  const { signal, onCharged } = input;
  try {
    const context = {
      signal,
      onCharged,
      ...(apiKey !== "" && { apiKey }),
      ...(isCustom(target.model.provider) && chats(target.model) && { maxAnswerBytes: answerBytesOf(target.model) }),
    };
    const result = await traced.run(() => attempt(context, permit));
    if (describe !== undefined) permit.note(() => describe(result));
    if (about.isStream === true) permit.begin();
    else permit.leave();
    return result;
  } catch (error) {
    permit.leave(error);
    throw toCallersError(error, target);
  }
}

/**
 * What an answer of a custom provider may have, in bytes: so much for each token that its model writes at most, with room for
 * escapes and what is around them, up to a bound, since a tenant says itself how many tokens that are.
 */
const BYTES_A_TOKEN = 32;
const BYTES_AROUND = 256 << 10;

const answerBytesOf = ({ maxOutput }: CataloguedModel) =>
  Math.min(BYTES_AROUND + BYTES_A_TOKEN * maxOutput, MAX_ANSWER_BYTES);

/** A permit whose end is the span's. */
function tracePermit({ begin, leave }: Permit, traced: Traced, model: CataloguedModel): AttemptPermit {
  return {
    begin,
    note: (toAnswer) => traced.add(() => toAnswerAttributes(model, toAnswer())),
    leave: (error) => {
      leave(error);
      traced.end(error === undefined ? {} : { failure: failureOf(error) });
    },
  };
}

/**
 * Says whose key a provider refused, and which provider limits its callers: they can replace the tenant's key; the platform's is
 * our own failure.
 */
function toCallersError(error: unknown, { key, model }: Target): unknown {
  if (!(error instanceof AppError)) return error;
  const { provider } = model;
  if (error.code === "provider_rate_limited") {
    const { code, details, reason, retryable, retryAfterMs, cause } = error;
    const kept = { details, reason, retryable, cause, ...defined({ retryAfterMs }) };
    return new AppError(code, `${provider} limits the rate of requests.`, kept);
  }
  if (error.code !== "provider_key_refused") return error;
  if (key.source === "platform") {
    const { details, reason } = error;
    return new AppError("provider_failed", `${provider} refused the platform's key.`, {
      details,
      reason,
      cause: error,
    });
  }
  const details = { provider, status: 401 };
  const message = `${provider} refused the key that you set for it.`;
  return new AppError("provider_key_refused", message, { details, cause: error });
}
