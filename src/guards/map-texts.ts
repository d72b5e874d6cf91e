import type { GuardedText } from "./call-guard.ts";
import type { GuardPlace } from "./rules.ts";

/** Fields whose texts are names of the wire, ids, and what a provider has signed or encrypted. */
const wireFields = new Set(
  "role type id call_id tool_call_id toolCallId tool_use_id item_id status detail object signature encrypted_content media_type provider".split(
    " ",
  ),
);
/** Objects of vendors' wires by their `type`, whose texts a tool gets or has given. */
const placeOfType: Readonly<Record<string, GuardPlace>> = {
  tool_use: "toolInput",
  function_call: "toolInput",
  custom_tool_call: "toolInput",
  tool_result: "toolOutput",
  function_call_output: "toolOutput",
  custom_tool_call_output: "toolOutput",
};
/** Texts of JSON, as tools take them. */
const jsonFields = new Set(["arguments"]);
const MAX_DEPTH = 100;

/** What `visit` makes of each text of a value, in its order: `place` holds where no object says another one. */
export function mapTexts<T>(
  value: T,
  at: { place: GuardPlace; field: string },
  visit: (text: GuardedText) => string,
): T {
  const map = (one: unknown, place: GuardPlace, field: string, name: string, depth: number): unknown => {
    if (typeof one === "string") {
      const isSkipped = wireFields.has(name) || one.startsWith("data:");
      return isSkipped ? one : visit({ place, field, text: one, isJson: jsonFields.has(name) });
    }
    if (typeof one !== "object" || one === null || depth > MAX_DEPTH || ArrayBuffer.isView(one) || one instanceof Date)
      return one;
    if (Array.isArray(one)) return one.map((item, index) => map(item, place, `${field}[${index}]`, name, depth + 1));
    const type = Object(one).type;
    const own = (typeof type === "string" ? placeOfType[type] : undefined) ?? place;
    const entries = Object.entries(one).map(([key, inner]) => [
      key,
      map(inner, own, field === "" ? key : `${field}.${key}`, key, depth + 1),
    ]);
    return Object.fromEntries(entries);
  };
  return map(value, at.place, at.field, "", 0) as T; // texts stay texts, and all else is as it was
}

/** A mapping of texts by a function that takes all of them at once. */
export function mapAllTexts<T>(
  map: (visit: (text: GuardedText) => string) => T,
  take: (texts: GuardedText[]) => string[],
): T {
  const texts: GuardedText[] = [];
  map((one) => {
    texts.push(one);
    return one.text;
  });
  const taken = take(texts);
  let next = 0;
  return map(({ text }) => taken[next++] ?? text);
}
