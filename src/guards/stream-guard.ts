import { type Finding, findValues, type GuardKind } from "./guard.ts";
import { firstPossible } from "./possible-values.ts";

/** What has been let through and is read again with what follows, for its labels: more than the longest reach of a label. */
const CONTEXT = 480;
/** Characters after a number in which a label may still name it: "219099999 is my social security number". */
const LABEL_AFTER = 80;
/** Digits of a number that a label behind it may name, at least. */
const MIN_NAMED_BEHIND = 4;
/** Characters after a value that may show that it is none: "MRN 45 patients". */
const SURE_AFTER = 24;
/** Characters of the longest value; text without blanks and tables of numbers are let through in pieces of this length. */
const MAX_VALUE = 640;
/** The same for private keys. */
const MAX_KEY = 12_500;
/** Characters of a part that are read together with what is held. A longer part is read in pieces, so that its time is linear. */
const MAX_PIECE = 2_000;

export type StreamGuard = {
  /** Takes the next part of the text, and returns what may go on. */
  push(part: string): string;
  /** The rest, at the end of the text. */
  end(): string;
  /** Whether it holds text back. */
  isHolding(): boolean;
};

/**
 * Guards a text that comes in parts. Text is held back from the start of what may be a value, until that is known or is longer than
 * any value; all else goes on at once, but for the last word, which may be the beginning of one. What the parts say together
 * is read as the whole text would be. `replace` is called with each value and what stands between it and the one before; what it
 * returns goes on.
 */
export function makeStreamGuard(
  kinds: readonly GuardKind[],
  replace: (finding: Finding, value: string, before: string) => string,
): StreamGuard {
  let context = "";
  let held = "";
  let passed = "";
  /** The values of what is held, by their places in it, since the last part came; undefined if they were not looked for. */
  let known: Finding[] | undefined;
  const sentOf = (until: number, findings: readonly Finding[]): string => {
    let sent = "";
    let at = 0;
    for (const finding of findings) {
      if (finding.start >= until) break;
      const start = Math.max(finding.start, at);
      const before = held.slice(at, start);
      sent += before + replace(finding, held.slice(start, finding.end), passed + before);
      passed = "";
      at = finding.end;
    }
    if (at < until) {
      sent += held.slice(at, until);
      passed += held.slice(at, until);
    }
    const end = Math.max(at, until);
    context = (context + held.slice(0, end)).slice(-CONTEXT);
    held = held.slice(end);
    if (known) known = movedBy(known, end);
    return sent;
  };
  const valuesOf = (): Finding[] => {
    known ??= movedBy(findValues(context + held, kinds), context.length);
    return known;
  };
  const release = (hasEnded: boolean): string => {
    let sent = "";
    while (held !== "") {
      const possible = firstPossible(held, 0, hasEnded);
      if (!possible) return sent + sentOf(held.length, []);
      if (possible.start > 0) {
        sent += sentOf(possible.start, []);
        continue;
      }
      const { end, isOpen, digits } = possible;
      if (isOpen && held.length <= (held.startsWith("-----") ? MAX_KEY : MAX_VALUE)) return sent;
      const behind = held.length - end;
      if (!hasEnded && !isOpen && digits >= MIN_NAMED_BEHIND && behind < LABEL_AFTER) return sent;
      const values = valuesOf();
      if (!hasEnded && !isOpen && behind < SURE_AFTER && values.some(({ start }) => start < end)) return sent;
      sent += sentOf(isOpen ? cutOf(held, values) : end, values);
    }
    return sent;
  };
  return {
    push(part) {
      let sent = "";
      for (let at = 0; at < part.length; at += MAX_PIECE) {
        held += part.slice(at, at + MAX_PIECE);
        known = undefined;
        sent += release(false);
      }
      return sent;
    },
    end: () => release(true),
    isHolding: () => held !== "",
  };
}

/** Findings in what is left of a text after so many characters; of one that began before, what is left of it. */
const movedBy = (findings: readonly Finding[], by: number): Finding[] =>
  findings.flatMap(({ kind, start, end }) =>
    end > by ? [{ kind, start: Math.max(0, start - by), end: end - by }] : [],
  );

/** Where what is too long to be one value may be cut: its first half goes on, and no value is parted. */
function cutOf(held: string, values: readonly Finding[]): number {
  const half = held.length >> 1;
  const parted = values.find(({ start, end }) => start < half && half < end);
  return parted ? parted.end : half;
}
