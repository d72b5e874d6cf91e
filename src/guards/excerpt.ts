import { lastIndexWhile, type Span } from "./spans.ts";

/** A text that was made from parts of another one, with the place of each part in that one. */
export type Excerpt = { text: string; toOriginal(span: Span): Span };

/** A part of the original, and the characters that it stands for as a whole. */
export type Replacement = Span & { said: string };

/** Characters around a place that are read with it: more than a label reaches, and a long value. */
const REACH = 140;
/** Keeps what stands on either side of it from being read together. */
const BREAK = "\n\n#\n\n#\n\n";

type Part = { at: number; start: number; length: number; isWhole: boolean };

export function wholeText(text: string): Excerpt {
  return { text, toOriginal: (span) => span };
}

/** Cuts a text down to the surroundings of some places (in order, apart), and makes the replacements among them. */
export function excerptAround(original: string, places: readonly (Span & { said?: string })[]): Excerpt {
  const parts: Part[] = [];
  const texts: string[] = [];
  let size = 0;
  const push = (text: string) => {
    texts.push(text);
    size += text.length;
  };
  const kept = { start: 0, end: 0 };
  const flush = () => {
    if (kept.end > kept.start) {
      parts.push({ at: size, start: kept.start, length: kept.end - kept.start, isWhole: false });
      push(original.slice(kept.start, kept.end));
    }
  };
  for (const [index, place] of places.entries()) {
    const from = Math.max(kept.end, place.start - REACH);
    if (from > kept.end) {
      flush();
      if (size > 0) push(BREAK);
      kept.start = from;
    }
    kept.end = place.start;
    if (place.said !== undefined) {
      flush();
      parts.push({ at: size, start: place.start, length: place.end - place.start, isWhole: true });
      push(place.said);
      kept.start = place.end;
    }
    kept.end = Math.min(place.end + REACH, places[index + 1]?.start ?? original.length, original.length);
  }
  flush();
  return { text: texts.join(""), toOriginal: (span) => spanIn(parts, span) };
}

function spanIn(parts: readonly Part[], { start, end }: Span): Span {
  /** The part that holds a place, or the last one before it. */
  const partAt = (place: number) => parts[lastIndexWhile(parts, ({ at }) => at <= place)];
  const [first, last] = [partAt(start), partAt(end - 1)];
  if (!first || !last) return { start: 0, end: 0 };
  return {
    start: first.isWhole ? first.start : first.start + Math.min(first.length, start - first.at),
    end: last.start + (last.isWhole ? last.length : Math.min(last.length, end - last.at)),
  };
}
