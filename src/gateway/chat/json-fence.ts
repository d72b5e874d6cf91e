import type { Logprob } from "../logprobs.ts";
import type { StreamPart } from "../providers/provider.ts";

/** The start of a fence, as far as it may have come. */
const opening = /^\s*```[ \t]*(?:[A-Za-z0-9_-]*)[ \t]*\r?\n/;
const maybeOpening = /^\s*(?:`{0,3}|```[ \t]*[A-Za-z0-9_-]*[ \t]*\r?)$/;
/** The end of one, with the blanks around it. */
const closing = /\s*```\s*$/;
/** What may become the end of one. */
const maybeClosing = /(?:\s*(?:`{1,3})\s*|\s+)$/;
/** An answer that begins with more blanks is none that a fence is looked for in, in characters. */
const LONGEST_OPENING = 100;

/** The JSON of an answer that a model put into a fence of Markdown; other texts as they are. */
export function withoutFence(text: string): string {
  return opening.test(text) && closing.test(text) ? text.replace(opening, "").replace(closing, "") : text;
}

/** Takes the fence off a text that comes in pieces. What may belong to the fence waits until that is clear. */
export function makeFenceFilter() {
  let isFenced: boolean | undefined;
  let held = "";
  const take = (piece: string): string => {
    if (isFenced === false) return piece;
    held += piece;
    if (isFenced === undefined) {
      if (opening.test(held)) {
        isFenced = true;
        held = held.replace(opening, "");
      } else if (held.length > LONGEST_OPENING || !maybeOpening.test(held)) isFenced = false;
      else return "";
    }
    const kept = isFenced ? (maybeClosing.exec(held)?.index ?? held.length) : held.length;
    const given = held.slice(0, kept);
    held = held.slice(kept);
    return given;
  };
  const waiting: Logprob[] = [];
  const toDelta = (text: string): StreamPart[] => {
    if (text === "") return [];
    return [{ type: "text-delta", text, ...(waiting.length > 0 && { logprobs: waiting.splice(0) }) }];
  };
  const rest = () => (isFenced ? held.replace(closing, "") : held);
  return (parts: StreamPart[]): StreamPart[] =>
    parts.flatMap((part): StreamPart[] => {
      if (part.type === "end") return [...toDelta(rest()), part];
      if (part.type !== "text-delta") return [part];
      for (const one of part.logprobs ?? []) waiting.push(one);
      return toDelta(take(part.text));
    });
}
