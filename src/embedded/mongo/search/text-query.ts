import { type Document, isDocument } from "../bson/bson-types.ts";
import { notOffered } from "../command-error.ts";
import { readFields } from "../fields.ts";
import type { TextDefinition } from "./definitions.ts";
import { refused } from "./search-score.ts";
import type { TextQuery } from "./text-index.ts";

/** A `$search` taken apart: words that score, and a filter of values as a query has it. */
export type SearchClauses = TextQuery & { conditions: Document[] };

/** What a `$search` consists of: every clause must match, those of `must` score. What is not here is refused. */
export const searchClauses = ["must", "filter"] as const;
export const searchOperators = ["text", "equals", "in"] as const;

/**
 * Reads the `compound` of `$search`.
 * @throws CommandError 238 or 40415 for what is not offered, 8 when it is malformed or asks for paths that the index does
 *   not have.
 */
export function readSearch(compound: Document, definition: TextDefinition): SearchClauses {
  const clauses = readFields("$search", compound, { must: "any", filter: "any" } satisfies Record<ClauseName, "any">);
  const [text, ...others] = listOf(clauses.must).map((clause) => readClause("must", clause));
  if (text === undefined) throw notOffered("a $search without words");
  if (others.length > 0) throw notOffered("several texts in compound.must of $search");
  const filters = listOf(clauses.filter).map((clause) => readClause("filter", clause));
  const conditions = filters.map(({ name, operand }) => readCondition(name, operand, definition.filterPaths));
  const ofPartition = conditions.find(({ path }) => path === definition.partitionPath);
  return {
    ...readText(text.operand, definition),
    conditions: conditions.map(({ path, values }) => ({ [path]: { $in: values } })),
    partitionValues: ofPartition?.values,
  };
}

type ClauseName = (typeof searchClauses)[number];

const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined ? [] : [value];

/** The one operator of a clause: `text` scores and stands in `must`, the others filter. */
function readClause(place: ClauseName, clause: unknown) {
  const [[name, operand] = [], ...more] = isDocument(clause) ? Object.entries(clause) : [];
  if (name === undefined || more.length > 0) throw refused(`each clause of "${place}" needs exactly one operator`);
  const operator = searchOperators.find((known) => known === name);
  if (operator === undefined || (operator === "text") !== (place === "must"))
    throw notOffered(`${name} in compound.${place} of $search`);
  if (!isDocument(operand)) throw refused(`"${name}" must be a document`);
  return { name: operator, operand };
}

function readText(operand: Document, { textPaths }: TextDefinition): Pick<SearchClauses, "text" | "paths"> {
  const { query, path } = readFields("text of $search", operand, { query: "any", path: "any" });
  const [texts, paths] = [listOf(query), listOf(path)];
  const bad = paths.find((asked) => !textPaths.some((known) => known === asked));
  if (bad !== undefined || paths.length === 0) throw refused(`"${bad}" is not indexed as string`);
  if (texts.length === 0 || !texts.every((text) => typeof text === "string"))
    throw refused('"text.query" must be a string or a non-empty array of strings');
  return { text: texts.join(" "), paths: paths.map(String) };
}

function readCondition(name: string, operand: Document, filterPaths: readonly string[]) {
  const { path = "", value } = readFields(`${name} of $search`, operand, { path: "text", value: "any" });
  if (!filterPaths.includes(path)) throw refused(`"${path}" is not indexed as token or boolean`);
  if (value === undefined) throw refused(`"${name}.value" is required`);
  return { path, values: name === "in" ? listOf(value) : [value] };
}
