import { Document } from "@langchain/core/documents";
import { BaseRetriever } from "@langchain/core/retrievers";

/** A passage of `POST /rag/query`, beside its text. */
export type Passage = { documentId: string; title: string; heading?: string; page?: number; score: number };

/** A retriever for LangChain over `POST /rag/query`. `url` and `apiKey` are those of Switchyard. */
export class SwitchyardRetriever extends BaseRetriever<Passage> {
  override lc_namespace = ["switchyard"];
  readonly #fields: { url: string; apiKey: string; topK: number };

  constructor(fields: { url: string; apiKey: string; topK: number }) {
    super();
    this.#fields = fields;
  }

  override async _getRelevantDocuments(query: string): Promise<Document<Passage>[]> {
    const { url, apiKey, topK } = this.#fields;
    const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
    const body = JSON.stringify({ query, topK });
    const response = await fetch(`${url}/rag/query`, { method: "POST", headers, body });
    if (!response.ok) throw new Error(`/rag/query answered ${response.status}: ${await response.text()}`);
    const { results } = (await response.json()) as { results: (Passage & { content: string })[] };
    return results.map(({ content, ...metadata }) => new Document({ pageContent: content, metadata }));
  }
}
