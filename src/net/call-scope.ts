import { AsyncLocalStorage } from "node:async_hooks";
import type { GuardCount } from "../guards/rules.ts";
import { addCounts } from "../guards/rules.ts";
import { AppError } from "../lib/errors.ts";
import { type IdKind, newId } from "../lib/ids.ts";

/** What our calls to other servers say: how many calls of this service stand behind them, theirs included. */
export const DEPTH_HEADER = "x-svc-depth";

/** Calls of this service inside of each other at most, as many as agents that call agents. */
const MAX_DEPTH = 3;

/**
 * The request that work is done for: its id, and how many calls of this service stand behind it. `nesting`: inside of how many
 * jobs the work is done, its own included. `found` is what guards have found in its texts, of which `onFound` is told; `onRefused` is
 * told of what the guards of regulated profiles refuse.
 */
type CallScope = {
  requestId: string | undefined;
  depth: number;
  nesting?: number;
  found?: GuardCount[];
  onFound?(found: readonly GuardCount[]): void;
  onRefused?: ((counts: readonly GuardCount[]) => void) | undefined;
  /** Of a call with an `Idempotency-Key`: the ids of what it makes. */
  idOf?: IdOf;
};

/** The id of what a call makes, and whether an earlier attempt at the call may have made it. */
type MadeId = { id: string; mayBeThere: boolean };
type IdOf = (kind: IdKind) => MadeId;

const scopes = new AsyncLocalStorage<CallScope>();

/** How many calls of this service stand behind what runs now; 0 for what a client asked for. */
export const currentDepth = (): number => scopes.getStore()?.depth ?? 0;

/** Inside of how many jobs what runs now is done; 0 outside of any. */
export const currentNesting = (): number => scopes.getStore()?.nesting ?? 0;

/** The id of the request that what runs now is done for, also in the jobs that it submitted; undefined for what nobody asked for. */
export const currentRequestId = (): string | undefined => scopes.getStore()?.requestId;

/** What guards have found so far in what runs now; undefined for nothing. */
export const currentFound = (): GuardCount[] | undefined => scopes.getStore()?.found?.map((one) => ({ ...one }));

/** Notes what guards have found in what runs now. */
export function noteFound(counts: readonly GuardCount[]): void {
  const scope = scopes.getStore();
  if (scope === undefined) return;
  scope.found ??= [];
  addCounts(scope.found, counts);
  scope.onFound?.(scope.found);
}

/** Notes what a regulated profile refuses in what runs now. */
export const noteRefused = (counts: readonly GuardCount[]): void => scopes.getStore()?.onRefused?.(counts);

/** The id of a record that what runs now makes: the same at each attempt at a call, so that the call makes it once. */
export const idOfCall = (kind: IdKind): MadeId =>
  scopes.getStore()?.idOf?.(kind) ?? { id: newId(kind), mayBeThere: false };

/** Gives what runs now, which is a call as a whole, the ids of what it makes. */
export function setIdsOfCall(idOf: IdOf): void {
  const scope = scopes.getStore();
  if (scope) scope.idOf = idOf;
}

/** Does a piece of work whose findings are its own, and not those of what it is a part of. */
export const inOwnPart = <T>(work: () => T): T =>
  scopes.run(
    {
      requestId: currentRequestId(),
      depth: currentDepth(),
      nesting: currentNesting(),
      onRefused: scopes.getStore()?.onRefused,
    },
    work,
  );

/** Does work as a part of a request. */
export const inCall = <T>(scope: CallScope, work: () => T): T => scopes.run(scope, work);

/** The header that a call to another server has: that server may be this service, or call it. */
export const toDepthHeader = (): Record<string, string> => ({ [DEPTH_HEADER]: String(currentDepth() + 1) });

/**
 * The scope of a request that arrived, with its depth by its header: 0 without one, or where it is no number. Nobody else's
 * calls depend on it, so that a forged one refuses its sender alone.
 */
export const toScope = (requestId: string, depth: string): CallScope => ({
  requestId,
  depth: /^\d{1,9}$/.test(depth) ? Number(depth) : 0,
});

/** @throws AppError `call_too_deep` for what runs inside of too many calls of this service. */
export function assertShallow(): void {
  if (currentDepth() <= MAX_DEPTH) return;
  const message = `This call is inside of ${currentDepth()} others of this service that led to it; ${MAX_DEPTH} may be.`;
  throw new AppError("call_too_deep", message, { param: DEPTH_HEADER });
}
