import { AppError } from "../../lib/errors.ts";

/** Waits for the turn to read a large answer, and returns how it is given up. @throws the signal's reason. */
export type EnterLarge = (signal: AbortSignal) => Promise<() => void>;

/** In its turn an answer must come within this time, in ms: others of its owner wait. */
const LARGE_MS = 30_000;

type Pausable = { pause(): void; resume(): void; fail(error: Error): void };

/** Pauses an answer until it has its turn. `end` gives that up, once what waits for the answer has parsed it. */
export function takeTurn(exchange: Pausable, signal: AbortSignal, enter: EnterLarge): { end(): void } {
  let leave: (() => void) | undefined;
  let isOver = false;
  let limit: NodeJS.Timeout | undefined;
  exchange.pause();
  const begin = (given: () => void) => {
    if (isOver) return given();
    leave = given;
    const error = new AppError("provider_timeout", "The provider's answer is large, and came too slowly.");
    limit = setTimeout(() => exchange.fail(error), LARGE_MS);
    exchange.resume();
  };
  enter(signal).then(begin, () => undefined); // the same signal ends the exchange
  return {
    end: () => {
      isOver = true;
      clearTimeout(limit);
      if (leave) setImmediate(leave);
    },
  };
}
