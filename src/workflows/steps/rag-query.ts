import { z } from "zod";
import { defined } from "../../lib/defined.ts";
import { invalidRequest } from "../../lib/errors.ts";
import { idSchema } from "../../lib/ids.ts";
import { collectionChoiceSchema } from "../../rag/collections.ts";
import { expandSchema, rerankSchema, rewriteSchema } from "../../rag/query-schemas.ts";
import { fromStoredCaller } from "../../tenancy/roles.ts";
import { commonFields, originOf, stepKind, template, textField } from "./step.ts";

const DEFAULT_TOP_K = 10;
/** Longest query, in characters; that of `POST /rag/query`. */
const MAX_QUERY = 8_192;

/** Searches the tenant's documents. */
export const ragQuery = stepKind({
  schema: z.strictObject({
    type: z.literal("rag_query"),
    ...commonFields,
    query: template,
    topK: z.number().int().min(1).max(50).optional(),
    documentIds: z.array(idSchema("document")).min(1).max(1_000).optional(),
    collection: collectionChoiceSchema.optional(),
    expand: expandSchema.optional(),
    rewrite: rewriteSchema.optional(),
    rerank: rerankSchema.optional(),
  }),
  summary: "query, topK?, documentIds?, collection?, expand?, rewrite?, rerank?",
  fields: ({ query }) => textField("query", query),
  check: ({ collection: wanted }, { deps, tenantId, field }) =>
    deps.rag.requireCollections({ tenantId }, { wanted, param: `${field}.collection` }),
  stub: ({ step: { topK = DEFAULT_TOP_K, collection, documentIds } }, { query }) => ({
    output: [{ documentId: null, title: null, content: "[a passage]", score: 1 }],
    call: { query, topK, collection, documentIds },
  }),
  async run({ deps, run, step, place, fill, limit, signal }) {
    const query = String((await fill()).query).trim();
    const invalid = (message: string) => invalidRequest(`${place.field}.query`, message);
    if (query === "") throw invalid("The query is empty.");
    if (query.length > MAX_QUERY) throw invalid(`The query is longer than ${MAX_QUERY} characters.`);
    const { topK = DEFAULT_TOP_K, documentIds, collection, expand, rewrite, rerank } = step;
    const request = {
      query,
      topK,
      mode: "hybrid" as const,
      ...defined({ documentIds, collection, expand, rewrite, rerank }),
    };
    const caller = { ...fromStoredCaller(run.tenantId, run.caller), limit, origin: originOf(run) };
    const { results: output } = await deps.rag.query(caller, request, signal);
    return { output };
  },
});
