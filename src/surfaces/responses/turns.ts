import type { AnsweredChat, ChatEvent } from "../../gateway/chat/steps.ts";
import type { StreamEnd } from "../../gateway/chat/stream.ts";
import { toDeltas } from "../../gateway/chat/streamed-response.ts";
import { addUsage } from "../../gateway/money/failed-attempts.ts";
import type { Usage } from "../../gateway/providers/provider.ts";

/** A whole turn as the events that a stream would have had. */
export function toEvents({ text, reasoning, steps: _steps, ...outcome }: AnsweredChat): ChatEvent[] {
  const deltas = toDeltas({ ...outcome, text, ...(reasoning === undefined ? {} : { reasoning }) });
  return [...deltas, { ...outcome, type: "end" }];
}

/** The end of a response of several turns: it used, and cost, what all of them did. */
export function sumTurns(last: StreamEnd, earlier: readonly { usage: Usage; costUsd: number }[]): StreamEnd {
  const usage = earlier.reduce((sum, turn) => addUsage(sum, turn.usage), last.usage);
  const costUsd = earlier.reduce((sum, turn) => sum + turn.costUsd, last.costUsd);
  return { ...last, usage, costUsd, cached: last.cached && earlier.length === 0 };
}
