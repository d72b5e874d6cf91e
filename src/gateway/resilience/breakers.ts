import { LRUCache } from "lru-cache";
import { AppError } from "../../errors.ts";
import type { ProviderKey } from "../../tenancy/provider-keys.ts";
import { type Breaker, isProvidersFault, makeBreaker, type Permit } from "./breaker.ts";

/** Breakers that are kept, those used last; one that is forgotten starts closed again. */
const MAX_BREAKERS = 10_000;

/** Leaves a permit without a verdict for or against the provider. */
const noVerdict = Symbol("no verdict");

/** A tenant that calls a model, and the key it uses. */
export type CallRoute = { provider: string; model: string; key: ProviderKey; tenantId: string };

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
