import { makePace } from "../src/isolation/pace.ts";
import { makeShares } from "../src/isolation/shares.ts";
import type { HandlerInput } from "./route.ts";

/** Large reads of one tenant at once, also where nobody else works: whoever comes next waits for these alone. */
const READS_AT_ONCE = 4;

export type ReadTurns = ReturnType<typeof makeReadTurns>;

/** The turns of large reads; see `inTurn` of HandlerInput. */
export function makeReadTurns() {
  const pace = makePace();
  const places = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: READS_AT_ONCE });
  return {
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
