import { AsyncLocalStorage } from "node:async_hooks";
import { AppError } from "../lib/errors.ts";

/** What our calls to other servers say: how many calls of this service stand behind them, theirs included. */
export const DEPTH_HEADER = "x-svc-depth";

/** Calls of this service inside of each other at most, as many as agents that call agents. */
const MAX_DEPTH = 3;

const depths = new AsyncLocalStorage<number>();

/** How many calls of this service stand behind what runs now; 0 for what a client asked for. */
export const currentDepth = (): number => depths.getStore() ?? 0;

/** Does work as a part of a call at a depth. */
export const atDepth = <T>(depth: number, work: () => T): T => (depth === 0 ? work() : depths.run(depth, work));

/** The header that a call to another server has: that server may be this service, or call it. */
export const toDepthHeader = (): Record<string, string> => ({ [DEPTH_HEADER]: String(currentDepth() + 1) });

/**
 * The depth of a call that arrived, by its header: 0 without one, or where it is no number. Nobody else's calls depend on it, so
 * that a forged one refuses its sender alone.
 */
export const readDepth = (header: string): number => (/^\d{1,9}$/.test(header) ? Number(header) : 0);

/** @throws AppError `call_too_deep` for what runs inside of too many calls of this service. */
export function assertShallow(): void {
  if (currentDepth() <= MAX_DEPTH) return;
  const message = `This call is inside of ${currentDepth()} others of this service that led to it; ${MAX_DEPTH} may be.`;
  throw new AppError("call_too_deep", message, { param: DEPTH_HEADER });
}
