import { LRUCache } from "lru-cache";
import { makePace } from "../src/isolation/pace.ts";
import { makeShares } from "../src/isolation/shares.ts";
import type { HandlerInput } from "./route.ts";

/** Large reads of one tenant at once, also where nobody else works: whoever comes next waits for these alone. */
const READS_AT_ONCE = 4;

/** Routes of tenants whose last answer was large, so many of them, and for how long that counts, in ms. */
const REMEMBERED = { max: 10_000, ttl: 10_000 };

export type ReadTurns = ReturnType<typeof makeReadTurns>;

/**
 * The turns of large reads; see `inTurn` of HandlerInput. How large a record is may be known only once it was read: after a
 * large answer further reads by the same tenant on the same route are in turn as a whole.
 */
export function makeReadTurns() {
  const pace = makePace();
  const places = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: READS_AT_ONCE });
  const large = new LRUCache<string, true>(REMEMBERED);
  const nameOf = (tenant: string, path: string) => `${tenant}\n${path}`;
  return {
    /** Notes that an answer on a route was large. */
    wasLarge: (tenant: string, path: string) => void large.set(nameOf(tenant, path), true),
    /** Runs the handler of a read, in turn if the last answer on its route was large. Its own large reads are then part of that. */
    async handle<T>(
      { tenant, path }: { tenant: string; path: string },
      input: HandlerInput,
      handler: (input: HandlerInput) => Promise<T>,
    ): Promise<T> {
      if (!large.has(nameOf(tenant, path))) return handler(input);
      let isInTurn = true;
      const inTurn: HandlerInput["inTurn"] = (read) => (isInTurn ? read() : input.inTurn(read));
      return input.inTurn(() => handler({ ...input, inTurn }).finally(() => (isInTurn = false)));
    },
    /** Notes that the tenant works here. */
    begins: pace.begins,
    of: (tenant: string, signal: AbortSignal): HandlerInput["inTurn"] =>
      async function inTurn(read) {
        const leave = await places.enter(tenant, signal);
        try {
          return await pace.share(tenant, signal, read);
        } finally {
          leave();
        }
      },
  };
}
