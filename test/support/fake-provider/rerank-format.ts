import { estimateTokens } from "../../../src/gateway/tokens.ts";
import type { Behaviour } from "./behaviour.ts";
import { chatFormat } from "./openai-format.ts";
import type { WireFormat, WireRequest } from "./wire-format.ts";

/** `POST /rerank` as Cohere and Jina have it. A document's score is the share of the query's words that it holds. */
export const rerankFormat: WireFormat = {
  ...chatFormat,
  refuse: (body) =>
    typeof body.query === "string" && documentsOf(body).length > 0
      ? undefined
      : { status: 400, errorMessage: "query and documents are required" },
  toAnswer: (body, behaviour) => {
    const words = String(body.query).toLowerCase().split(/\W+/).filter(Boolean);
    const results = documentsOf(body).map((text, index) => {
      const found = words.filter((word) => text.toLowerCase().includes(word));
      return { index, relevance_score: found.length / words.length };
    });
    const tokens = toRerankUsage(body, behaviour).prompt_tokens;
    const usage = behaviour.usage === false ? {} : { usage: { total_tokens: tokens } };
    return { model: body.model, results: results.sort((a, b) => b.relevance_score - a.relevance_score), ...usage };
  },
  toEvents: () => [],
};

const documentsOf = (body: WireRequest) => (Array.isArray(body.documents) ? (body.documents as string[]) : []);

/** The query counts once for each document. */
export function toRerankUsage(body: WireRequest, behaviour: Behaviour) {
  if (typeof behaviour.usage === "object") return { ...behaviour.usage, completion_tokens: 0 };
  const tokens = documentsOf(body).map((text) => estimateTokens(`${String(body.query)}\n${text}`));
  return { prompt_tokens: tokens.reduce((sum, count) => sum + count, 0), completion_tokens: 0 };
}
