import type { AnsweredChat, ChatEvent } from "../../gateway/chat/steps.ts";
import type { PlacedCitation } from "../../gateway/citation.ts";
import { defined } from "../../lib/defined.ts";
import type { VectorStores } from "../../vector-stores/vector-stores.ts";
import type { AnsweredResponse, CitationDelta, ResponseStep } from "./steps.ts";

type Files = Pick<VectorStores, "filesOf">;

/** What a run that answers in the place of a model cites, as annotations of its text: before its end, when all of the text is there. */
export async function* annotateStream(
  files: Files,
  tenantId: string,
  batches: AsyncIterable<ChatEvent[]>,
): AsyncGenerator<ResponseStep[]> {
  for await (const batch of batches) {
    const end = batch.find((event) => event.type === "end");
    if (!end?.citations?.length) yield batch;
    else yield [...batch.filter((event) => event !== end), ...(await toDeltas(files, tenantId, end.citations)), end];
  }
}

/** The same of a whole answer, whose text becomes the last of its steps. */
export async function annotate(files: Files, tenantId: string, answered: AnsweredChat): Promise<AnsweredResponse> {
  const { citations, text, steps = [] } = answered;
  if (!citations?.length) return answered;
  const cited = await toDeltas(files, tenantId, citations);
  return { ...answered, text: "", steps: [...steps, { type: "text-delta", text }, ...cited] };
}

async function toDeltas(files: Files, tenantId: string, citations: readonly PlacedCitation[]) {
  const known = await files.filesOf(
    tenantId,
    citations.map(({ documentId }) => documentId),
  );
  return citations.map(({ documentId, chunkId, title, page, heading, quote, endIndex: index }): CitationDelta => {
    const { fileId = documentId, filename = title } = known.get(documentId) ?? {};
    const cited = { file_id: fileId, filename, document_id: documentId, chunk_id: chunkId, quote };
    return { type: "citation", of: { ...cited, ...defined({ page, heading }) }, index };
  });
}
