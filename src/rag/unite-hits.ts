import type { CurrentHits } from "./current-hits.ts";
import { fuseRanks } from "./fuse-ranks.ts";

/** What the searches that a model wrote weigh together, beside the question as it was asked. */
const REWRITTEN_WEIGHT = 3;

type Hits = Pick<CurrentHits, "hits" | "headers" | "warnings">;

/** The hits of a question and of the searches that were written for it, as one list by their ranks. */
export function uniteHits(asked: Hits, written: readonly Hits[]): Hits {
  const all = [asked, ...written];
  const weights = [1, ...written.map(() => REWRITTEN_WEIGHT / written.length)];
  const fused = fuseRanks(
    all.map(({ hits }) => hits),
    ({ content }) => content, // the same content may have been ingested twice
    weights,
  );
  const best = Math.max(0, ...all.flatMap(({ hits }) => hits.slice(0, 1).map(({ score }) => score)));
  const most = fused[0]?.sum ?? 1;
  return {
    hits: fused.map(({ item, sum }) => ({ ...item, score: (best * sum) / most })),
    headers: new Map(all.flatMap(({ headers }) => [...headers])),
    warnings: [...new Set(all.flatMap(({ warnings }) => warnings))],
  };
}
