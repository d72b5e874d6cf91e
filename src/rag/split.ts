import { RecursiveCharacterTextSplitter } from "@langchain/textsplitters";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import type { Section } from "./parse/section.ts";
import type { SourceType } from "./schemas.ts";

/** What a query finds: a passage, its length in tokens, and where in the document it stands. */
export type ChunkText = { content: string; tokens: number; page?: number; heading?: string };

const CHUNK_CHARACTERS = 1_600; // about 400 tokens of English
const OVERLAP_CHARACTERS = 240; // about 60
const TARGET_TOKENS = 400;
const MAX_TOKENS = 512; // a passage above is split again, so that dense scripts do not make chunks four times too long
const SMALL_SECTION = 400; // characters; a shorter section joins its neighbour under the same heading
const MAX_RESPLITS = 4;
const plainText = { disallowedSpecial: new Set<string>() }; // text that spells a model's control token is still just text

/** Tokens of a text as OpenAI's o200k_base counts them. */
export function tokensOf(text: string): number {
  return countTokens(text, plainText);
}

/**
 * Cuts sections into passages of about 1,600 characters, by paragraph, line and word, never across pages or headings.
 * Characters, not tokens, measure here: a token-counting splitter takes forty times as long.
 */
export async function splitSections(sections: readonly Section[], type: SourceType): Promise<Section[]> {
  const passages: Section[] = [];
  const splitter = makeSplitter(type, CHUNK_CHARACTERS, OVERLAP_CHARACTERS);
  for (const section of joinSmall(sections)) {
    if (section.text.length <= CHUNK_CHARACTERS) passages.push(section);
    else for (const text of await splitter.splitText(section.text)) passages.push({ ...section, text });
  }
  return passages.filter(({ text }) => /\S/.test(text));
}

/** Counts a passage's tokens, once, and splits it again where they are too many. */
export async function toChunks(passage: Section, type: SourceType, depth = 0): Promise<ChunkText[]> {
  const { text, ...place } = passage;
  const tokens = tokensOf(text);
  if (tokens <= MAX_TOKENS || depth >= MAX_RESPLITS || text.length < 8) return [{ content: text, tokens, ...place }];
  const size = Math.max(4, Math.floor((text.length * TARGET_TOKENS * 0.95) / tokens));
  const smaller = makeSplitter(type, size, Math.floor((size * OVERLAP_CHARACTERS) / CHUNK_CHARACTERS));
  const parts = await smaller.splitText(text);
  const chunks = await Promise.all(parts.map((part) => toChunks({ ...place, text: part }, type, depth + 1)));
  return chunks.flat();
}

function makeSplitter(type: SourceType, chunkSize: number, chunkOverlap: number): RecursiveCharacterTextSplitter {
  const sizes = { chunkSize, chunkOverlap };
  return type === "markdown"
    ? RecursiveCharacterTextSplitter.fromLanguage("markdown", sizes)
    : new RecursiveCharacterTextSplitter(sizes);
}

/** Joins neighbours of which one is small, where they share a page and a heading above both. */
function joinSmall(sections: readonly Section[]): Section[] {
  const joined: Section[] = [];
  for (const section of sections) {
    const last = joined.at(-1);
    const isSmall = last && Math.min(last.text.length, section.text.length) < SMALL_SECTION;
    const common = last ? commonHeading(last.heading, section.heading) : undefined;
    const fits = last && last.text.length + section.text.length + 2 <= CHUNK_CHARACTERS;
    if (
      last &&
      isSmall &&
      fits &&
      last.page === section.page &&
      (common !== undefined || last.heading === section.heading)
    ) {
      const text = `${last.text}\n\n${section.text}`;
      joined[joined.length - 1] = { ...section, text, ...(common === undefined ? {} : { heading: common }) };
    } else {
      joined.push(section);
    }
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
