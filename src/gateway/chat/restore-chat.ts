import type { PolicyGuard } from "../../tenancy/guard-policies.ts";
import { mapCall, mapPart, type Visit } from "./guard-chat.ts";
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
  const lanes = new Map<string, { lane: ReturnType<PolicyGuard["restoring"]>; toEvent(text: string): StreamEvent }>();
  const take = (name: string, text: string, isJson: boolean, toEvent: (text: string) => StreamEvent): StreamEvent[] => {
    const known = lanes.get(name) ?? { lane: guard.restoring(isJson), toEvent };
    lanes.set(name, known);
    const said = known.lane.push(text);
    return said === "" ? [] : [toEvent(said)];
  };
  const flush = (but?: string) =>
    [...lanes].flatMap(([name, { lane, toEvent }]) => {
      const rest = name === but ? "" : lane.end();
      return rest === "" ? [] : [toEvent(rest)];
    });
  const restoreOne = (event: StreamEvent): StreamEvent[] => {
    if (event.type === "text-delta" || event.type === "reasoning-delta") {
      const { type } = event;
      return [...flush(type), ...take(type, event.text, false, (text) => ({ type, text }))];
    }
    if (event.type === "tool-call-delta") {
      const { index, argumentsDelta, ...named } = event;
      const name = `call ${index}`;
      const rest = take(name, argumentsDelta, true, (text) => ({
        type: "tool-call-delta",
        index,
        argumentsDelta: text,
      }));
      const isNamed = named.id !== undefined || named.name !== undefined;
      return [...flush(name), ...(isNamed ? [{ ...event, argumentsDelta: "" }] : []), ...rest];
    }
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
