import { AppError } from "../../errors.ts";
import type { ProviderKey } from "../../tenancy/provider-keys.ts";
import { type Breaker, isProvidersFault, makeBreaker, type Permit } from "./breaker.ts";

/** Breakers that are kept; one that is forgotten starts closed again. */
const MAX_BREAKERS = 10_000;

/** Leaves a permit without a word for or against the provider. */
const noVerdict = Symbol("no verdict");

/** Who calls whom, and with which key. */
export type CallRoute = { provider: string; model: string; key: ProviderKey; tenantId: string };

export type Breakers = {
  /**
   * The breaker of a route, made when first needed. What a provider answers can be brought about by what a tenant asks, so
   * it counts for that tenant, key and model alone; that it cannot be reached counts for all who call it with the key.
   */
  of(route: CallRoute): Breaker;
  /** How many are open, by provider. */
  countOpen(): Map<string, number>;
};

export function makeBreakers(): Breakers {
  const shared = makeKept((provider) => makeBreaker(provider));
  const routes = makeKept((provider, reach: Breaker) => joinBreakers(reach, makeBreaker(provider)));
  return {
    of({ provider, model, key, tenantId }) {
      // A key that was replaced has another revision, and nothing that the old one met speaks against it.
      const keyId = `${provider} ${key.keyId} ${key.revision ?? ""}`;
      return routes.find(`${keyId} ${tenantId} ${model}`, provider, shared.find(keyId, provider, undefined));
    },
    countOpen: () => routes.countOpen(),
  };
}

/** Breakers by id; ids begin with their provider. */
function makeKept<Input>(make: (provider: string, input: Input) => Breaker) {
  const breakers = new Map<string, Breaker>();
  return {
    find(id: string, provider: string, input: Input): Breaker {
      const known = breakers.get(id);
      if (known !== undefined) return known;
      const [oldest] = breakers.keys();
      if (breakers.size >= MAX_BREAKERS && oldest !== undefined) breakers.delete(oldest);
      const made = make(provider, input);
      breakers.set(id, made);
      return made;
    },
    countOpen() {
      const counts = new Map<string, number>();
      for (const [id, breaker] of breakers) {
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
