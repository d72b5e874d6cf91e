import { RecursiveCharacterTextSplitter } from "@langchain/textsplitters";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { defined } from "../defined.ts";
import type { Section } from "./parse/section.ts";
import type { SourceType } from "./schemas.ts";

/** A chunk's text, its length in tokens, and its place in the document. */
export type ChunkText = { content: string; tokens: number; page?: number; heading?: string };

/** Longest chunk, in characters. */
export const CHUNK_CHARACTERS = 1_600; // about 400 tokens of English
const OVERLAP_CHARACTERS = 240; // about 60
const TARGET_TOKENS = 400;
const MAX_TOKENS = 512; // a longer piece is split again: in dense scripts 1,600 characters are up to four times too long
const SMALL_SECTION = 400; // characters; a shorter section is joined to its neighbour under the same heading
const MAX_RESPLITS = 4;
const SLICE_CHARACTERS = 65_536; // the splitter's largest input
const PIECES_A_CHUNK = 50; // at least
const plainText = { disallowedSpecial: new Set<string>() }; // text that spells a model's control token is still just text

/** Tokens of a text as OpenAI's o200k_base counts them. */
export function tokensOf(text: string): number {
  return countTokens(text, plainText);
}

/**
 * Splits sections into pieces of about 1,600 characters, by paragraph, line and word, never across pages or headings. It
 * measures characters: a splitter that counts tokens takes forty times as long. It stops at the first piece beyond `atMost`.
 */
export async function splitSections(
  sections: readonly Section[],
  type: SourceType,
  atMost = Number.POSITIVE_INFINITY,
): Promise<Section[]> {
  const pieces: Section[] = [];
  const splitter = makeSplitter(type, CHUNK_CHARACTERS, OVERLAP_CHARACTERS);
  for (const section of joinSmall(sections)) {
    for (const slice of slicesOf(section.text)) {
      const texts = slice.length <= CHUNK_CHARACTERS ? [slice.trim()] : await splitter.splitText(slice);
      for (const text of texts) if (/\S/.test(text)) pieces.push({ ...section, text });
      if (pieces.length > atMost) return pieces;
    }
  }
  return pieces;
}

/** Slices a text, if possible at the last end of a paragraph, line or word in the second half of each slice. */
function* slicesOf(text: string): Generator<string> {
  let from = 0;
  while (text.length - from > SLICE_CHARACTERS) {
    const slice = text.slice(from, from + SLICE_CHARACTERS);
    const ends = ["\n\n", "\n", " "].map((separator) => slice.lastIndexOf(separator));
    const length = ends.find((end) => end > SLICE_CHARACTERS / 2) ?? wholeCharacters(slice, SLICE_CHARACTERS);
    yield slice.slice(0, length);
    from += length;
  }
  yield text.slice(from);
}

/** `length`, or one less if it would cut a surrogate pair. */
function wholeCharacters(text: string, length: number): number {
  const code = text.charCodeAt(length - 1);
  return length > 1 && code >= 0xd800 && code < 0xdc00 ? length - 1 : length;
}

/** Counts a piece's tokens, and splits it again if there are too many. */
export async function toChunks(piece: Section, type: SourceType, depth = 0): Promise<ChunkText[]> {
  const { text, ...place } = piece;
  const tokens = tokensOf(text);
  if (tokens <= MAX_TOKENS || depth >= MAX_RESPLITS || text.length < 8) return [{ content: text, tokens, ...place }];
  const size = Math.max(4, Math.floor((text.length * TARGET_TOKENS * 0.95) / tokens));
  const smaller = makeSplitter(type, size, Math.floor((size * OVERLAP_CHARACTERS) / CHUNK_CHARACTERS));
  const parts = await smaller.splitText(text);
  const chunks = await Promise.all(parts.map((part) => toChunks({ ...place, text: part }, type, depth + 1)));
  return chunks.flat();
}

/**
 * LangChain's splitter awaits several times per part between two separators, down to single characters. Joining tiny parts
 * first bounds the work by the text's length.
 */
class PiecewiseSplitter extends RecursiveCharacterTextSplitter {
  protected override splitOnSeparator(text: string, separator: string): string[] {
    const length = Math.max(2, Math.floor(this.chunkSize / PIECES_A_CHUNK));
    return separator === "" ? cutEvery(text, length) : joinTiny(super.splitOnSeparator(text, separator), length);
  }
}

function makeSplitter(type: SourceType, chunkSize: number, chunkOverlap: number): PiecewiseSplitter {
  const separators = type === "markdown" ? RecursiveCharacterTextSplitter.getSeparatorsForLanguage(type) : undefined;
  return new PiecewiseSplitter(defined({ chunkSize, chunkOverlap, separators }));
}

function cutEvery(text: string, length: number): string[] {
  const pieces: string[] = [];
  for (let from = 0; from < text.length; ) {
    const piece = text.slice(from, from + length);
    pieces.push(piece.slice(0, wholeCharacters(piece, piece.length)));
    from += pieces.at(-1)?.length ?? length;
  }
  return pieces;
}

/** Joins neighbours up to `length` characters. */
function joinTiny(pieces: readonly string[], length: number): string[] {
  const joined: string[] = [];
  let last = "";
  for (const piece of pieces) {
    if (last.length + piece.length > length && last !== "") {
      joined.push(last);
      last = "";
    }
    last += piece;
  }
  if (last !== "") joined.push(last);
  return joined;
}

/** Joins neighbours if one of them is small and they share a page and a heading above both. */
function joinSmall(sections: readonly Section[]): Section[] {
  const joined: Section[] = [];
  for (const section of sections) {
    const last = joined.at(-1);
    const heading = commonHeading(last?.heading, section.heading);
    const isNear = last && last.page === section.page && (heading !== undefined || last.heading === section.heading);
    const isSmall = last && Math.min(last.text.length, section.text.length) < SMALL_SECTION;
    const fits = last && last.text.length + section.text.length + 2 <= CHUNK_CHARACTERS;
    if (last && isNear && isSmall && fits) {
      joined[joined.length - 1] = { ...section, text: `${last.text}\n\n${section.text}`, ...defined({ heading }) };
    } else joined.push(section);
  }
  return joined;
}

function commonHeading(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return undefined;
  const [left, right] = [a.split(" > "), b.split(" > ")];
  const length = left.findIndex((part, index) => part !== right[index]);
  const common = length === -1 ? left : left.slice(0, length);
  return common.length === 0 ? undefined : common.join(" > ");
}
