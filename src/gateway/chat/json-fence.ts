import type { Logprob } from "../logprobs.ts";
import type { StreamPart } from "../providers/provider.ts";

/** The start of a fence, possibly incomplete. */
const opening = /^\s*```[ \t]*(?:[A-Za-z0-9_-]*)[ \t]*\r?\n/;
const maybeOpening = /^\s*(?:`{0,3}|```[ \t]*[A-Za-z0-9_-]*[ \t]*\r?)$/;
/** The end of a fence, with the blanks around it. */
const closing = /\s*```\s*$/;
/** A text that may become the end of a fence. */
const maybeClosing = /(?:\s*(?:`{1,3})\s*|\s+)$/;
/** No fence is looked for in an answer that starts with more blanks than this, in characters. */
const LONGEST_OPENING = 100;

/** Removes a Markdown fence around the JSON of an answer. Other texts stay unchanged. */
export function withoutFence(text: string): string {
  return opening.test(text) && closing.test(text) ? text.replace(opening, "").replace(closing, "") : text;
}

/**
 * Removes the fence from a text that comes in pieces. Characters that may belong to a fence are held back until that is clear.
 */
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
