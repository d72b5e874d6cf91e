import type { GuardedText } from "./call-guard.ts";
import type { GuardPlace } from "./rules.ts";

/** Fields whose texts are ids of calls, and what a provider has signed or encrypted. */
const wireFields = new Set(
  "call_id tool_call_id toolCallId tool_use_id item_id signature encrypted_content".split(" "),
);
/** Types of objects whose field `data` is bytes. */
const typesOfBytes = new Set(["base64", "redacted_thinking", "input_audio"]);
/** What a name of a field has that may hold a value. */
const mayHold = /[\d@]/;
/** Objects of vendors' wires by their `type`, whose texts a tool gets or has given. */
const placeOfType: Readonly<Record<string, GuardPlace>> = {
  tool_use: "toolInput",
  function_call: "toolInput",
  custom_tool_call: "toolInput",
  tool_result: "toolOutput",
  function_call_output: "toolOutput",
  custom_tool_call_output: "toolOutput",
};
/** Pictures and the like as URLs. Nothing but base64 may follow, so that no text hides behind one. */
const bytesUrl =
  /^data:(?:image|audio|video|application\/pdf)[\w.+/-]{0,80}(?:;[\w.=-]{1,40}){0,4};base64,[\w+/=\s-]*$/;
/** Fields of wires and bodies, whose names say nothing of what stands in them. */
const wireNames = new Set(
  "text content input output query message messages title arguments instructions prompt system systemPrompt name description".split(
    " ",
  ),
);
/** Numbers with fewer digits are no values. */
const MIN_NUMBER = 1_000_000;
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
    const label = wireNames.has(name) ? {} : { label: name };
    if (typeof one === "string") {
      if (wireFields.has(name) || (one.startsWith("data:") && bytesUrl.test(one))) return one;
      return visit({ place, field, text: one, isJson: jsonFields.has(name), ...label });
    }
    if (typeof one === "number" && Number.isSafeInteger(one) && one >= MIN_NUMBER) {
      const text = visit({ place, field, text: String(one), ...label });
      return text === String(one) ? one : text;
    }
    if (typeof one !== "object" || one === null || depth > MAX_DEPTH || ArrayBuffer.isView(one) || one instanceof Date)
      return one;
    if (Array.isArray(one)) return one.map((item, index) => map(item, place, `${field}[${index}]`, name, depth + 1));
    const type = Object(one).type;
    const own = (typeof type === "string" ? placeOfType[type] : undefined) ?? place;
    const isOfBytes = typesOfBytes.has(String(type));
    const entries = Object.entries(one).map(([key, inner]) => {
      const name = mayHold.test(key) ? visit({ place: own, field, text: key }) : key;
      const at = field === "" ? key : `${field}.${key}`;
      return [name, isOfBytes && key === "data" ? inner : map(inner, own, at, key, depth + 1)];
    });
    return Object.fromEntries(entries);
  };
  return map(value, at.place, at.field, "", 0) as T; // texts stay texts, and all else is as it was
}

type Mapping<T> = (visit: (text: GuardedText) => string) => T;

/** A mapping of texts by a function that takes all of them together. */
export async function mapAllTexts<T>(map: Mapping<T>, take: (texts: GuardedText[]) => Promise<string[]>): Promise<T> {
  return withTexts(map, await take(textsOf(map)));
}

/** The same at once. */
export const mapAllAtOnce = <T>(map: Mapping<T>, take: (texts: GuardedText[]) => string[]): T =>
  withTexts(map, take(textsOf(map)));

function textsOf(map: Mapping<unknown>): GuardedText[] {
  const texts: GuardedText[] = [];
  map((one) => {
    texts.push(one);
    return one.text;
  });
  return texts;
}

function withTexts<T>(map: Mapping<T>, taken: readonly string[]): T {
  let next = 0;
  return map(({ text }) => taken[next++] ?? text);
}
