import { type Document, isDocument } from "../bson/bson-types.ts";
import { commandError, notOffered } from "../command-error.ts";
import type { TextDefinition } from "./text-definition.ts";

/** A `$search` taken apart: words that score, and a filter of values as a query has it. */
export type SearchClauses = {
  text: string;
  paths: readonly string[];
  conditions: Document[];
  /** The tenants that are asked for; undefined: all. */
  partitionValues: readonly unknown[] | undefined;
};

/** What a `$search` consists of: every clause must match, those of `must` score. What is not here is refused. */
export const searchClauses = ["must", "filter"] as const;
export const searchOperators = ["text", "equals", "in"] as const;

type ClauseName = (typeof searchClauses)[number];

/**
 * Reads the operand of `$search`.
 * @throws CommandError 238 for operators and options that are not offered, 8 when it is malformed or asks for paths
 *   that the index does not have.
 */
export function readSearch(operand: Document, definition: TextDefinition): SearchClauses {
  const stranger = Object.keys(operand).find((name) => name !== "index" && name !== "compound");
  if (stranger !== undefined) throw notOffered(`${stranger} beside compound in $search`);
  const { compound } = operand;
  if (!isDocument(compound)) throw refused('"compound" must be a document');
  const clauses: SearchClauses = { text: "", paths: [], conditions: [], partitionValues: undefined };
  for (const [name, value] of Object.entries(compound)) {
    const clause = searchClauses.find((known) => known === name);
    if (clause === undefined) throw notOffered(`compound.${name} of $search`);
    const list: unknown[] = Array.isArray(value) ? value : [value];
    for (const part of list) addClause(clauses, clause, part, definition);
  }
  if (clauses.paths.length === 0) throw notOffered("a $search without words");
  return clauses;
}

function addClause(clauses: SearchClauses, place: ClauseName, clause: unknown, definition: TextDefinition): void {
  if (!isDocument(clause)) throw refused(`"${place}" must hold documents`);
  const [name, ...more] = Object.keys(clause);
  if (name === undefined || more.length > 0) throw refused(`each clause of "${place}" needs exactly one operator`);
  const operator = searchOperators.find((known) => known === name);
  const isPlaced = operator !== undefined && (operator === "text") === (place === "must");
  if (!isPlaced) throw notOffered(`${name} in compound.${place} of $search`);
  const operand: unknown = clause[name];
  if (!isDocument(operand)) throw refused(`"${name}" must be a document`);
  if (operator === "text") {
    if (clauses.paths.length > 0) throw notOffered("several texts in compound.must of $search");
    Object.assign(clauses, readText(operand, definition));
    return;
  }
  const { path, values } = readCondition(operator, operand, definition);
  clauses.conditions.push({ [path]: { $in: values } });
  if (path === definition.partitionPath) clauses.partitionValues ??= values;
}

function readText(operand: Document, definition: TextDefinition): Pick<SearchClauses, "text" | "paths"> {
  const stranger = Object.keys(operand).find((name) => name !== "query" && name !== "path");
  if (stranger !== undefined) throw notOffered(`text.${stranger} of $search`);
  const paths = toStrings(operand.path, "text.path");
  for (const asked of paths) {
    if (!definition.textPaths.includes(asked)) throw refused(`"${asked}" is not indexed as string`);
  }
  return { text: toStrings(operand.query, "text.query").join(" "), paths };
}

function toStrings(value: unknown, name: string): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length === 0 || !list.every((item) => typeof item === "string")) {
    throw refused(`"${name}" must be a string or a non-empty array of strings`);
  }
  return list;
}

function readCondition(
  operator: "equals" | "in",
  operand: Document,
  definition: TextDefinition,
): { path: string; values: unknown[] } {
  const { path, value } = operand;
  if (typeof path !== "string") throw refused(`"${operator}.path" must be a string`);
  if (!definition.filterPaths.includes(path))
    throw refused(`"${path}" is not indexed as token, boolean, number or date`);
  if (!Object.hasOwn(operand, "value")) throw refused(`"${operator}.value" is required`);
  return { path, values: operator === "in" && Array.isArray(value) ? value : [value] };
}

function refused(message: string) {
  return commandError("UnknownError", `PlanExecutor error during aggregation :: caused by :: ${message}`);
}
