import { defined } from "../defined.ts";
import type { GatewayCaller } from "../gateway/money/account.ts";
import { makeShares } from "../isolation/shares.ts";
import type { DocumentHeader } from "../store/document-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import { chooseDocuments } from "./choose-documents.ts";
import { findCurrent } from "./current-hits.ts";
import type { RagDeps } from "./deps.ts";
import { makeEmbedQuery } from "./embed-query.ts";
import { lexicalQuery } from "./query-words.ts";
import type { Hit } from "./rank-hits.ts";
import type { QueryInput, QueryResult } from "./schemas.ts";

export type QueryDeps = Pick<RagDeps, "store" | "gateway">;
export type RunQuery = (
  caller: GatewayCaller & Pick<Caller, "collections">,
  input: QueryInput,
) => Promise<QueryResult[]>;

/**
 * Makes the function that runs queries. Its stages: the documents that are asked (`choose-documents.ts`), the searches
 * (`candidates.ts`), one list of them (`rank-hits.ts`), the hits that still hold (`current-hits.ts`), the results.
 */
export function makeQuery(deps: QueryDeps): RunQuery {
  const turns = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: 1 });
  const embedQuery = makeEmbedQuery(deps);
  return async (caller, input) => {
    const { tenantId, signal } = caller;
    const { query, mode, topK } = input;
    const [vector, chosen] = await Promise.all([embedQuery(caller, query), chooseDocuments(deps, caller, input)]);
    if (chosen.documentIds?.length === 0) return [];
    const search = { text: lexicalQuery(query), vector, ...chosen };
    const enterWide = () => turns.enter(tenantId, signal);
    const { hits, headers } = await findCurrent(deps, tenantId, { ...search, mode, topK, enterWide });
    return hits.map((hit) => toResult(hit, headers.get(hit.documentId)));
  };
}

function toResult(hit: Hit, header: DocumentHeader | undefined): QueryResult {
  return {
    content: hit.content,
    documentId: hit.documentId,
    score: hit.score,
    similarity: hit.similarity,
    title: header?.title ?? "",
    chunkId: hit._id,
    ...defined({ page: hit.page, heading: hit.heading }),
  };
}
