import type { OutputItem, ResponseObject } from "../gateway/responses/response-schemas.ts";
import type { StoredResponse } from "../store/response-store.ts";

/** The texts of a response, and of its items as they are kept, with their bytes. */
export function toTexts({ output: _output, ...about }: ResponseObject, kept: readonly OutputItem[]) {
  const [response, output] = [JSON.stringify(about), JSON.stringify(kept)];
  return { response, output, bytes: { response: Buffer.byteLength(response), output: Buffer.byteLength(output) } };
}

/** A stored response with its items as they are kept. */
export function readResponse({ response, output }: Pick<StoredResponse, "response" | "output">): ResponseObject {
  const about = JSON.parse(response) as Omit<ResponseObject, "output">; // as `toTexts` wrote it
  return { ...about, output: JSON.parse(output) as OutputItem[] }; // likewise
}
