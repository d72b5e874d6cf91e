import type { AssistantPart, Message, ToolCall } from "../gateway/messages.ts";

/** Longest JSON of a turn that is kept with its reasoning, in characters; beyond it the turn goes on without. */
const MAX_PARTS = 2_000_000;
/** Ids of calls that every provider takes. */
const wireId = /^[\w-]{1,64}$/;
/** Stands for a turn whose reasoning was not kept. */
const NOT_KEPT = "[]";

/** The turns of one run whose reasoning goes back to its provider while the run calls tools. */
export function makeReasoning() {
  /** By the id of a turn's first call. */
  const turns = new Map<string, readonly AssistantPart[]>();
  return {
    /** Takes a turn's recorded parts in. */
    take(json: string, firstCallId: string): void {
      // Anthropic refuses reasoning when some between has been left out, so that none before a gap goes back.
      if (json === NOT_KEPT) turns.clear();
      else turns.set(firstCallId, JSON.parse(json));
    },
    /** A message of the conversation, with the reasoning of its turn. */
    addTo(message: Message): Message {
      if (message.role !== "assistant") return message;
      const parts = turns.get(message.toolCalls?.[0]?.id ?? "");
      return parts === undefined ? message : { ...message, parts };
    },
  };
}

/**
 * A turn that calls tools as it is recorded where it has reasoning: JSON of its parts, with which its calls keep their ids; or
 * a mark, when it cannot go back as it was. `isKnown` reports whether an id is that of an earlier call, and `most` is how many calls are made.
 */
export function toRecordedParts(
  { parts, toolCalls }: { parts?: readonly AssistantPart[]; toolCalls: readonly ToolCall[] },
  { isKnown, most }: { isKnown(callId: string): boolean; most: number },
): { parts?: string; areIdsKept: boolean } {
  if (parts === undefined) return { areIdsKept: false };
  const ids = new Set(toolCalls.map(({ id }) => id).filter((id) => wireId.test(id) && !isKnown(id)));
  const json = JSON.stringify(parts);
  const isKept = ids.size === toolCalls.length && ids.size <= most && json.length <= MAX_PARTS;
  return { parts: isKept ? json : NOT_KEPT, areIdsKept: isKept };
}
