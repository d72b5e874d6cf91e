import { LRUCache } from "lru-cache";
import { AppError } from "../../lib/errors.ts";
import type { ProviderKey } from "../../tenancy/provider-keys.ts";

/** This many failed calls in a row open the breaker. */
const FAILURES_TO_OPEN = 5;
/** How long it stays open at first, in ms; doubles each time that the probe fails. */
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;

/** Whether an error is a breaker's refusal: there was no call, and another attempt would be refused as well. */
export const isBreakerOpen = (error: AppError) => error.reason === "breaker_open";

/**
 * Keeps calls away from a provider that fails. Closed: calls pass. Open: calls are refused at once until the pause is
 * over. Then one call passes as a probe: its success closes the breaker, its failure opens it for twice as long.
 */
export type Breaker = {
  /** @throws AppError `provider_failed` with `retryAfterMs` while it is open. */
  enter(): Permit;
  isOpen(): boolean;
};

/** A call that the breaker let pass. */
export type Permit = {
  /** A stream has begun: a probe lets others pass. It is no success yet: the next failure opens the breaker again. */
  begin(): void;
  /** Notes how the call ended. Only the first time counts. */
  leave(error?: unknown): void;
};

export function makeBreaker(provider: string, now: () => number = Date.now): Breaker {
  let failures = 0;
  let pauseMs = FIRST_PAUSE_MS;
  let openUntil = 0;
  let probe: Permit | undefined;
  const isOpen = () => openUntil > 0 && (now() < openUntil || probe !== undefined);
  const open = () => {
    openUntil = now() + pauseMs;
    pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
  };
  const settle = (isProbe: boolean, error: unknown) => {
    if (openUntil > 0 && !isProbe) return; // it began before the breaker opened, and says nothing new
    if (error === undefined) {
      failures = 0;
      openUntil = 0;
      pauseMs = FIRST_PAUSE_MS;
    } else if (isProvidersFault(error)) {
      failures++;
      if (isProbe || failures >= FAILURES_TO_OPEN) open();
    }
  };
  const makePermit = (): Permit => {
    let hasLeft = false;
    const permit: Permit = {
      begin: () => {
        if (probe !== permit) return;
        probe = undefined;
        openUntil = 0;
        failures = FAILURES_TO_OPEN - 1;
      },
      leave: (error) => {
        if (hasLeft) return;
        hasLeft = true;
        const isProbe = probe === permit;
        if (isProbe) probe = undefined;
        settle(isProbe, error);
      },
    };
    return permit;
  };
  return {
    isOpen,
    enter: () => {
      if (isOpen()) {
        throw new AppError("provider_failed", `${provider} keeps failing and is not called for a moment.`, {
          details: { code: "breaker_open" },
          reason: "breaker_open",
          retryable: true,
          retryAfterMs: Math.max(openUntil - now(), 100),
        });
      }
      const permit = makePermit();
      if (openUntil > 0) probe = permit;
      return permit;
    },
  };
}

/** Whether an error counts against the provider: not a refused request, a rate limit, or a caller that left. */
function isProvidersFault(error: unknown): boolean {
  return (
    error instanceof AppError &&
    error.retryable &&
    (error.code === "provider_failed" || error.code === "provider_timeout")
  );
}

/** Breakers that are kept, those used last; one that is forgotten starts closed again. */
const MAX_BREAKERS = 10_000;

/** Leaves a permit without a verdict for or against the provider. */
const noVerdict = Symbol("no verdict");

/** A tenant that calls a model, and the key it uses. */
type CallRoute = { provider: string; model: string; key: ProviderKey; tenantId: string };

export type Breakers = ReturnType<typeof makeBreakers>;

export function makeBreakers() {
  const shared = new LRUCache<string, Breaker>({ max: MAX_BREAKERS });
  const routes = new LRUCache<string, Breaker>({ max: MAX_BREAKERS });
  return {
    /**
     * The breaker of a route, made when first needed. What a provider answers can be brought about by what a tenant asks, so
     * it counts for that tenant, key and model alone; that it cannot be reached counts for all who call it with the key.
     */
    of({ provider, model, key, tenantId }: CallRoute): Breaker {
      // A key that was replaced has another revision, and nothing that the old one met speaks against it.
      const keyId = `${provider} ${key.keyId} ${key.revision ?? ""}`;
      const id = `${keyId} ${tenantId} ${model}`;
      const known = routes.get(id);
      if (known !== undefined) return known;
      const reach = shared.get(keyId) ?? makeBreaker(provider);
      shared.set(keyId, reach);
      const made = joinBreakers(reach, makeBreaker(provider));
      routes.set(id, made);
      return made;
    },
    /** How many are open, by provider. */
    countOpen(): Map<string, number> {
      const counts = new Map<string, number>();
      for (const [id, breaker] of routes) {
        const provider = id.slice(0, id.indexOf(" "));
        counts.set(provider, (counts.get(provider) ?? 0) + (breaker.isOpen() ? 1 : 0));
      }
      return counts;
    },
  };
}

/** Open when either is. A failure counts for the one that it concerns. */
function joinBreakers(reach: Breaker, answers: Breaker): Breaker {
  return {
    isOpen: () => reach.isOpen() || answers.isOpen(),
    enter: () => {
      if (reach.isOpen()) return reach.enter(); // throws, before the other one takes this call for its probe
      const answered = answers.enter();
      return joinPermits(reach.enter(), answered);
    },
  };
}

function joinPermits(reached: Permit, answered: Permit): Permit {
  return {
    begin: () => {
      reached.begin();
      answered.begin();
    },
    leave: (error) => {
      const isReached = !(error instanceof AppError && error.reason === "unreachable");
      reached.leave(isReached && isProvidersFault(error) ? undefined : error);
      answered.leave(isReached ? error : noVerdict);
    },
  };
}
