import type { PolicyGuard } from "../../tenancy/guard-policies.ts";
import { isDelta, makeLanes, mapCall, mapPart, type Visit } from "./guard-chat.ts";
import type { ChatOutcome } from "./outcome.ts";
import type { StreamEvent } from "./stream.ts";

/** An outcome with the values of the request in the place of their marks. */
export function restoreOutcome(guard: PolicyGuard, outcome: ChatOutcome): ChatOutcome {
  const { text, reasoning, toolCalls, parts } = outcome;
  const visit: Visit = ({ text: marked, isJson }) => guard.restore(marked, isJson);
  return {
    ...outcome,
    text: guard.restore(text),
    ...(reasoning === undefined ? {} : { reasoning: guard.restore(reasoning) }),
    toolCalls: toolCalls.map((call) => mapCall(call, "", visit)),
    ...(parts && { parts: parts.map((part) => mapPart(part, "output", "", visit)) }),
  };
}

/** The same for a stream. */
export async function* restoreStream(
  guard: PolicyGuard,
  batches: AsyncIterable<StreamEvent[]>,
): AsyncGenerator<StreamEvent[]> {
  const { take, flush } = makeLanes((type) => guard.restoring(type === "tool-call-delta"));
  const restoreOne = (event: StreamEvent): StreamEvent[] => {
    if (isDelta(event)) return take(event);
    if (event.type !== "end") return [...flush(), event];
    const visit: Visit = ({ text, isJson }) => guard.restore(text, isJson);
    const { toolCalls, parts } = event;
    const restored = {
      toolCalls: toolCalls.map((call) => mapCall(call, "", visit)),
      ...(parts && { parts: parts.map((part) => mapPart(part, "output", "", visit)) }),
    };
    return [...flush(), { ...event, ...restored }];
  };
  for await (const batch of batches) yield batch.flatMap(restoreOne);
}
