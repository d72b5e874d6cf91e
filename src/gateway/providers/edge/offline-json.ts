import { contentWords, cutText, toSentences } from "./offline-rank.ts";

/** Sentences and characters that values are looked for in; levels and values of one object, at most. */
const MAX_SENTENCES = 200;
const MAX_CHARACTERS = 40_000;
const MAX_LEVELS = 12;
const MAX_VALUES = 1_000;
/** Values that are looked for in the text, which costs a look at each sentence; further ones are made by their type. */
const MAX_LOOKED_FOR = 200;
const MAX_TEXT = 300;
const MAX_LISTED = 3;

type Schema = Record<string, unknown>;
/** What a value is asked for by: the name of its field, and the words of that and of its description. */
type Wanted = { name: string; words: readonly string[] };
/** What a text says of something. */
type Found = { label: string | undefined; sentences: readonly string[] };

/**
 * A value for a JSON Schema, of what a text says: what follows a field's name ("The town: Graz"), else the sentence that shares
 * most words with the field's name and description. Deterministic; a schema's `pattern` is not looked at, and may be missed.
 */
export function fillSchema(root: Schema, given: string): unknown {
  const sentences = toSentences(given).slice(-MAX_SENTENCES);
  const text = sentences.join(" ").slice(-MAX_CHARACTERS);
  const find = makeFinder(sentences);
  const findForm = makeFormFinder(text);
  let values = 0;

  const fill = (given: Schema, wanted: Wanted, level: number): unknown => {
    values += 1;
    const schema = toPlain(root, given);
    if ("const" in schema) return schema.const;
    const type = typeOf(schema);
    if (values > MAX_VALUES || level > MAX_LEVELS) return type === "array" ? [] : type === "object" ? {} : null;
    if (type === "object") return fillObject(schema, level);
    if (type === "null") return null;
    const found = find(wanted);
    if (Array.isArray(schema.enum)) return choose(schema.enum, found, text);
    if (type === "array") return fillList(schema, wanted, found, level);
    if (type === "boolean") return found.sentences.some((one) => !/\b(?:no|not|never|false|without)\b/i.test(one));
    if (type === "number" || type === "integer") return toNumber(schema, type, found, text);
    return toText(schema, found, { text, findForm });
  };

  const fillObject = ({ properties, required }: Schema, level: number) => {
    const fields = Object.entries(toSchema(properties));
    const names = Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
    const missing = names
      .filter((name) => !fields.some(([known]) => known === name))
      .map((name) => [name, {}] as const);
    return Object.fromEntries(
      [...fields, ...missing].map(([name, inner]) => {
        const schema = toSchema(inner);
        const about = typeof schema.description === "string" ? schema.description : "";
        const plain = name.replace(/(?<=[a-z\d])(?=[A-Z])|[_-]+/g, " ").toLowerCase();
        return [
          name,
          fill(schema, { name: plain, words: contentWords(`${plain} ${about.slice(0, MAX_TEXT)}`) }, level + 1),
        ];
      }),
    );
  };

  const fillList = ({ items, minItems, maxItems }: Schema, wanted: Wanted, found: Found, level: number) => {
    const inner = toSchema(items);
    const isText = typeOf(toPlain(root, inner)) === "string" && !("enum" in inner) && !("format" in inner);
    const parts = found.label?.split(/,\s*|\s+and\s+/).filter((part) => part !== "") ?? found.sentences;
    const listed: unknown[] = isText
      ? parts.slice(0, found.label ? MAX_TEXT : MAX_LISTED)
      : [fill(inner, wanted, level + 1)];
    const least = Math.min(numberOr(minItems, 0), MAX_VALUES);
    while (listed.length < least) listed.push(fill(inner, wanted, level + 1));
    return listed.slice(0, numberOr(maxItems, listed.length));
  };

  return fill(root, { name: "", words: [] }, 0);
}

/** Finds what a text says of a field: what follows its name, and the sentences that share words with it, the best first. */
function makeFinder(sentences: readonly string[]): (wanted: Wanted) => Found {
  const known = sentences.map((sentence) => ({
    sentence,
    lower: sentence.toLowerCase(),
    words: new Set(contentWords(sentence)),
  }));
  let looked = 0;
  return ({ name, words }) => {
    looked += 1;
    if (looked > MAX_LOOKED_FOR || words.length === 0) return { label: undefined, sentences: [] };
    const label = known
      .map(({ sentence, lower }) => labelled(sentence, lower, name))
      .find((value) => value !== undefined);
    const scored = known.map(({ sentence, words: own }) => {
      const shared = words.filter((word) => own.has(word)).length;
      return { sentence, score: sentence.endsWith("?") ? shared * 0.3 : shared };
    });
    const best = scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score);
    return { label, sentences: best.map(({ sentence }) => sentence) };
  };
}

/** What a sentence says behind a name: `Graz` of "The town is Graz." */
function labelled(sentence: string, lower: string, name: string): string | undefined {
  const at = name === "" ? -1 : lower.indexOf(name);
  const isWord = at >= 0 && !/\p{L}/u.test(lower[at - 1] ?? " ");
  if (!isWord || lower.endsWith("?")) return undefined;
  const said = /^\s*(?:is|are|was|were|:|=)\s*(\S.*)$/is.exec(sentence.slice(at + name.length))?.[1];
  return said?.replace(/[.!?]{1,3}$/, "");
}

