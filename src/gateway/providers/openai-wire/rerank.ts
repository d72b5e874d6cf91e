import { z } from "zod";
import type { RerankRequest, RerankResult, Served } from "../provider.ts";
import { malformed, parseWire } from "../wire-errors.ts";

const count = z.number().nullish().catch(undefined);
const reported = {
  usage: z.object({ total_tokens: count, prompt_tokens: count }).nullish().catch(undefined),
  meta: z
    .object({ tokens: z.object({ input_tokens: count }).nullish() })
    .nullish()
    .catch(undefined),
};
const wireRanking = z.object({
  results: z.array(z.object({ index: z.int().min(0), relevance_score: z.number() })),
  model: z.string().nullish(),
  ...reported,
});
const startedRanking = z.object({ results: z.array(z.unknown()), ...reported });

/** The body of `POST /rerank` as Cohere and Jina take it, and servers like vLLM and Text Embeddings Inference after them. */
export function toWireRerank({ model, query, documents }: RerankRequest): string {
  return JSON.stringify({ model, query, documents, top_n: documents.length });
}

/** @throws AppError `provider_failed` for what does not score the documents. */
export function fromWireRerank(body: string, { model, documents }: RerankRequest): RerankResult {
  const ranking = parseWire(wireRanking, body, "is not a ranking");
  const scores: (number | undefined)[] = documents.map(() => undefined);
  for (const { index, relevance_score: score } of ranking.results) {
    if (index >= documents.length) throw malformed("a ranking of documents that it was not asked for");
    scores[index] = score;
  }
  const usage = usageOf(ranking);
  return { scores, ...(usage ? { usage } : {}), model: ranking.model ?? model };
}

/** What a ranking that broke off reports; undefined when it is none at all. */
export function measureWireRerank(begun: unknown): Served | undefined {
  const parsed = startedRanking.safeParse(begun);
  if (!parsed.success) return undefined;
  const usage = usageOf(parsed.data);
  return usage ? { usage: { ...usage, outputTokens: 0 } } : {};
}

/** Jina counts in `usage`, Cohere in `meta`, where it counts tokens at all. */
function usageOf({ usage, meta }: Pick<z.infer<typeof wireRanking>, "usage" | "meta">) {
  const inputTokens = usage?.total_tokens ?? usage?.prompt_tokens ?? meta?.tokens?.input_tokens;
  return typeof inputTokens === "number" ? { inputTokens } : undefined;
}
