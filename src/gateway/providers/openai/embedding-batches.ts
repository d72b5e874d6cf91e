import { AppError } from "../../../errors.ts";
import { readWireEmbeddings, toWireEmbeddings } from "../openai-wire/embed.ts";
import { wireEmbeddings } from "../openai-wire/schemas.ts";
import type { EmbeddingBatches, EmbeddingBatchItem, EmbeddingBatchResult, EmbeddingResult } from "../provider.ts";
import { fromWireError, malformed } from "../wire-errors.ts";
import { makeBatchFiles, type WireItem } from "./batch-files.ts";

const ENDPOINT = "/v1/embeddings";

/** Embeddings in OpenAI's Batch API. */
export function makeOpenAiEmbeddingBatches(baseUrl: string): EmbeddingBatches {
  const { submit, items, ...files } = makeBatchFiles(baseUrl);
  return {
    ...files,
    submit: (batchId, given, context) =>
      submit({ batchId, endpoint: ENDPOINT, file: given.map(toLine).join("") }, context),
    async *results(id, context) {
      for await (const item of items(id, context)) yield toResult(item);
    },
  };
}

function toLine({ customId, request }: EmbeddingBatchItem): string {
  const head = JSON.stringify({ custom_id: customId, method: "POST", url: ENDPOINT });
  return `${head.slice(0, -1)},"body":${toWireEmbeddings(request)}}\n`;
}

function toResult({ custom_id: customId, response, error }: WireItem): EmbeddingBatchResult {
  try {
    return { customId, result: readResponse(response, error?.message ?? "The provider gave no embeddings.") };
  } catch (failure) {
    if (!(failure instanceof AppError)) throw failure;
    return { customId, error: failure };
  }
}

function readResponse(response: WireItem["response"], otherwise: string): EmbeddingResult {
  if (!response) throw new AppError("provider_failed", otherwise);
  if (response.status_code >= 300) throw fromWireError(response.status_code, {}, JSON.stringify(response.body));
  const list = wireEmbeddings.safeParse(response.body);
  if (!list.success) throw malformed("what is not a list of embeddings");
  return readWireEmbeddings(list.data, { count: list.data.data.length, model: list.data.model ?? "" });
}
