import { isDocument } from "./bson-types.ts";
import type { Document } from "./codec.ts";
import { toNumber } from "./command.ts";
import { commandError, notImplemented } from "./command-error.ts";
import type { TextDefinition } from "./text-definition.ts";

export type TextClause = { text: string; paths: readonly string[]; needsAllWords: boolean; boost: number };

/** A `$search` taken apart: clauses that score by words, and conditions on values as a query filter has them. */
export type SearchClauses = {
  must: TextClause[];
  should: TextClause[];
  filter: TextClause[];
  mustNot: TextClause[];
  conditions: Document[];
  exclusions: Document[];
  /** At least one of `should` has to match. */
  needsShould: boolean;
  /** What the conditions in `must` add to each score: 1 each. */
  constantScore: number;
  /** The tenants that are asked for; undefined: all. */
  partitionValues: readonly unknown[] | undefined;
};

const operators = ["text", "equals", "in", "range", "exists", "compound"] as const;
const ignoredOptions: ReadonlySet<string> = new Set(["index", "tracking", "concurrent"]);

/**
 * Reads the operand of `$search`.
 * @throws CommandError 238 for operators and options that only Atlas has, 8 when it is malformed or asks for paths
 *   that the index does not have.
 */
export function readSearch(operand: Document, definition: TextDefinition): SearchClauses {
  const clauses: SearchClauses = {
    must: [],
    should: [],
    filter: [],
    mustNot: [],
    conditions: [],
    exclusions: [],
    needsShould: false,
    constantScore: 0,
    partitionValues: undefined,
  }; // prettier-ignore
  const names = Object.keys(operand).filter((name) => !ignoredOptions.has(name));
  const [name] = names;
  if (name === undefined || names.length > 1) {
    const stranger = names.find((other) => !operators.some((known) => known === other));
    if (stranger !== undefined) throw notImplemented(`"${stranger}" of $search`);
    throw refused("$search needs exactly one operator");
  }
  const inner: unknown = operand[name];
  if (name === "compound") readCompound(clauses, inner, definition);
  else addClause(clauses, "must", { [name]: inner }, definition);
  return clauses;
}

type Occurrence = "must" | "should" | "filter" | "mustNot";
const occurrences: readonly Occurrence[] = ["must", "should", "filter", "mustNot"];

function readCompound(clauses: SearchClauses, compound: unknown, definition: TextDefinition): void {
  if (!isDocument(compound)) throw refused('"compound" must be a document');
  for (const [name, value] of Object.entries(compound)) {
    if (name === "minimumShouldMatch") continue;
    const occurrence = occurrences.find((known) => known === name);
    if (occurrence === undefined) throw notImplemented(`"compound.${name}" of $search`);
    const list: unknown[] = Array.isArray(value) ? value : [value];
    for (const clause of list) addClause(clauses, occurrence, clause, definition);
  }
  const minimum = toNumber(compound.minimumShouldMatch) ?? 0;
  if (minimum > 1) throw notImplemented('"compound.minimumShouldMatch" above 1');
  const hasOther = compound.must !== undefined || compound.filter !== undefined;
  clauses.needsShould = clauses.should.length > 0 && (minimum === 1 || !hasOther);
}

function addClause(clauses: SearchClauses, occurrence: Occurrence, clause: unknown, definition: TextDefinition): void {
  if (!isDocument(clause)) throw refused(`"${occurrence}" must hold documents`);
  const [name, ...more] = Object.keys(clause);
  const operator = operators.find((known) => known === name);
  if (name === undefined || more.length > 0) throw refused(`each clause of "${occurrence}" needs exactly one operator`);
  const operand: unknown = clause[name];
  if (operator === undefined) throw notImplemented(`The operator "${name}" of $search`);
  if (operator === "compound") throw notImplemented("A compound inside a compound of $search");
  if (!isDocument(operand)) throw refused(`"${name}" must be a document`);
  if (operator === "text") {
    clauses[occurrence].push(readText(operand, definition));
    return;
  }
  const { path, condition } = readCondition(operator, operand, definition);
  if (occurrence === "mustNot") {
    clauses.exclusions.push({ [path]: condition });
    return;
  }
  if (occurrence === "should") throw notImplemented(`The operator "${name}" in "compound.should"`);
  clauses.conditions.push({ [path]: condition });
  if (occurrence === "must") clauses.constantScore++;
  if (path === definition.partitionPath)
    clauses.partitionValues ??= condition.$in ?? (operator === "equals" ? [condition.$eq] : undefined);
}

function readText(operand: Document, definition: TextDefinition): TextClause {
  for (const option of ["fuzzy", "synonyms"]) {
    if (operand[option] !== undefined) throw notImplemented(`"text.${option}" of $search`);
  }
  const queries = toStrings(operand.query, "text.query");
  const { path } = operand;
  const paths = isDocument(path) && path.wildcard === "*" ? definition.textPaths : toStrings(path, "text.path");
  for (const asked of paths) {
    if (!definition.textPaths.includes(asked)) throw refused(`"${asked}" is not indexed as string`);
  }
  const { matchCriteria } = operand;
  if (matchCriteria !== undefined && matchCriteria !== "any" && matchCriteria !== "all") {
    throw refused('"text.matchCriteria" must be one of [any, all]');
  }
  return { text: queries.join(" "), paths, needsAllWords: matchCriteria === "all", boost: readBoost(operand.score) };
}

function readBoost(score: unknown): number {
  if (score === undefined) return 1;
  const boost = isDocument(score) && isDocument(score.boost) ? toNumber(score.boost.value) : undefined;
  if (boost === undefined || boost <= 0) throw notImplemented('"score" other than a boost by a value');
  return boost;
}

function toStrings(value: unknown, name: string): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length === 0 || !list.every((item) => typeof item === "string")) {
    throw refused(`"${name}" must be a string or a non-empty array of strings`);
  }
  return list;
}

function readCondition(
  operator: "equals" | "in" | "range" | "exists",
  operand: Document,
  definition: TextDefinition,
): { path: string; condition: Document } {
  const { path } = operand;
  if (typeof path !== "string") throw refused(`"${operator}.path" must be a string`);
  if (operator === "exists") return { path, condition: { $exists: true } };
  if (!definition.filterPaths.includes(path))
    throw refused(`"${path}" is not indexed as token, boolean, number or date`);
  if (operator === "range") {
    const bounds = ["gt", "gte", "lt", "lte"].filter((bound) => operand[bound] !== undefined);
    if (bounds.length === 0) throw refused('"range" needs one of [gt, gte, lt, lte]');
    return { path, condition: Object.fromEntries(bounds.map((bound) => [`$${bound}`, operand[bound]])) };
  }
  if (!Object.hasOwn(operand, "value")) throw refused(`"${operator}.value" is required`);
  const { value } = operand;
  if (operator === "equals") return { path, condition: { $eq: value } };
  const values: unknown[] = Array.isArray(value) ? value : [value];
  return { path, condition: { $in: values } };
}

function refused(message: string) {
  return commandError("UnknownError", `PlanExecutor error during aggregation :: caused by :: ${message}`);
}
