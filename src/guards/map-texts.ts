import type { GuardedText } from "./call-guard.ts";
import { HEAD, isEncodedText } from "./readings.ts";
import type { GuardPlace } from "./rules.ts";

/** Fields of vendors' wires whose texts are ids of calls. */
const idFields = new Set("call_id tool_call_id tool_use_id item_id".split(" "));
/** What a provider has signed or encrypted, by the `type` of its object in vendors' wires. */
const sealedFields: Readonly<Record<string, string>> = {
  thinking: "signature",
  redacted_thinking: "data",
  reasoning: "encrypted_content",
  compaction: "encrypted_content",
  web_search_result: "encrypted_content",
};
/** Such a text: long, and without blanks. */
const sealed = /^[\w+/=:.-]{40,}$/;
/** Fields of vendors' wires in which a caller's own objects stand. */
const ownFields = new Set("metadata parameters input_schema schema defs examples".split(" "));
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
const bytesUrl = /^data:(?:image|audio|video|application\/pdf)[\w.+/-]{0,80}(?:;[\w.=-]{1,40}){0,4};base64,/;
/** How base64 of a PNG, JPEG, GIF, WebP and PDF begins. */
const knownBytes = /^\s*(?:iVBORw|\/9j\/|R0lGOD|UklGR|JVBERi)/;
const base64 = /^[\w+/=\r\n-]*$/;
/** Base64 of other bytes is longer than a value. */
const MIN_BYTES = 200;
/** The beginning of an id, which names nothing. */
const idPrefix = /^(?:[a-z]+[_-])+/i;
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
const MAX_DEPTH = 200;

type Visit = (text: GuardedText) => string;

/** Where a value stands: `name` of its field, the `type` of the object that has it, and whether a vendor's wire says what it is. */
type Position = { place: GuardPlace; field: string; name: string; type: string; isWire: boolean; depth: number };

/**
 * What `visit` makes of each text of a value, in its order. `isWire`: it is of a vendor's wire, whose objects say by their types at which
 * place their texts are, and which fields are ids, or are sealed. Whatever else looks so is a caller's own, and is read.
 */
export function mapTexts<T>(
  value: T,
  { place, field, isWire = false }: { place: GuardPlace; field: string; isWire?: boolean },
  visit: Visit,
): T {
  return mapAt(value, { place, field, name: "", type: "", isWire, depth: 0 }, visit) as T; // texts stay texts, and all else is as it was
}

function mapAt(one: unknown, at: Position, visit: Visit): unknown {
  const { place, field, name, depth } = at;
  if (typeof one === "string") return mapText(one, at, visit);
  if (typeof one === "number" && Number.isInteger(one) && Math.abs(one) >= MIN_NUMBER) {
    const text = visit({ place, field, text: String(one), ...labelOf(name) });
    return text === String(one) ? one : text;
  }
  if (typeof one !== "object" || one === null || ArrayBuffer.isView(one) || one instanceof Date) return one;
  if (depth > MAX_DEPTH) throw new RangeError("a value is too deep to be guarded");
  if (Array.isArray(one))
    return one.map((item, index) => mapAt(item, { ...at, field: `${field}[${index}]`, depth: depth + 1 }, visit));
  return mapObject(one, at, visit);
}

function mapObject(one: object, { place, field, isWire, depth }: Position, visit: Visit): object {
  const { type: given } = one as { type?: unknown };
  const type = isWire && typeof given === "string" ? given : "";
  const own = placeOfType[type] ?? place;
  const entries = Object.entries(one).map(([key, inner]) => {
    const name = mayHold.test(key) ? visit({ place: own, field, text: key }) : key;
    const isOwn = ownFields.has(key) || (key === "input" && own === "toolInput");
    const at = { place: own, field: field === "" ? key : `${field}.${key}`, name: key, type, depth: depth + 1 };
    return [name, mapAt(inner, { ...at, isWire: isWire && !isOwn }, visit)];
  });
  return Object.fromEntries(entries);
}

function mapText(text: string, { place, field, name, type, isWire }: Position, visit: Visit): string {
  const head = text.startsWith("data:") ? bytesUrl.exec(text)?.[0] : undefined;
  if (head !== undefined && isBytes(text, head.length)) return text;
  if (isWire && sealedFields[type] === name && sealed.test(text)) return text;
  if (isWire && type === "base64" && name === "data" && isBytes(text)) return text;
  if (isWire && idFields.has(name)) return mapId(text, { place, field }, visit);
  return visit({ place, field, text, isJson: jsonFields.has(name), ...labelOf(name) });
}

const labelOf = (name: string) => (wireNames.has(name) ? {} : { label: name });
/** Whether base64 is of bytes and not of a text, which could be read. */
function isBytes(text: string, start = 0): boolean {
  const said = text.slice(start);
  if (!base64.test(said)) return false;
  const head = said.slice(0, HEAD);
  return knownBytes.test(head) || (said.length >= MIN_BYTES && !isEncodedText(head));
}

/** An id with its values marked, by characters that ids have. */
export function mapId(id: string, at: { place: GuardPlace; field: string }, visit: Visit): string {
  const prefix = idPrefix.exec(id)?.[0] ?? "";
  return prefix + visit({ ...at, text: id.slice(prefix.length), isId: true });
}

type Mapping<T> = (visit: Visit) => T;

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
