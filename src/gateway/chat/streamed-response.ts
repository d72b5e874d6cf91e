import { defined } from "../../lib/defined.ts";
import type { Logprob } from "../logprobs.ts";
import type { AssistantPart, ProvidedPart, ReasoningPart, ToolCall } from "../messages.ts";
import { plausible } from "../money/prices.ts";
import type { Finish } from "../providers/finish-reasons.ts";
import type { StreamPart, Usage } from "../providers/provider.ts";
import { latestUsage } from "../providers/usage.ts";
import { estimateTokens, estimateUsage } from "../tokens.ts";
import type { CachedResponse } from "./outcome.ts";

/** Parts that are gathered before they are joined. */
const GATHERED = 32;

/**
 * A text that grows by a model's tokens. V8 keeps each `+=` as a node of its own beside its part, 60 bytes for a token of 5,
 * until somebody reads the text. Joined now and then, a stream under way holds what it has said, and not ten times that.
 */
export function makeStringBuilder() {
  let text = "";
  let parts: string[] = [];
  const join = () => {
    text += parts.join("");
    parts = [];
  };
  return {
    add(part: string): void {
      if (parts.push(part) >= GATHERED) join();
    },
    text(): string {
      if (parts.length > 0) join();
      return text;
    },
  };
}

/** A part of the content of a response, not of its usage or ids. */
export type ContentDelta =
  | Extract<StreamPart, { type: "text-delta" | "reasoning-delta" | "tool-call-delta" }>
  /** Reasoning that is to come back, where it stands; the end of the stream has it too. */
  | (Omit<ReasoningPart, "type"> & { type: "reasoning-item" });

export type StreamedResponse = ReturnType<typeof makeStreamedResponse>;

/** The content of a stream so far. */
export function makeStreamedResponse() {
  const text = makeStringBuilder();
  const reasoning = makeStringBuilder();
  let usage: Usage | undefined;
  let promptUsage: Usage | undefined;
  let finish: Finish | undefined;
  let about: { responseId?: string | undefined; model?: string | undefined } = {};
  const calls: ToolCall[] = [];
  const reasoned: Reasoned[] = [];
  const logprobs: Logprob[] = [];
  let characters = 0;
  const takeCall = ({ index, id, name = "", argumentsDelta }: Extract<StreamPart, { type: "tool-call-delta" }>) => {
    const known = calls[index];
    if (known === undefined) calls[index] = { id: id ?? `call_${index}`, name, arguments: argumentsDelta };
    else {
      known.name ||= name;
      known.arguments += argumentsDelta;
    }
  };
  return {
    /** Takes the parts of a provider in and returns those that are deltas. */
    take(parts: readonly StreamPart[], provider: string): ContentDelta[] {
      const deltas: ContentDelta[] = [];
      for (const part of parts) {
        if (part.type === "usage") usage = latestUsage(usage, part.usage);
        else if (part.type === "prompt-usage") promptUsage = plausible(part.usage);
        else if (part.type === "end") {
          const { finishReason, providerFinishReason, responseId, model } = part;
          finish = defined({ finishReason, providerFinishReason });
          about = { responseId, model };
        } else if (part.type === "reasoning-item") {
          reasoned.push({ item: part.item, characters: text.text().length, calls: calls.length });
          deltas.push({ ...part, provider });
        } else {
          characters += (part.type === "tool-call-delta" ? part.argumentsDelta : part.text).length;
          if (part.type === "text-delta") {
            text.add(part.text);
            for (const one of part.logprobs ?? []) logprobs.push(one);
          } else if (part.type === "reasoning-delta") reasoning.add(part.text);
          else takeCall(part);
          deltas.push(part);
        }
      }
      return deltas;
    },
    /** How many characters it has, which are kept until it ends. */
    characters: () => characters,
    /** The provider's own count, once it was reported. */
    usage: () => usage,
    /** Usage as far as it is known: the provider's count of the prompt if it has arrived, else an estimate. */
    measure: (asked: Parameters<typeof estimateUsage>[0]): Usage => {
      const measured = estimateUsage(asked, text.text(), calls);
      const outputTokens = measured.outputTokens + estimateTokens(reasoning.text());
      return { ...(promptUsage ?? measured), outputTokens };
    },
    finish: () => finish,
    /** The provider's id of the response, and the model that the provider names. */
    about: () => about,
    /** The turn in its order, where it has reasoning that is to come back. */
    parts: (): ProvidedPart[] | undefined =>
      reasoned.length === 0 ? undefined : inOrder(text.text(), calls, reasoned),
    content: (): Pick<CachedResponse, "text" | "reasoning" | "toolCalls" | "logprobs"> => {
      const toolCalls = calls.filter((call) => call !== undefined);
      const said = { text: text.text(), reasoning: reasoning.text() || undefined, toolCalls };
      return defined({ ...said, logprobs: logprobs.length > 0 ? logprobs : undefined });
    },
  };
}

/** An item of reasoning, with the characters and the calls that came before it. */
type Reasoned = { item: Record<string, unknown>; characters: number; calls: number };

/** A turn's parts, by how much had been said when each item of reasoning came. */
function inOrder(text: string, calls: readonly ToolCall[], reasoned: readonly Reasoned[]): ProvidedPart[] {
  const between = (from: Omit<Reasoned, "item">, to: Omit<Reasoned, "item">): ProvidedPart[] => {
    const said = text.slice(from.characters, to.characters);
    const called = calls.slice(from.calls, to.calls).map((call) => ({ type: "tool-call" as const, ...call }));
    return said === "" ? called : [{ type: "text", text: said }, ...called];
  };
  const start = { characters: 0, calls: 0 };
  const end = { characters: text.length, calls: calls.length };
  const before = reasoned.flatMap((one, place): ProvidedPart[] => [
    ...between(reasoned[place - 1] ?? start, one),
    { type: "reasoning", item: one.item },
  ]);
  return [...before, ...between(reasoned.at(-1) ?? start, end)];
}

/** A whole response as the deltas that a stream would have had. All that it shows of its reasoning comes first. */
export function toDeltas(
  response: Pick<CachedResponse, "text" | "reasoning" | "toolCalls" | "parts" | "logprobs">,
): ContentDelta[] {
  const { text, reasoning, toolCalls, parts, logprobs } = response;
  const calls = toolCalls.map((call) => ({ type: "tool-call" as const, ...call }));
  const turn: readonly AssistantPart[] = parts ?? [...(text === "" ? [] : [{ type: "text" as const, text }]), ...calls];
  let index = 0;
  const toDelta = (part: AssistantPart): ContentDelta => {
    if (part.type === "text") return { type: "text-delta", text: part.text };
    if (part.type === "reasoning") return { ...part, type: "reasoning-item" };
    const { id, name, arguments: argumentsDelta } = part;
    return { type: "tool-call-delta", index: index++, id, name, argumentsDelta };
  };
  const deltas = turn.map(toDelta);
  const first = deltas.find((delta) => delta.type === "text-delta");
  if (first && logprobs) first.logprobs = logprobs;
  return reasoning === undefined ? deltas : [{ type: "reasoning-delta", text: reasoning }, ...deltas];
}
