import type { GatewayCaller } from "../gateway/money/account.ts";
import { makeShares } from "../isolation/shares.ts";
import { defined } from "../lib/defined.ts";
import { inSpan, type SpanStart } from "../observe/tracing.ts";
import { placeOf } from "../store/chunk.ts";
import type { DocumentHeader } from "../store/document-header.ts";
import type { Caller } from "../tenancy/roles.ts";
import { measureCoverage } from "./coverage.ts";
import type { RagDeps } from "./deps.ts";
import { makeEmbedQuery } from "./embed-query.ts";
import { expandHits } from "./expand-hits.ts";
import { makeFindHits } from "./find-hits.ts";
import { foldText } from "./fold-text.ts";
import { joinChunks, mergeHits, type Passage } from "./merge-hits.ts";
import type { QueryInput, QueryOutcome, QueryResult } from "./query-schemas.ts";
import { lexicalQuery } from "./query-words.ts";
import { RERANKED, rerankHits } from "./rerank.ts";

export type QueryDeps = Pick<RagDeps, "store" | "gateway" | "embeddingModels" | "pace" | "logger">;
export type RunQuery = (
  caller: GatewayCaller & Pick<Caller, "collections">,
  input: QueryInput,
) => Promise<QueryOutcome>;

/**
 * Makes the function that runs queries. Its stages: the vectors of the query (`embed-query.ts`), the documents that are asked
 * (`find-hits.ts`, `choose-documents.ts`), the searches (`candidates.ts`), one list of them (`rank-hits.ts`), the hits that
 * still hold (`current-hits.ts`), their order by a model (`rerank.ts`), the chunks beside them (`expand-hits.ts`), those that
 * belong together as one (`merge-hits.ts`), the results.
 */
export function makeQuery(deps: QueryDeps): RunQuery {
  const turns = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: 1 });
  const queryVectors = makeEmbedQuery(deps);
  const findHits = makeFindHits(deps);
  return (caller, input) => inSpan(toSpan(input), () => runQuery(caller, input));

  async function runQuery(...[caller, input]: Parameters<RunQuery>): Promise<QueryOutcome> {
    const { tenantId, signal } = caller;
    const { mode, topK, minScore = 0, minCoverage = 0, expand, rerank } = input;
    const query = foldText(input.query);
    const embed = queryVectors.forQuery(caller, query);
    const spaces = await queryVectors.lastInUse(tenantId);
    const { hits, headers, warnings, holders } = await findHits(caller, input, {
      text: lexicalQuery(query),
      mode,
      topK: rerank ? Math.max(topK, RERANKED) : topK,
      isJudged: rerank !== undefined,
      isSemantic: deps.gateway.isSemantic,
      spaces,
      spacesInUse: (read) => queryVectors.inUse(tenantId, read),
      vectorsFor: embed,
      inWideTurn: async (search) => {
        const leave = await turns.enter(tenantId, signal);
        return deps.pace.share(tenantId, signal, search).finally(leave);
      },
    });
    const ranked = rerank && (await rerankHits(deps, caller, { query, wish: rerank, hits, headers }));
    const shown = (ranked?.hits ?? hits).filter(({ score }) => score >= minScore).slice(0, topK);
    const passages =
      expand === undefined
        ? shown.map((hit) => ({ hit, chunks: [hit] }))
        : mergeHits(await expandHits(deps, tenantId, { hits: shown, count: expand }));
    const found = passages.map((passage) => toResult(passage, headers.get(passage.hit.documentId)));
    const { each, together } = measureCoverage(query, found.map(textOf), holders);
    const results: QueryResult[] = [];
    for (const [at, coverage] of each.entries())
      if (coverage >= minCoverage && found[at]) results.push({ ...found[at], coverage });
    return {
      results,
      coverage: together,
      ...defined({ rerank: ranked?.report }),
      ...(warnings.length > 0 ? { warnings } : {}),
    };
  }
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
