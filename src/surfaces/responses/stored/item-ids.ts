import type { InputItem } from "../request-schemas.ts";

/** The kinds of an item's id, by its type. */
const kinds = {
  message: "msg",
  function_call: "fc",
  function_call_output: "fco",
  custom_tool_call: "ctc",
  custom_tool_call_output: "ctco",
  file_search_call: "fs",
  reasoning: "rs",
  mcp_call: "mcp",
  mcp_approval_request: "mcpr",
  mcp_approval_response: "mcpa",
  compaction: "cmp",
} as const;

/** An item that a response keeps of its input: one that says something. Tools are those of each request alone. */
export type KeptItem = Exclude<InputItem, { type: "item_reference" | "additional_tools" | "other" }>;

export const isKept = (item: InputItem): item is KeptItem =>
  item.type !== "item_reference" && item.type !== "additional_tools" && item.type !== "other";

/** Where a stored item is: the response that has it, and in which of its texts. */
type ItemPlace = { responseId: string; text: "input" | "output" };

const form = /^[a-z]{2,4}_([0-9A-HJKMNP-TV-Z]{26})_(in)?\d{1,4}$/;

/** The id of an item of a response's input. Those of its output are named alike, without `in`. */
export function toInputItemId(
  responseId: string,
  { type = "message" }: { type?: keyof typeof kinds | undefined },
  place: number,
): string {
  return `${kinds[type]}_${responseId.slice(responseId.indexOf("_") + 1)}_in${place}`;
}

/** The id of an item that joins a conversation by itself: the number `place` of those that come with it. */
export const toJoiningId = (
  ulid: string,
  { type = "message" }: { type?: keyof typeof kinds | undefined },
  place: number,
) => `${kinds[type]}_${ulid}_c${place}`;

/** Whether an id is that of an item of a response, of its input or output. */
export const isItemOf = (responseId: string, itemId: string): boolean =>
  itemId.includes(`_${responseId.slice(responseId.indexOf("_") + 1)}_`);

/** Where the item of an id is; undefined for an id that no response of ours gave. */
export function findPlace(id: string): ItemPlace | undefined {
  const [, ulid, isInput] = form.exec(id) ?? [];
  return ulid === undefined ? undefined : { responseId: `resp_${ulid}`, text: isInput ? "input" : "output" };
}
