import type { Document } from "../bson/bson-types.ts";
import { commandError } from "../command-error.ts";
import type { Collection } from "../storage/collection.ts";

/** The scores that a search stage gives to a document, by the names under which `$meta` reads them. */
export type ScoreName = "vectorSearchScore" | "searchScore";

/**
 * The score travels on the document under a symbol: no field name can meet it, `bson` does not write it, and stages that
 * make a new document of an old one hand it on with `keepScore`.
 */
const scoreKey: unique symbol = Symbol("search score");
type Scored = Document & { [scoreKey]?: { name: ScoreName; score: number } };

/** Attaches the score that `$vectorSearch` or `$search` found. */
export function attachScore(document: Document, name: ScoreName, score: number): Document {
  return Object.assign(document, { [scoreKey]: { name, score } });
}

/** The score of that name, or undefined when no such search brought the document. */
export function scoreOf(document: Document, name: string): number | undefined {
  const held = (document as Scored)[scoreKey];
  return held?.name === name ? held.score : undefined;
}

/** Hands the score of `from` on to `to`, and returns `to`. */
export function keepScore(from: Document, to: Document): Document {
  const held = (from as Scored)[scoreKey];
  if (held !== undefined && from !== to) (to as Scored)[scoreKey] = held;
  return to;
}

/**
 * Hits with the best score first. Those of equal score come in the order of their `_id`: what a search answers follows
 * from the documents alone, and not from the order in which they were stored.
 */
export function* bestFirst<T extends { rid: number; score: number }>(
  collection: Collection,
  hits: readonly T[],
): Generator<T> {
  const ranked = hits.toSorted((a, b) => b.score - a.score);
  for (let from = 0, to = 0; from < ranked.length; from = to) {
    const score = ranked[from]?.score;
    while (to < ranked.length && ranked[to]?.score === score) to++;
    const equal = ranked.slice(from, to);
    yield* equal.length === 1 ? equal : sortById(collection, equal);
  }
}

function sortById<T extends { rid: number }>(collection: Collection, hits: readonly T[]): T[] {
  return hits
    .flatMap((hit) => {
      const found = collection.idOf.get(hit.rid) as unknown as [Uint8Array] | undefined; // prepared to give arrays
      return found === undefined ? [] : [{ hit, id: found[0] }];
    })
    .sort((a, b) => Buffer.compare(a.id, b.id))
    .map(({ hit }) => hit);
}

/** Atlas' error for a search that it cannot run. */
export function refused(message: string) {
  return commandError("UnknownError", `PlanExecutor error during aggregation :: caused by :: ${message}`);
}
