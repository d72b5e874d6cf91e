import { estimateTokens, estimateUsage } from "../count-tokens.ts";
import type { FinishReason, Message, StreamPart, ToolCall, Usage } from "../providers/provider.ts";
import { makeStringBuilder } from "./string-builder.ts";

/** A part of an answer, as opposed to what is told about it. */
export type AnswerDelta = Extract<StreamPart, { type: "text-delta" | "reasoning-delta" | "tool-call-delta" }>;

/** What a stream has said so far. */
export type Answer = {
  /** Takes parts in and returns those that are deltas. */
  take(parts: readonly StreamPart[]): AnswerDelta[];
  hasBegun(): boolean;
  /** The provider's own count, once it told. */
  usage(): Usage | undefined;
  /** What was used as far as is known: the provider's count of the prompt where it told that ahead, else an estimate. */
  measure(messages: readonly Message[]): Usage;
  finishReason(): FinishReason | undefined;
  content(): { text: string; toolCalls: ToolCall[] };
};

export function makeAnswer(): Answer {
  const text = makeStringBuilder();
  const reasoning = makeStringBuilder();
  let hasBegun = false;
  let usage: Usage | undefined;
  let promptUsage: Usage | undefined;
  let finishReason: FinishReason | undefined;
  const calls: ToolCall[] = [];
  const takeCall = (part: Extract<StreamPart, { type: "tool-call-delta" }>) => {
    const known = calls[part.index];
    if (known === undefined) {
      calls[part.index] = {
        id: part.id ?? `call_${part.index}`,
        name: part.name ?? "",
        arguments: part.argumentsDelta,
      };
    } else {
      known.name ||= part.name ?? "";
      known.arguments += part.argumentsDelta;
    }
  };
  return {
    take(parts) {
      const deltas: AnswerDelta[] = [];
      for (const part of parts) {
        if (part.type === "usage") usage = part.usage;
        else if (part.type === "prompt-usage") promptUsage = part.usage;
        else if (part.type === "end") finishReason = part.finishReason;
        else {
          hasBegun = true;
          if (part.type === "text-delta") text.add(part.text);
          else if (part.type === "reasoning-delta") reasoning.add(part.text);
          else takeCall(part);
          deltas.push(part);
        }
      }
      return deltas;
    },
    hasBegun: () => hasBegun,
    usage: () => usage,
    measure: (messages) => {
      const measured = estimateUsage(messages, text.text(), calls);
      const outputTokens = measured.outputTokens + estimateTokens(reasoning.text());
      return { ...(promptUsage ?? measured), outputTokens };
    },
    finishReason: () => finishReason,
    content: () => ({ text: text.text(), toolCalls: calls.filter((call) => call !== undefined) }),
  };
}
