import type { z } from "zod";
import type { annotationSchema } from "./response-schemas.ts";

/** A passage that a text rests on. */
export type Citation = Omit<z.input<typeof annotationSchema>, "type" | "index">;

/** A mark as models write it: `【3】`, `【3, 5】` or `【3†pump.txt】`. */
const whole = /^【\s*(\d{1,4}(?:\s*[,;、]\s*\d{1,4})*)\s*(?:†[^【】]*)?】$/;
/** What may become one. */
const begun = /^【\s*(?:\d[\d\s,;、]*)?(?:†[^【】]*)?$/;
/** Longest mark that is waited for, in characters; a longer text is no mark. */
const MAX_MARK = 120;

type Part = { type: "text"; text: string } | { type: "citation"; of: Citation };

/**
 * Takes the marks out of a text that comes in parts of any size, and returns where passages are cited. What may be the
 * beginning of a mark is held back until it is known, and so is a space, which goes with the mark after it. A mark of no
 * passage stays in the text.
 */
export function makeCitations(find: (mark: number) => Citation | undefined) {
  let held = "";
  const cut = (isEnd: boolean): Part[] => {
    const parts: Part[] = [];
    const say = (text: string) => {
      const last = parts.at(-1);
      if (last?.type === "text") last.text += text;
      else if (text !== "") parts.push({ type: "text", text });
    };
    for (;;) {
      const at = held.indexOf("【");
      const plain = at < 0 ? held : held.slice(0, at);
      const spaceAt = plain.endsWith(" ") ? plain.length - 1 : plain.length;
      say(plain.slice(0, spaceAt));
      held = held.slice(spaceAt);
      const rest = held.trimStart();
      if (at < 0 || rest === "") break;
      const close = rest.indexOf("】");
      if (close < 0 && rest.length <= MAX_MARK && begun.test(rest) && !isEnd) return parts;
      const cited = close < 0 ? [] : citedBy(rest.slice(0, close + 1), find);
      if (cited.length > 0) {
        for (const of of cited) parts.push({ type: "citation", of });
        held = rest.slice(close + 1);
      } else {
        const end = held.length - rest.length + 1;
        say(held.slice(0, end));
        held = held.slice(end);
      }
    }
    if (isEnd) {
      say(held);
      held = "";
    }
    return parts;
  };
  return {
    take(text: string): Part[] {
      held += text;
      return cut(false);
    },
    /** What is still held back, when the text has ended. */
    end: () => cut(true),
  };
}

/** The passages that a mark names; those that are not there are left out. */
function citedBy(mark: string, find: (mark: number) => Citation | undefined): Citation[] {
  const numbers = whole.exec(mark)?.[1]?.split(/[,;、]/) ?? [];
  return numbers.flatMap((number) => find(Number(number)) ?? []);
}