function choose(allowed: readonly unknown[], { label, sentences }: Found, text: string): unknown {
  for (const said of [label ?? "", ...sentences.slice(0, 1), text]) {
    const lower = said.toLowerCase();
    const fitting = allowed.find((value) => value !== null && lower.includes(String(value).toLowerCase()));
    if (fitting !== undefined) return fitting;
  }
  return allowed[0];
}

function toNumber(schema: Schema, type: string, { label = "", sentences }: Found, text: string): number {
  const read = (said: string) => /-?\d+(?:\.\d+)?/.exec(said.replace(/(?<=\d),(?=\d{3})/g, ""))?.[0];
  const said = read(label) ?? read(sentences[0] ?? "") ?? read(text) ?? "0";
  const step = numberOr(schema.multipleOf, type === "integer" ? 1 : 0);
  const lowest = Math.max(
    numberOr(schema.minimum, -Infinity),
    numberOr(schema.exclusiveMinimum, -Infinity) + (step || 1),
  );
  const highest = Math.min(
    numberOr(schema.maximum, Infinity),
    numberOr(schema.exclusiveMaximum, Infinity) - (step || 1),
  );
  const value = Math.min(Math.max(Number(said), lowest), highest);
  return step > 0 ? Math.round(value / step) * step : value;
}

/** Forms of texts, how they are found, and one of each that is nobody's. */
const formats: Readonly<Record<string, { found: RegExp; other: string }>> = {
  date: { found: /\b\d{4}-\d{2}-\d{2}\b/, other: "1970-01-01" },
  "date-time": { found: /\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:Z|[+-]\d{2}:\d{2})/, other: "1970-01-01T00:00:00Z" },
  time: { found: /\b\d{2}:\d{2}:\d{2}Z/, other: "00:00:00Z" },
  email: { found: /\b[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,63}\b/, other: "nobody@example.com" },
  uri: { found: /\bhttps?:\/\/[^\s"<>]{1,500}/, other: "https://example.com/" },
  uuid: { found: /\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b/i, other: "00000000-0000-0000-0000-000000000000" },
  ipv4: { found: /\b(?:\d{1,3}\.){3}\d{1,3}\b/, other: "192.0.2.1" },
};

/** Finds the first text of a form, once for all values of that form. */
function makeFormFinder(text: string) {
  const known = new Map<string, string>();
  return (name: string): string | undefined => {
    const form = Object.hasOwn(formats, name) ? formats[name] : undefined;
    if (form && !known.has(name)) known.set(name, form.found.exec(text)?.[0] ?? form.other);
    return known.get(name);
  };
}

type Source = { text: string; findForm: ReturnType<typeof makeFormFinder> };

function toText({ format, minLength, maxLength }: Schema, { label, sentences }: Found, { text, findForm }: Source) {
  const inForm = typeof format === "string" ? findForm(format) : undefined;
  if (inForm !== undefined) return inForm;
  const said = cutText(label ?? sentences[0] ?? text.trim(), numberOr(maxLength, MAX_TEXT));
  return said.padEnd(Math.min(numberOr(minLength, 0), MAX_TEXT), ".");
}

/** A schema without its references and unions: the first branch that is more than null. */
function toPlain(root: Schema, given: Schema, hops = 0): Schema {
  if (hops > MAX_LEVELS) return given;
  if (typeof given.$ref === "string") return toPlain(root, resolve(root, given.$ref), hops + 1);
  const branches = [given.anyOf, given.oneOf].find(Array.isArray)?.map(toSchema) ?? [];
  const branch = branches.find((one) => typeOf(one) !== "null");
  if (branch) return toPlain(root, { ...given, anyOf: undefined, oneOf: undefined, ...branch }, hops + 1);
  if (!Array.isArray(given.allOf)) return given;
  const parts = given.allOf.map((one) => toPlain(root, toSchema(one), hops + 1));
  const properties = Object.assign({}, toSchema(given.properties), ...parts.map((one) => toSchema(one.properties)));
  return Object.assign({}, ...parts, given, { allOf: undefined, properties });
}

/** What a reference within the schema points at. */
function resolve(root: Schema, pointer: string): Schema {
  const keys = pointer.replace(/^#\/?/, "").split("/");
  const plain = (key: string) => key.replaceAll("~1", "/").replaceAll("~0", "~");
  return keys.reduce<Schema>((at, key) => (key === "" ? at : toSchema(at[plain(key)])), root);
}

function typeOf({ type, properties, items }: Schema): string {
  const named = Array.isArray(type) ? type.find((one) => one !== "null") : type;
  if (typeof named === "string") return named;
  return properties !== undefined ? "object" : items !== undefined ? "array" : "string";
}

const numberOr = (value: unknown, other: number) => (typeof value === "number" ? value : other);

/** A part of a schema as the caller gave it; what is no object counts as empty. */
function toSchema(value: unknown): Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}
