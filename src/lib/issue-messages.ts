import type { z } from "zod";
import { nearNames } from "./near-names.ts";

type RawIssue = Parameters<z.core.$ZodErrorMap>[0];

/** Most unknown names of one object that are compared with those that are known. */
const MAX_COMPARED = 3;
/** Most values that a message lists. */
const MAX_LISTED = 40;

const kinds: Record<string, string> = {
  int: "a whole number",
  array: "an array",
  object: "an object",
  record: "an object",
  null: "null",
  nan: "a number",
};
const forms: Record<string, string> = {
  date: "must be a date, as 2026-01-31",
  datetime: "must be a date and time, as 2026-01-31T12:00:00Z",
  url: "must be a URL",
};

/** What is wrong with a value, in words that follow its field's name; for issues of schemas that say nothing themselves. */
export function toPlainWords(issue: RawIssue): string {
  if (isMissing(issue)) return "is missing";
  switch (issue.code) {
    case "invalid_type": {
      const isNamedAlready = issue.expected === "int" || Number.isNaN(issue.input);
      return `must be ${kindOf(issue.expected)}${isNamedAlready ? "" : `, not ${kindOf(typeOf(issue.input))}`}`;
    }
    case "invalid_value":
      return oneOf(issue.values);
    case "invalid_union":
      return Array.isArray(issue.options) ? oneOf(issue.options) : "has none of the forms that are allowed here";
    case "too_small":
      return issue.minimum === 1 && (issue.origin === "string" || issue.origin === "array")
        ? "must not be empty"
        : `must ${quantity(issue.origin, issue.inclusive === false ? "more than" : "at least", issue.minimum)}`;
    case "too_big":
      return `must ${quantity(issue.origin, issue.inclusive === false ? "less than" : "at most", issue.maximum)}`;
    case "invalid_format":
      return forms[issue.format] ?? "has the wrong form";
    case "unrecognized_keys":
      return toUnknownWords(issue.keys, fieldsOf(issue.inst));
    case "invalid_key":
      return "is not a name that is allowed here";
    default:
      return "is not valid";
  }
}

/** What is wrong with an object that has fields of these names, by the names that it may have. */
export function toUnknownWords(names: readonly string[], known: readonly string[]): string {
  const listed = (some: readonly string[], most: number) => [
    ...some.slice(0, most),
    ...(some.length > most ? ["…"] : []),
  ];
  const meant = [...new Set(names.slice(0, MAX_COMPARED).flatMap((name) => nearNames(name, known)))];
  const hint =
    meant.length > 0
      ? `; did you mean ${listed(meant, MAX_LISTED).join(", ")}?`
      : `; it may have ${listed(known, MAX_LISTED).join(", ")}`;
  const fields = `must not have the ${names.length === 1 ? "field" : "fields"} ${listed(names, MAX_LISTED).join(", ")}`;
  return known.length === 0 ? fields : `${fields}${hint}`;
}

/** The names that an object schema has. */
function fieldsOf(schema: unknown): string[] {
  const { shape } = Object(Object(Object(schema)._zod).def);
  return Object.keys(Object(shape));
}

/** "messages is missing." for a problem that continues the field's name; "key: …" for one that is a sentence itself. */
export function toSentence(param: string, problem: string): string {
  const end = problem.endsWith("?") ? "" : ".";
  return /^(is|must|has) /.test(problem) ? `${param} ${problem}${end}` : `${param}: ${problem}`;
}

/** Whether the field is absent: for a discriminated union, the field that discriminates. */
function isMissing({ code, input, discriminator }: RawIssue): boolean {
  if (code !== "invalid_type" && code !== "invalid_value" && code !== "invalid_union") return false;
  if (typeof discriminator !== "string" || typeof input !== "object" || input === null) return input === undefined;
  return Reflect.get(input, discriminator) === undefined;
}

function kindOf(type: string): string {
  return kinds[type] ?? `a ${type}`;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function oneOf(values: readonly unknown[]): string {
  const listed = values.slice(0, MAX_LISTED).map((value) => JSON.stringify(value));
  const more = values.length > MAX_LISTED ? ", …" : "";
  return listed.length === 1 ? `must be ${listed[0]}` : `must be one of ${listed.join(", ")}${more}`;
}

const units: Record<string, string> = { string: "characters", array: "items", set: "items", object: "fields" };

function quantity(origin: string, bound: string, limit: unknown): string {
  const unit = units[origin];
  if (unit === undefined) return `be ${bound} ${limit}`;
  return `have ${bound} ${limit} ${limit === 1 ? unit.replace(/s$/, "") : unit}`;
}
