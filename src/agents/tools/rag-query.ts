import { z } from "zod";
import type { Rag } from "../../rag/rag.ts";
import { type AgentTool, defineTool } from "./tool.ts";
import type { RagQueryConfig } from "./tool-configs.ts";

const DEFAULT_TOP_K = 5;
const TIMEOUT_MS = 30_000;

/** Searches the tenant's documents: those that the agent is limited to, and never more passages than it may have. */
export function makeRagQueryTool(
  rag: Pick<Rag, "query">,
  named: Pick<AgentTool, "name"> & { description?: string | undefined },
  { topK: most = DEFAULT_TOP_K, documentIds }: RagQueryConfig,
): AgentTool {
  return defineTool({
    name: named.name,
    description:
      named.description ?? "Searches the documents and returns the passages that fit best, with their titles.",
    input: z.object({
      query: z.string().trim().min(1).max(8_192).describe("What to look for, in words"),
      topK: z.number().int().min(1).max(50).optional().describe(`Most passages; at most ${most}`),
    }),
    timeoutMs: TIMEOUT_MS,
    async run({ query, topK = most }, { caller, limit, signal }) {
      const asked = {
        query,
        topK: Math.min(topK, most),
        mode: "hybrid" as const,
        ...(documentIds ? { documentIds } : {}),
      };
      const results = await rag.query({ ...caller, limit }, asked, signal);
      if (results.length === 0) return "No passage fits.";
      return results.map((result) => `${toTitle(result)}\n${result.content}`).join("\n\n");
    },
  });
}

/** Where a passage comes from, as a line in brackets. */
function toTitle({
  title,
  documentId,
  page,
  heading,
}: {
  title: string;
  documentId: string;
  page?: number | undefined;
  heading?: string | undefined;
}): string {
  const parts = [
    title,
    ...(heading === undefined ? [] : [heading]),
    ...(page === undefined ? [] : [`page ${page}`]),
    documentId,
  ];
  return `[${parts.join(", ")}]`;
}
