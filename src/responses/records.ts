import type { MadeResponse } from "../gateway/responses/response.ts";
import type { OutputItem, ResponseObject } from "../gateway/responses/response-schemas.ts";
import type { StoredResponse } from "../store/response-store.ts";

/** The texts of a response, and of its items as they are kept, with their bytes. */
export function toTexts(made: ResponseObject, kept: readonly OutputItem[]) {
  // A copy without the output would cost as much again as its text.
  const [response, output] = [JSON.stringify({ ...made, output: undefined }), JSON.stringify(kept)];
  return { response, output, bytes: { response: Buffer.byteLength(response), output: Buffer.byteLength(output) } };
}

/** The JSON of a response by its stored texts; undefined where its items are kept with more than its caller gets. */
export function toJson(
  { response, output }: Pick<StoredResponse, "response" | "output">,
  { response: { output: shown }, kept }: MadeResponse,
): string | undefined {
  const isSame = shown.length === kept.length && kept.every((item, place) => item === shown[place]);
  return isSame ? `${response.slice(0, -1)},"output":${output}}` : undefined;
}

/** A stored response with its items as they are kept. */
export function readResponse({ response, output }: Pick<StoredResponse, "response" | "output">): ResponseObject {
  const about = JSON.parse(response) as Omit<ResponseObject, "output">; // as `toTexts` wrote it
  return { ...about, output: JSON.parse(output) as OutputItem[] }; // likewise
}
