/** A mark in a model's text: the numbers of passages, each with the words that it says it quotes. */
export type Mark = { number: number; quoted?: string }[];

/** Longest mark that is waited for, in characters; what is longer is cut there. */
const MAX_MARK = 1_000;
/** The last characters of what was said, in which the statement before a mark is found. */
const MAX_STATEMENT = 600;

const opening = /[[【`]/;
/** A mark begins with its numbers, and may go on with a quote: `[1]`, `【1†source】`, `[1, 2]`, `[^1]`, `[1: "the words"]`. */
const head = /^[[【]\s*\^?\d{1,2}(?:\s*[,;、]\s*\d{1,2})*\s*(?=[\]】†:])/;
/** What may become the head of one. */
const begun = /^[[【]\s*\^?(?:\d{1,2}\s*[,;、]?\s*)*$/;
const quoteEnd = /["”“»」']\s*[\]】]/;
const bracketEnd = /[\]】]/;
/** What stands between two quotes of one mark, and one of them. */
const separator = /["”“»」']\s*[;,]\s*(?=(?:\d{1,2}\s*:\s*)?["“„«「'])/;
const quotation = /^(?:(\d{1,2})\s*:\s*)?["“„«「']?([\s\S]*?)["”“»」']?$/;

/**
 * Reads the marks of a text that comes in parts of any size. `cite` says what stands in the place of a mark: an empty text takes
 * it out, with the space before it. What may be the beginning of a mark is held back until it is known. Code has no marks.
 */
export function makeMarkReader(cite: (mark: Mark, statement: string) => string) {
  let held = "";
  let said = "";
  let code = ""; // the backticks that end the code which the text is in
  const say = (text: string): string => {
    said = `${said}${text}`.slice(-MAX_STATEMENT);
    return text;
  };
  const cut = (isEnd: boolean): string => {
    let text = "";
    while (held !== "") {
      if (code !== "") {
        const end = codeEnd(held, code);
        const until = end ?? (isEnd ? held.length : Math.max(0, held.length - code.length + 1));
        text += say(held.slice(0, until));
        held = held.slice(until);
        if (end === undefined) break;
        code = "";
        continue;
      }
      const at = held.search(opening);
      const before = at < 0 ? held : held.slice(0, at);
      const spaceAt = before.trimEnd().length;
      const rest = at < 0 ? "" : held.slice(at);
      if (rest === "" || rest.startsWith("`")) {
        const ticks = /^`*/.exec(rest)?.[0] ?? "";
        const keep = at < 0 && !isEnd ? before.slice(spaceAt) : "";
        if (ticks !== "" && ticks.length === rest.length && ticks.length < 3 && !isEnd) {
          text += say(before);
          held = rest; // there may be more of them
          break;
        }
        text += say(before.slice(0, before.length - keep.length) + ticks);
        held = at < 0 ? keep : rest.slice(ticks.length);
        code = ticks;
        if (at < 0) break;
        continue;
      }
      const found = readMark(rest, isEnd);
      if (found === "wait") {
        text += say(before.slice(0, spaceAt));
        held = held.slice(spaceAt);
        break;
      }
      if (found === undefined) {
        text += say(`${before}${rest[0]}`);
        held = rest.slice(1);
        continue;
      }
      const mark = cite(found.mark, statementOf(said + before));
      text += say(mark === "" ? before.slice(0, spaceAt) : `${before}${mark}`);
      held = rest.slice(found.length);
    }
    return text;
  };
  return {
    /** The text as far as it is known. */
    take(text: string): string {
      held += text;
      return cut(false);
    },
    /** What is still held back, when the text has ended. */
    end: () => cut(true),
  };
}

/** Where code ends; what is no block ends with its line at the latest. */
function codeEnd(text: string, ticks: string): number | undefined {
  const end = text.indexOf(ticks);
  const line = ticks.length < 3 ? text.indexOf("\n") : -1;
  if (line >= 0 && (end < 0 || line < end)) return line + 1;
  return end < 0 ? undefined : end + ticks.length;
}

/** The last sentence before a mark, without earlier marks. */
function statementOf(text: string): string {
  const plain = text.replace(/\[\d{1,2}\]/g, "").trimEnd();
  const [last = ""] = plain.split(/(?<=[.!?])\s+(?=\p{Lu})|\n/u).slice(-1);
  return last;
}

/** The mark that a text begins with; `wait` if more of the text has to come. */
function readMark(rest: string, isEnd: boolean): { mark: Mark; length: number } | "wait" | undefined {
  const start = head.exec(rest)?.[0];
  if (start === undefined) return !isEnd && rest.length < MAX_MARK && begun.test(rest) ? "wait" : undefined;
  const numbers = (start.match(/\d+/g) ?? []).map(Number);
  const tail = rest.slice(start.length, MAX_MARK);
  const isQuoted = /^:\s*["“„«「']/.test(tail);
  if (tail.startsWith(":") && !isEnd && tail.trim().length < 2) return "wait";
  const end = (isQuoted ? quoteEnd : bracketEnd).exec(tail.slice(isQuoted ? 2 : 0));
  if (!end && !isEnd && rest.length < MAX_MARK) return "wait";
  const inner = end ? tail.slice(0, end.index + end[0].length + (isQuoted ? 2 : 0)) : tail;
  return { mark: toMark(numbers, inner), length: start.length + inner.length };
}

function toMark(numbers: readonly number[], inner: string): Mark {
  const quotes = inner.startsWith(":")
    ? inner
        .slice(1)
        .replace(/[\]】]$/, "")
        .trim()
    : "";
  if (quotes === "") return numbers.map((number) => ({ number }));
  let current = numbers.at(-1) ?? 0;
  const others = numbers.slice(0, -1).map((number) => ({ number }));
  const read = quotes.split(separator).map((part) => {
    const [, number, quoted = ""] = quotation.exec(part.trim()) ?? [];
    current = number === undefined ? current : Number(number);
    return { number: current, quoted };
  });
  return [...others, ...read];
}
