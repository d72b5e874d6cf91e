import { AppError } from "../../src/lib/errors.ts";
import type { Rate, RateLimits } from "../../src/tenancy/limits.ts";
import { type Caller, rootOf } from "../../src/tenancy/roles.ts";
import type { Tenancy } from "../../src/tenancy/tenancy.ts";
import type { ApiContext } from "../context.ts";

/**
 * Takes one request from the rate of the caller's root and one of its places for concurrent requests, until the response is
 * over. A widget key is held to its visitor's limits and to the share of all the root's widget keys first, so that what these
 * refuse takes nothing from the root. Says in `RateLimit` (draft-ietf-httpapi-ratelimit-headers) what is left
 * of the first of these limits, or of the one that refuses.
 * @throws AppError `too_many_concurrent`, or `rate_limited` to a request that holds its place, with the time to wait.
 */
export async function admit(
  ctx: ApiContext,
  { limits, widgetLimits }: Pick<Tenancy, "limits" | "widgetLimits">,
  { caller, client }: { caller: Caller; client(): string },
): Promise<void> {
  const root = rootOf(caller);
  if (caller.widget) {
    await take(ctx, widgetLimits.visitor, `${caller.keyId}@${client()}`);
    await take(ctx, widgetLimits.share, `${root}:widgets`);
  }
  await take(ctx, limits, root);
}

async function take(ctx: ApiContext, limits: RateLimits, name: string): Promise<void> {
  const rate = await limits.take(name);
  const { headers } = ctx.state;
  if (headers.ratelimit === undefined || !rate.isAllowed) {
    headers["ratelimit-policy"] = limits.policy;
    headers.ratelimit = `"requests";r=${rate.remaining};t=${rate.resetSeconds}`;
  }
  ctx.res.once("close", enter(limits, name));
  rejectOverRate(rate);
}

/** The same for one of several calls that came in one request; the result releases its place. @throws as `admit`. */
export async function admitCall(limits: RateLimits, caller: Caller): Promise<() => void> {
  rejectOverRate(await limits.take(rootOf(caller)));
  return enter(limits, rootOf(caller));
}

function rejectOverRate({ isAllowed, retryAfterMs }: Rate): void {
  if (isAllowed) return;
  const message = "Too many requests; wait before the next one.";
  throw new AppError("rate_limited", message, { retryable: true, retryAfterMs });
}

function enter(limits: RateLimits, name: string): () => void {
  const release = limits.enter(name);
  if (release !== null) return release;
  const message = "Too many requests at once; wait until some of yours have ended.";
  throw new AppError("too_many_concurrent", message, { retryable: true, retryAfterMs: 1_000 });
}

/** Calls that have their turn at a time, and the time to the next ones, in ms: 800 calls a second. */
const CALLS_A_TURN = 8;
const TURN_MS = 10;
/** Calls that wait, at most: each holds its head in memory. */
const MAX_WAITING = 1_000;

export type TakeTurn = ReturnType<typeof makeTurns>;

/**
 * Makes a queue for calls that anybody can make and that no rate limits. Few of them have their turn at a time, so that those
 * of tenants need not wait until a flood is answered; as long as there are few, none waits. The result is false for a call
 * that there is no room for, because too many wait.
 */
export function makeTurns({ callsATurn = CALLS_A_TURN, turnMs = TURN_MS, maxWaiting = MAX_WAITING } = {}) {
  const waiting: ((hasTurn: boolean) => void)[] = [];
  let left = callsATurn;
  let turns: NodeJS.Timeout | undefined;
  const beginNext = () => {
    const next = waiting.splice(0, callsATurn);
    left = callsATurn - next.length;
    for (const begin of next) begin(true);
    if (next.length > 0) return;
    clearInterval(turns);
    turns = undefined;
  };
  return async function takeTurn(): Promise<boolean> {
    turns ??= setInterval(beginNext, turnMs).unref();
    if (left > 0) {
      left -= 1;
      return true;
    }
    if (waiting.length >= maxWaiting) return false;
    return new Promise((resolve) => waiting.push(resolve));
  };
}
