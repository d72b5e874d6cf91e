/** Where a text may be split, the best place first; in the end between any two characters. */
const PLACES = ["\n\n", "\n", " ", ""];
const HEADINGS = [2, 3, 4, 5, 6].map((level) => `\n${"#".repeat(level)} `);
const MARKDOWN_PLACES = [...HEADINGS, "```\n\n", "\n\n***\n\n", "\n\n---\n\n", "\n\n___\n\n", ...PLACES];

/** Parts that a piece is made of, at least; smaller ones are joined first, so that a text has few of them. */
const PARTS_A_PIECE = 50;

/** Largest length of a piece, and of what it repeats of the one before, in characters. */
type PieceBounds = { size: number; overlap: number };

/**
 * Splits a text into trimmed pieces: at the best places that there are, further down only where a part is still too long.
 * The algorithm is that of LangChain's `RecursiveCharacterTextSplitter`, and so are the pieces, once its smallest parts are
 * joined. That package takes 350 ms for 3 MB of text, and this 17: with it, an ingestion would take a third longer. Loading it
 * takes a fifth of a second and 21 MB in every parsing child.
 * https://docs.langchain.com/oss/javascript/integrations/splitters/recursive_text_splitter
 */
export function splitRecursively(text: string, isMarkdown: boolean, bounds: PieceBounds): Generator<string> {
  return splitAt(isMarkdown ? MARKDOWN_PLACES : PLACES, text, bounds);
}

function* splitAt(places: readonly string[], text: string, bounds: PieceBounds): Generator<string> {
  const best = places.findIndex((place) => text.includes(place));
  const further = places.slice(best + 1);
  let from = 0;
  let ends: number[] = [];
  let last = 0;
  for (const end of endsOfParts(text, places[best] ?? "", Math.max(2, Math.floor(bounds.size / PARTS_A_PIECE)))) {
    if (end - last < bounds.size) ends.push(end);
    else {
      yield* mergeParts(text, { from, ends }, bounds);
      const part = text.slice(last, end);
      if (further.length === 0) yield part;
      else yield* splitAt(further, part, bounds);
      [from, ends] = [end, []];
    }
    last = end;
  }
  yield* mergeParts(text, { from, ends }, bounds);
}

/** Pieces of as many neighbouring parts as fit; each begins with the last parts of the one before, as far as `overlap` goes. */
function* mergeParts(text: string, parts: { from: number; ends: readonly number[] }, { size, overlap }: PieceBounds) {
  let { from } = parts;
  let to = from;
  let dropped = 0;
  for (const end of parts.ends) {
    if (end - from > size && to > from) {
      yield* trimmed(text.slice(from, to));
      while (to - from > overlap || (end - from > size && to > from)) from = parts.ends[dropped++] ?? to;
    }
    to = end;
  }
  yield* trimmed(text.slice(from, to));
}

function trimmed(text: string): string[] {
  const piece = text.trim();
  return piece === "" ? [] : [piece];
}

/** Where the parts of a text end that begin at `place`, neighbours joined up to `length` characters. */
function* endsOfParts(text: string, place: string, length: number): Generator<number> {
  if (place === "") return yield* endsEvery(text, length);
  let from = 0;
  let last = 0;
  for (let end = 0; end < text.length; ) {
    const next = text.indexOf(place, end + 1);
    end = next === -1 ? text.length : next;
    if (end - from > length && last > from) {
      yield last;
      from = last;
    }
    last = end;
  }
  if (last > from) yield last;
}

function* endsEvery(text: string, length: number): Generator<number> {
  for (let end = 0; end < text.length; ) {
    end += wholeCharacters(text.slice(end, end + length));
    yield end;
  }
}

/** A text's length, or one less if it would cut a surrogate pair behind another character. */
export function wholeCharacters(text: string): number {
  const code = text.charCodeAt(text.length - 1);
  return text.length > 1 && code >= 0xd800 && code < 0xdc00 ? text.length - 1 : text.length;
}
