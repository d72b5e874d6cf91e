import type { DemoClient, Hit } from "../demo/client.ts";
import fifty from "./fifty-questions.json" with { type: "json" };
import { placeOf, type Question } from "./questions.ts";
import type { Ideas } from "./scripted-judge.ts";

/** Hits among which an answer counts as found, and those that a judge reads. */
const WITHIN = 5;
const READ_BY_JUDGE = 30;
const SHOWN_CHARACTERS = 90;

/** A question of a user of a manual, with the ideas by which the scripted judge knows a passage that answers it. */
type JudgedQuestion = Question & { manual: string; kind: string; judge: Ideas };
/** A way to search, and the least recall that it must have. */
type Way = { name: string; search: object; least?: number };
type Miss = { question: JudgedQuestion; place: number; hits: readonly Hit[] };

const questions: readonly JudgedQuestion[] = fifty;

/** What the scripted judge knows: the ideas of each question. */
export const ideasOfQuestions: ReadonlyMap<string, Ideas> = new Map(questions.map(({ ask, judge }) => [ask, judge]));

const waysBy = (reranker: string): readonly Way[] => [
  { name: "lexical", search: { mode: "lexical" } },
  { name: "vector (parts of words)", search: { mode: "vector" } },
  { name: "hybrid", search: {}, least: 0.9 },
  { name: "hybrid, reranked by a scripted judge", search: { rerank: { model: reranker } }, least: 0.95 },
];

/**
 * Asks the fifty questions in each way, prints the share that is answered by one of the first five chunks, and what came in
 * the place of the others. Resolves with whether each way has its least recall. @throws Error where a query was not reranked.
 */
export async function measureRecall(client: DemoClient, reranker: string): Promise<boolean> {
  console.log(`\n${questions.length} questions of users: a chunk among the first ${WITHIN} that answers\n`);
  let isEnough = true;
  const misses: { way: Way; missed: readonly Miss[] }[] = [];
  for (const way of waysBy(reranker)) {
    const missed = await findMisses(client, way);
    const recall = 1 - missed.length / questions.length;
    const read = missed.filter(({ place }) => place > 0).length;
    const goal = way.least === undefined ? "" : `, at least ${way.least.toFixed(2)}`;
    const later = `${read} more by chunk ${READ_BY_JUDGE}`;
    console.log(`  ${way.name.padEnd(38)} recall@${WITHIN} ${recall.toFixed(2)}${goal}; ${later}`);
    if (way.least !== undefined) misses.push({ way, missed });
    isEnough &&= recall >= (way.least ?? 0);
  }
  for (const { way, missed } of misses) {
    console.log(`\n  ${way.name}: ${missed.length === 0 ? "nothing is missed" : "missed"}`);
    for (const miss of missed) printMiss(miss);
  }
  return isEnough;
}

async function findMisses(client: DemoClient, { search }: Way): Promise<Miss[]> {
  const missed: Miss[] = [];
  for (const question of questions) {
    const { results: hits, rerank } = await client.search({ query: question.ask, topK: READ_BY_JUDGE, ...search });
    if (rerank?.reranked === false) throw new Error(`"${question.ask}" was not reranked: ${rerank.reason}`);
    const place = placeOf(hits, question);
    if (place === 0 || place > WITHIN) missed.push({ question, place, hits });
  }
  return missed;
}

function printMiss({ question: { manual, kind, ask, answers }, place, hits }: Miss): void {
  console.log(
    `\n    ${ask} (${kind})\n      wanted in ${manual}, ${place === 0 ? "not found" : `found as ${place}`}: ${answers[0]}`,
  );
  for (const { title, page, content } of hits.slice(0, WITHIN)) {
    const text = content.replace(/\s+/g, " ").slice(0, SHOWN_CHARACTERS);
    console.log(`      came: ${title.slice(0, 30)}, page ${page}: ${text}`);
  }
}
