import { isChild, serveRequests } from "../isolation/serve-requests.ts";
import { AppError } from "../lib/errors.ts";
import { type Evaluation, evaluate, type Place } from "./evaluate.ts";
import { makeParsedTexts } from "./templates.ts";
import { isOutOfTime, withOwnTimeout } from "./with-timeout.ts";

/** What one work may add to the heap, in bytes, for the next one to find enough of it. */
const MAX_GROWTH = 32 << 20;
/** Attempts while others have the processor. The time of all of them is less than that after which a child is killed. */
const ATTEMPTS = 2;

export type ChildWork = { work: Evaluation; limitMs: number };
/** The answer, or the problem of the work. A worn-out child must not be used again. */
export type ChildResponse = { answer: unknown; problem?: Problem; isWorn: boolean };
type Problem = { message: string; param: string; details?: unknown };

if (isChild()) {
  const parsed = makeParsedTexts();
  serveRequests<ChildWork, ChildResponse>(({ work, limitMs }, send) => {
    const place: Place = { parsed, allows: "anything", at: "", left: work };
    const before = process.memoryUsage().heapUsed;
    const isWorn = () => process.memoryUsage().heapUsed - before > MAX_GROWTH;
    try {
      send({ answer: withOwnTimeout(limitMs, ATTEMPTS, () => evaluate(work, place)), isWorn: isWorn() });
    } catch (error) {
      const isLate = isOutOfTime(error);
      const late = { message: `It takes longer than ${limitMs} ms.`, param: place.at };
      send({ answer: undefined, problem: isLate ? late : toProblem(error, place), isWorn: isWorn() });
    }
  });
}

/** @throws errors that are not the work's fault. */
function toProblem(error: unknown, { at }: Place): Problem {
  if (!(error instanceof AppError) || error.code !== "invalid_request") throw error;
  const { message, param = at, details } = error;
  return { message, param, details };
}
