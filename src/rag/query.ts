import type { GatewayCaller } from "../gateway/money/account.ts";
import { makeShares } from "../isolation/shares.ts";
import { defined } from "../lib/defined.ts";
import { inSpan, type SpanStart } from "../observe/tracing.ts";
import { placeOf } from "../store/chunk.ts";
import type { DocumentHeader } from "../store/document-header.ts";
import type { Caller } from "../tenancy/roles.ts";
import { chooseCollections } from "./collections.ts";
import { type Coverage, measureCoverage } from "./coverage.ts";
import type { CurrentHits } from "./current-hits.ts";
import type { RagDeps } from "./deps.ts";
import { makeEmbedQuery } from "./embed-query.ts";
import { expandHits } from "./expand-hits.ts";
import { makeFindHits } from "./find-hits.ts";
import { foldText } from "./fold-text.ts";
import { fuseRanks } from "./fuse-ranks.ts";
import { makeLanguages } from "./languages.ts";
import { joinChunks, mergeHits, type Passage } from "./merge-hits.ts";
import type { QueryInput, QueryOutcome, QueryResult, RewriteReport } from "./query-schemas.ts";
import { lexicalQuery } from "./query-words.ts";
import { RERANKED, rerankHits } from "./rerank.ts";
import { rewriteQuery } from "./rewrite.ts";
import type { Holders } from "./word-nearness.ts";

type QueryDeps = Pick<RagDeps, "store" | "gateway" | "embeddingModels" | "pace" | "logger">;
export type RunQuery = (
  caller: GatewayCaller & Pick<Caller, "collections">,
  input: QueryInput,
) => Promise<QueryOutcome>;

/** What was found for a question, and the texts that were searched for, each with the rarity of its words. */
type Found = Pick<CurrentHits, "hits" | "headers" | "warnings"> & {
  searches: { text: string; holders: Holders | undefined }[];
  rewrite?: RewriteReport;
};

/**
 * Makes the function that runs queries. Its stages: the searches that a model writes (`rewrite.ts`), the vectors of the query
 * (`embed-query.ts`), the documents that are asked (`find-hits.ts`, `choose-documents.ts`), the searches (`candidates.ts`), one
 * list of them (`rank-hits.ts`), the hits that still hold (`current-hits.ts`), their order by a model
 * (`rerank.ts`), the chunks beside them (`expand-hits.ts`), those that belong together as one (`merge-hits.ts`), how much of the
 * question they hold (`coverage.ts`), the results.
 */
export function makeQuery(deps: QueryDeps): RunQuery {
  const searching = makeSearching(deps);
  return (caller, input) => inSpan(toSpan(input), () => runQuery(caller, input));

  async function runQuery(...[caller, input]: Parameters<RunQuery>): Promise<QueryOutcome> {
    const { tenantId } = caller;
    const { topK, minScore = 0, minCoverage = 0, expand, rewrite, rerank } = input;
    const query = foldText(input.query);
    const found = rewrite
      ? await searchRewritten(searching, caller, input, query)
      : await search(searching, caller, { ...input, topK: rerank ? Math.max(topK, RERANKED) : topK }, query);
    const { hits, headers, warnings, searches } = found;
    const ranked =
      rerank && (await rerankHits(deps, caller, { query: judgedBy(found, input), wish: rerank, hits, headers }));
    const shown = (ranked?.hits ?? hits).filter(({ score }) => score >= minScore).slice(0, topK);
    const passages =
      expand === undefined
        ? shown.map((hit) => ({ hit, chunks: [hit] }))
        : mergeHits(await expandHits(deps, tenantId, { hits: shown, count: expand }));
    const described = passages.map((passage) => toResult(passage, headers.get(passage.hit.documentId)));
    const { each, best } = measureBest(searches, described.map(textOf));
    const results: QueryResult[] = [];
    for (const [at, coverage] of each.entries())
      if (coverage >= minCoverage && described[at]) results.push({ ...described[at], coverage });
    return {
      results,
      coverage: best,
      ...defined({ rewrite: found.rewrite, rerank: ranked?.report }),
      ...(warnings.length > 0 ? { warnings } : {}),
    };
  }
}

/** What searches are made by. */
function makeSearching(deps: QueryDeps) {
  return {
    deps,
    turns: makeShares({ size: Number.POSITIVE_INFINITY, perOwner: 1 }),
    queryVectors: makeEmbedQuery(deps),
    findHits: makeFindHits(deps),
    languagesOf: makeLanguages(deps),
  };
}
type Searching = ReturnType<typeof makeSearching>;
type QueryCaller = Parameters<RunQuery>[0];

