import { z } from "zod";
import { defined } from "../../lib/defined.ts";
import { idSchema } from "../../lib/ids.ts";
import { collectionChoiceSchema } from "../../rag/collections.ts";
import { expandSchema, rerankSchema, rewriteSchema } from "../../rag/query-schemas.ts";
import { originOf } from "../run-state.ts";
import { toolKind } from "./tool.ts";

const DEFAULT_TOP_K = 5;
const TIMEOUT_MS = 30_000;

/** Searches the tenant's documents: those that the agent is limited to, and never more chunks than it may have. */
export const ragQuery = toolKind({
  schema: z
    .strictObject({
      topK: z.number().int().min(1).max(50).optional(),
      documentIds: z.array(idSchema("document")).min(1).max(1_000).optional().describe("All that it may find"),
      collection: collectionChoiceSchema.optional(),
      expand: expandSchema.optional(),
      rewrite: rewriteSchema.optional(),
      rerank: rerankSchema.optional(),
    })
    .default({}),
  check: ({ collection: wanted }, { deps, tenantId, field }) =>
    deps.rag.requireCollections({ tenantId }, { wanted, param: `${field}.collection` }),
  make: ({ topK: most = DEFAULT_TOP_K, documentIds, collection, expand, rewrite, rerank }, setup) => {
    const { tool, about, callOf, deps, caller } = setup;
    return tool(
      async ({ query, topK = most }, config) => {
        const { limit, signal, note } = callOf(config);
        const request = {
          query,
          mode: "hybrid" as const,
          topK: Math.min(topK, most),
          ...defined({ documentIds, collection, expand, rewrite, rerank }),
        };
        const { results } = await deps.rag.query({ ...caller, limit, origin: originOf(setup.run) }, request, signal);
        const passages = results.map(({ documentId, chunkId, title, page, heading, content }) =>
          defined({ documentId, chunkId, title, page, heading, content }),
        );
        note({ found: { query, passages } });
        if (results.length === 0) return "No passage fits.";
        return passages
          .map(({ title, heading, page, documentId, content }) => {
            const source = [title, heading, page === undefined ? undefined : `page ${page}`, documentId];
            return `[${source.filter((part) => part !== undefined).join(", ")}]\n${content}`;
          })
          .join("\n\n");
      },
      {
        ...about("Searches the documents and returns the passages that fit best, with their titles.", TIMEOUT_MS),
        schema: z.object({
          query: z.string().trim().min(1).max(8_192).describe("What to look for, in words"),
          topK: z.number().int().min(1).max(50).optional().describe(`Most passages; at most ${most}`),
        }),
      },
    );
  },
});
