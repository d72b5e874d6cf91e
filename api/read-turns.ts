import { LRUCache } from "lru-cache";
import type { Presence } from "../src/isolation/pace.ts";
import { makePace } from "../src/isolation/pace.ts";
import { makeShares } from "../src/isolation/shares.ts";
import { LARGE_REPLY_BYTES } from "./context.ts";
import { type AnyRoute, type HandlerInput, isStreamed, type Reply } from "./route.ts";

/** Large reads of one tenant at once, also where nobody else works: whoever comes next waits for these alone. */
const READS_AT_ONCE = 4;
/** Reads of one tenant on one route at once whose size is not known yet, while other tenants work. */
const UNKNOWN_AT_ONCE = 2;

/** Routes of tenants whose last answer was large, so many of them, and for how long that counts, in ms. */
const REMEMBERED = { max: 10_000, ttl: 60_000 };

export type ReadTurns = ReturnType<typeof makeReadTurns>;

/**
 * The turns of large reads; see `inTurn` of HandlerInput. How large a record is may be known only once it was read: few of a
 * tenant's reads on a route are under way until one has ended, and after a large answer they are in turn as a whole.
 */
export function makeReadTurns(presence: Presence) {
  const [pace, screens] = [makePace(undefined, presence), makePace(undefined, presence)];
  const places = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: READS_AT_ONCE });
  const unknown = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: UNKNOWN_AT_ONCE });
  const large = new LRUCache<string, true>(REMEMBERED);
  return {
    /** Runs the handler of a read, in turn if the last answer on its route was large. Its own large reads are then part of that. */
    async handle(
      { tenant, path }: { tenant: string; path: string },
      input: HandlerInput,
      handler: (input: HandlerInput) => Promise<Reply>,
    ): Promise<Reply> {
      const name = `${tenant}\n${path}`;
      const read = async () => {
        const reply = withText(await handler(input));
        if ("text" in reply && (reply.text?.length ?? 0) > LARGE_REPLY_BYTES) large.set(name, true);
        return reply;
      };
      if (large.has(name)) return input.inTurn(read);
      const leave = pace.hasOthers(tenant) ? await unknown.enter(name, input.signal) : undefined;
      try {
        return await (large.has(name) ? input.inTurn(read) : read());
      } finally {
        leave?.();
      }
    },
    /** Screens an input in turns of their own: guards take some 20 ms for a long one. @throws what `screen` throws. */
    async screen(tenant: string, input: HandlerInput, route: Pick<AnyRoute, "screen">): Promise<void> {
      await screens.share(tenant, input.signal, async () => route.screen?.(input as HandlerInput<never, never, never>));
    },
    /** The turns of one request. What it reads in its turn needs no other one. */
    of(tenant: string, signal: AbortSignal): HandlerInput["inTurn"] {
      let isInTurn = false;
      return async function inTurn(read) {
        if (isInTurn) return read();
        const leave = await places.enter(tenant, signal);
        try {
          return await pace.share(tenant, signal, async () => {
            isInTurn = true;
            return read().finally(() => (isInTurn = false));
          });
        } finally {
          leave();
        }
      };
    },
  };
}

/** The reply with its JSON, which is made in the turn of the read, since it costs as much. */
function withText(reply: Reply): Reply {
  if (isStreamed(reply) || reply.text !== undefined || Buffer.isBuffer(reply.body)) return reply;
  return typeof reply.body === "object" && reply.body !== null ? { ...reply, text: JSON.stringify(reply.body) } : reply;
}
