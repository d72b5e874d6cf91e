import type { Citation, PlacedCitation } from "../gateway/citation.ts";
import type { Mark } from "./answer/marks.ts";
import type { QueryResult } from "./query-schemas.ts";
import { findQuote, findSentence } from "./quotes.ts";

const MAX_CITATIONS = 30;
/** Share of a statement's words that a sentence must have to stand as its quote, and of a sentence that has no mark. */
const RELATED = 0.25;
const ALIKE = 0.6;
/** Sentences of an answer without marks whose sources are looked for. */
const MAX_SENTENCES = 12;

/** A passage that a model gets, and where its document was read. */
export type AnswerPassage = QueryResult & { url?: string };

type Citable = Pick<AnswerPassage, "chunkId" | "documentId" | "title" | "page" | "heading" | "url" | "content">;

/** The sentences of an answer whose sources are looked for. */
const sentencesOf = (answer: string) => answer.split(/(?<=[.!?])\s+|\n+/).slice(0, MAX_SENTENCES);

/** Whether a text has a sentence with at least this share of the words of a sentence of an answer. */
export const sharesSentence = (answer: string, text: string, least: number): boolean =>
  sentencesOf(answer).some((sentence) => (findSentence(text, sentence)?.share ?? 0) >= least);

/** The citations of an answer, each with the place of the sentence that is most like its quote; of none, the whole answer. */
export function placeCitations(answer: string, citations: readonly Citation[]): PlacedCitation[] {
  let from = 0;
  const sentences = sentencesOf(answer).map((sentence) => {
    const startIndex = answer.indexOf(sentence, from);
    from = startIndex + sentence.length;
    return { sentence, startIndex, endIndex: from };
  });
  return citations.map((citation) => {
    let best = { share: 0, startIndex: 0, endIndex: answer.length };
    for (const { sentence, ...place } of sentences) {
      const share = findSentence(sentence, citation.quote)?.share ?? 0;
      if (share > best.share) best = { share, ...place };
    }
    return { ...citation, startIndex: best.startIndex, endIndex: best.endIndex };
  });
}

/** Makes what cites the passages of one answer; `searched` are the question and what else was searched for. */
export function makeCiting(passages: readonly Citable[], searched: readonly string[]) {
  const citations: Citation[] = [];
  /** The number of a citation, which is made unless there is the same one. */
  const add = (passage: Omit<Citable, "content">, quote: string): number | undefined => {
    const { chunkId, documentId, title, page, heading, url } = passage;
    const known = citations.findIndex((one) => one.chunkId === chunkId && one.quote === quote);
    if (known >= 0) return known + 1;
    if (citations.length >= MAX_CITATIONS) return undefined;
    const place = { ...(page === undefined ? {} : { page }), ...(heading === undefined ? {} : { heading }) };
    return citations.push({ documentId, chunkId, title, ...place, quote, ...(url === undefined ? {} : { url }) });
  };
  /** Words of a passage that bear a statement out: those that the model quotes, else its sentence that is most alike. */
  const findSupport = ({ content }: Citable, statement: string, quoted: string | undefined) => {
    const quote = quoted === undefined ? undefined : findQuote(content, quoted);
    if (quote !== undefined) return quote;
    // An answer in another language shares no words with its passage, but what was searched for does.
    for (const text of quoted === undefined ? [statement, ...searched] : [statement]) {
      const found = findSentence(content, text);
      if (found && found.share >= RELATED) return found.quote;
    }
    return undefined;
  };
  return {
    add,
    citations: (): Citation[] => citations,
    /** What stands in an answer for a mark: `[1]` for each passage that was given and bears the statement out. */
    cite(mark: Mark, statement: string): string {
      const numbers = mark.map(({ number, quoted }) => {
        const passage = passages[number - 1];
        const quote = passage && findSupport(passage, statement, quoted);
        return passage && quote !== undefined ? add(passage, quote) : undefined;
      });
      return [...new Set(numbers)].map((number) => (number === undefined ? "" : `[${number}]`)).join("");
    },
    /** Finds the passages that an answer without marks rests on: each has `least` of the words of one of its sentences. */
    citeUnmarked(answer: string, least = ALIKE): void {
      for (const sentence of sentencesOf(answer)) {
        const found = passages.map((passage) => ({ passage, at: findSentence(passage.content, sentence) }));
        const [best] = found.toSorted((a, b) => (b.at?.share ?? 0) - (a.at?.share ?? 0));
        if (best?.at && best.at.share >= least) add(best.passage, best.at.quote);
      }
    },
  };
}
