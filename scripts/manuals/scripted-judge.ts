import type { Behaviour } from "../../test/support/fake-provider/behaviour.ts";
import type { WireRequest } from "../../test/support/fake-provider/wire-format.ts";

/**
 * The ideas that a reader who knows the subject looks for in a passage, each as words of which one is enough, parted by `|`. A
 * word stands for all that begin with it.
 */
export type Ideas = readonly string[];

/** At this distance of the ideas, in characters, half of the share for their nearness is left. */
const NEAR = 400;

/**
 * A double of a reranking model for `POST /rerank`, as Cohere and Jina have it. It stands for a model that understands a
 * question: it has for each one the ideas that its author would look for, written with the question. It sees the text of the
 * passages alone, and not which of them answers: a passage that names the same ideas as near to each other gets the same
 * score. A question that it was not made for is an error.
 */
export function makeScriptedJudge(ideasOf: ReadonlyMap<string, Ideas>): (body: WireRequest) => Behaviour {
  return ({ query, documents }) => {
    const ideas = ideasOf.get(String(query));
    if (ideas === undefined) return { status: 400, errorMessage: "The judge was not made for this question." };
    const results = (documents as string[]).map((text, index) => ({ index, relevance_score: scoreOf(text, ideas) }));
    return { rawBody: JSON.stringify({ results }) };
  };
}

/** From 0 to 1: the share of the ideas that a text names, and a little more the nearer they stand to each other. */
export function scoreOf(text: string, ideas: Ideas): number {
  const folded = text.toLowerCase().replace(/\s+/g, " ");
  const places = ideas.map((idea) => idea.split("|").flatMap((word) => placesOf(folded, word)));
  const named = places.filter((found) => found.length > 0);
  if (named.length === 0) return 0;
  return (named.length + NEAR / (NEAR + narrowestSpan(named))) / (ideas.length + 1);
}

/** Where a word begins in a text, whatever follows. */
function placesOf(text: string, word: string): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    const isInWord = /^[\p{L}\p{N}]/u.test(word) && /[\p{L}\p{N}]$/u.test(text.slice(0, at));
    if (!isInWord) places.push(at);
  }
  return places;
}

/** The shortest distance from a place to another with a place of each list between them, both included. */
function narrowestSpan(lists: readonly (readonly number[])[]): number {
  const marks = lists.flatMap((places, list) => places.map((at) => ({ at, list }))).sort((a, b) => a.at - b.at);
  const last = new Map<number, number>();
  let narrowest = Number.POSITIVE_INFINITY;
  for (const { at, list } of marks) {
    last.set(list, at);
    if (last.size === lists.length) narrowest = Math.min(narrowest, at - Math.min(...last.values()));
  }
  return narrowest;
}