/** Searches for one text. */
async function search(by: Searching, caller: QueryCaller, input: QueryInput, text: string): Promise<Found> {
  const { deps, turns, queryVectors, findHits } = by;
  const { tenantId, signal } = caller;
  const { mode, topK, rerank } = input;
  const embed = queryVectors.forQuery(caller, text);
  const spaces = await queryVectors.lastInUse(tenantId);
  const { holders, ...found } = await findHits(caller, input, {
    text: lexicalQuery(text),
    mode,
    topK,
    isJudged: rerank !== undefined,
    isSemantic: deps.gateway.isSemantic,
    spaces,
    spacesInUse: (read) => queryVectors.inUse(tenantId, read),
    vectorsFor: embed,
    inWideTurn: async (run) => {
      const leave = await turns.enter(tenantId, signal);
      return deps.pace.share(tenantId, signal, run).finally(leave);
    },
  });
  return { ...found, searches: [{ text, holders }] };
}

/** Searches for a question while a model writes searches for it, and then for these. */
async function searchRewritten(by: Searching, caller: QueryCaller, input: QueryInput, query: string): Promise<Found> {
  const { rerank: _judged, ...asked } = input;
  const deep = { ...asked, topK: Math.max(asked.topK, UNITED) };
  const languages = () => by.languagesOf(caller.tenantId, chooseCollections(caller, asked.collection));
  const wish = asked.rewrite === true ? {} : (asked.rewrite ?? {});
  const [first, rewrite] = await Promise.all([
    search(by, caller, deep, query),
    rewriteQuery(by.deps, caller, { query, wish, languages }),
  ]);
  if (rewrite.queries.length === 0) return { ...first, rewrite };
  const others = await Promise.all(rewrite.queries.map((text) => search(by, caller, deep, foldText(text))));
  const searches = [first, ...others].flatMap((one) => one.searches);
  return { ...uniteHits(first, others), searches, rewrite };
}

/** Hits of each search that are united. */
const UNITED = 50;

/** What a judge reads as the query: what the conversation says is missing in the question itself. */
const judgedBy = ({ searches: [asked, written] }: Found, { rewrite }: QueryInput): string =>
  (rewrite !== true && rewrite?.history?.length ? written?.text : undefined) ?? asked?.text ?? "";

/**
 * The coverage of what was searched for, where a model wrote searches: of a passage that of the search which it covers best; of
 * all the mean of what was written. A search of few and general words is covered anywhere, but not all of them are.
 */
function measureBest(searches: Found["searches"], texts: readonly string[]): Coverage {
  const each = new Array<number>(texts.length).fill(0);
  const bests: number[] = [];
  for (const { text, holders } of searches) {
    const found = measureCoverage(text, texts, holders);
    for (const [at, share] of found.each.entries()) each[at] = Math.max(each[at] ?? 0, share);
    bests.push(found.best);
  }
  const [asked = 0, ...written] = bests;
  const best = written.length === 0 ? asked : written.reduce((sum, share) => sum + share, 0) / written.length;
  return { each, best };
}

/** The span of a query, by OpenTelemetry's names. */
function toSpan({ collection, topK }: QueryInput): SpanStart {
  const source = collection === undefined ? undefined : [collection].flat().join(",");
  const attributes = defined({
    "gen_ai.operation.name": "retrieval",
    "gen_ai.data_source.id": source,
    "gen_ai.request.top_k": topK,
  });
  return { name: source === undefined ? "retrieval" : `retrieval ${source}`, kind: "INTERNAL", attributes };
}

/** What a passage says, and where it stands. */
const textOf = ({ title, heading = "", content }: Omit<QueryResult, "coverage">) => `${title}\n${heading}\n${content}`;

function toResult({ hit, chunks }: Passage, header: DocumentHeader | undefined): Omit<QueryResult, "coverage"> {
  return {
    content: joinChunks(chunks),
    documentId: hit.documentId,
    score: hit.score,
    similarity: hit.similarity,
    title: header?.title ?? "",
    chunkId: hit._id,
    chunkIds: chunks.map(({ _id }) => _id),
    index: hit.n,
    ...placeOf(hit),
  };
}

/** What the searches that a model wrote weigh together, beside the question as it was asked. */
const REWRITTEN_WEIGHT = 3;

type Hits = Pick<CurrentHits, "hits" | "headers" | "warnings">;

/** The hits of a question and of the searches that were written for it, as one list by their ranks. */
function uniteHits(asked: Hits, written: readonly Hits[]): Hits {
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
