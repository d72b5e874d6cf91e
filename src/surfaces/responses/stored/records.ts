import { z } from "zod";
import type { StoredResponse } from "../../../store/response-store.ts";
import { inputItemSchema } from "../request-schemas.ts";
import type { MadeResponse } from "../response.ts";
import { type OutputItem, outputItemSchema, type ResponseObject, responseObjectSchema } from "../response-schemas.ts";
import { isKept, type KeptItem } from "./item-ids.ts";

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

const { output: _output, conversation, ...fields } = responseObjectSchema.shape;
/** Records of the releases before conversations have none. */
const responseRecord = z.object({ ...fields, conversation: conversation.default(null) });
const outputRecord = z.array(outputItemSchema);
/** What a response was asked may refer to items that others have answered: those first, they have the fields of both. */
const itemRecord = z.union([outputItemSchema, inputItemSchema]);
const itemsRecord = z.array(itemRecord);

/** A stored response with its items as they are kept. */
export function readResponse({ response, output }: Pick<StoredResponse, "response" | "output">): ResponseObject {
  return { ...responseRecord.parse(JSON.parse(response)), output: readOutput(output) };
}

/** The items of a response by their stored text. */
export const readOutput = (text: string): OutputItem[] => outputRecord.parse(JSON.parse(text));

/** An item of an input or output by its stored text. @throws TypeError for one that is not kept. */
export const readItem = (text: string): KeptItem | OutputItem => toKept(itemRecord.parse(JSON.parse(text)));

/** The items of a stored input or output. Throws as `readItem`. */
export const readItems = (text: string): (KeptItem | OutputItem)[] => itemsRecord.parse(JSON.parse(text)).map(toKept);

function toKept(item: z.output<typeof itemRecord>): KeptItem | OutputItem {
  if (item.type === "mcp_call" || item.type === "mcp_approval_request" || isKept(item)) return item;
  throw new TypeError(`no record has an item of the type ${item.type}`);
}
