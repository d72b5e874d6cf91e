import type { z } from "zod";
import { AppError } from "../../src/lib/errors.ts";
import { toPlainWords, toSentence, toUnknownWords } from "../../src/lib/issue-messages.ts";
import { readingOf } from "../../src/lib/limiting.ts";
import { isSameName } from "../../src/lib/near-names.ts";
import { defOf, findUnknown, opennessOf } from "./unknown-fields.ts";

/** Most problems that one response lists. */
const MAX_ISSUES = 100;
/** Most characters of a path or message in the response: they contain names that the caller chose. */
const MAX_SHOWN_LENGTH = 300;

type Issue = z.core.$ZodIssue;
type InputPlace = "body" | "query" | "arguments";

/** How often nulls are removed from a value: those of an inner field may show only when an outer one is valid. */
const MAX_NULL_ROUNDS = 4;

/** A part of a request as its schema takes it, and the paths of the fields that nobody reads, the first 20. */
export type ReadInput = { data: unknown; ignored: PropertyKey[][] };

/**
 * Reads a part of a request. Null in an optional field counts as absent, unless the field limits something (see `limiting`; in
 * strict objects each does). @throws AppError `invalid_request`, all problems.
 */
export function readInput(schema: z.ZodType, value: unknown, where: InputPlace): ReadInput {
  const unknown = findUnknown(schema, value);
  const meant = unknown.flatMap(({ path, near }) =>
    near === undefined ? [] : [{ path: path.slice(0, -1), message: toUnknownWords([String(path.at(-1))], [near]) }],
  );
  const data = parseInput(schema, value, where, meant);
  return { data, ignored: unknown.map(({ path }) => [...path]) };
}

/** As `readInput`, where nobody asks what is ignored; `known` are problems that were found before. */
export function parseInput(
  schema: z.ZodType,
  value: unknown,
  where: InputPlace,
  known: readonly Problem[] = [],
): unknown {
  let problems: Problem[] = [];
  for (let round = 0; round <= MAX_NULL_ROUNDS; round += 1) {
    const result = schema.safeParse(value, { error: toPlainWords });
    if (result.success && known.length === 0) return result.data;
    problems = (result.error?.issues ?? []).slice(0, MAX_ISSUES).flatMap((issue) => flatten(issue, value));
    const dropped = problems.filter(({ path }) => dropNull(schema, value, path));
    if (dropped.length === 0) break;
  }
  throw toValidationError([...known, ...problems], where);
}

type Problem = { path: PropertyKey[]; message: string };

/** Removes the null at a path that belongs to a declared field, and reports whether there was one. */
function dropNull(schema: z.ZodType, value: unknown, path: readonly PropertyKey[]): boolean {
  const name = path.at(-1);
  if (name === undefined || valueAt(value, path) !== null) return false;
  const parent = valueAt(value, path.slice(0, -1));
  if (typeof parent !== "object" || parent === null || Array.isArray(parent)) return false;
  const isGiven = ([other, one]: [string, unknown]) => one !== null && isSameName(other, String(name)); // as `agent_id`, `agentId`
  if (!mayBeAbsent(schema, path) && !Object.entries(parent).some(isGiven)) return false;
  return Reflect.deleteProperty(parent, name);
}

/**
 * Whether a path leads to a field that an object schema declares, and not to one of a record, which the caller names; and whether
 * to leave the field out limits no less than what null may have meant.
 */
function mayBeAbsent(schema: z.ZodType, path: readonly PropertyKey[]): boolean {
  const def = defOf(schema);
  const inner = [def.in, def.innerType, def.left, def.right, ...(def.options ?? [])].filter(
    (each) => each !== undefined,
  );
  if (inner.some((each) => mayBeAbsent(each, path))) return true;
  const [key, ...rest] = path;
  const next = def.type === "object" ? def.shape?.[String(key)] : def.type === "array" ? def.element : undefined;
  if (next === undefined) return false;
  if (rest.length > 0) return mayBeAbsent(next, rest);
  const isLimit = opennessOf(def) === "strict" || readingOf(next) !== undefined;
  return def.type === "object" && (!isLimit || defOf(next).type === "default");
}

function toValidationError(flat: readonly Problem[], where: InputPlace): AppError {
  const details = flat
    .slice(0, MAX_ISSUES)
    .map(({ path, message }) => ({ in: where, path: shorten(formatPath(path)), message: shorten(message) }));
  const [first] = details;
  const param = first === undefined || first.path === "" ? where : first.path;
  const message = first === undefined ? "The request is not valid." : toSentence(param, first.message);
  return new AppError("invalid_request", message, { param, details });
}

function shorten(text: string): string {
  return text.length > MAX_SHOWN_LENGTH ? `${text.slice(0, MAX_SHOWN_LENGTH)}…` : text;
}

/** The problems of an issue in `value`; of a union, those of the branch that the value comes closest to. */
function flatten(issue: Issue, value: unknown, prefix: readonly PropertyKey[] = []): Problem[] {
  const path = [...prefix, ...issue.path];
  if (issue.code !== "invalid_union") return [{ path, message: issue.message }];
  const branches = issue.errors.map((branch) =>
    branch.slice(0, MAX_ISSUES).flatMap((inner) => flatten(inner, value, path)),
  );
  const wholes = branches.map((branch) =>
    branch.length === 1 && branch[0]?.path.length === path.length ? branch[0].message : "",
  );
  const types = wholes.map((message) => /^must be (.*), not (.*)$/.exec(message));
  if (types.length > 1 && types.every((type) => type !== null)) {
    const allowed = [...new Set(types.map((type) => type[1]))];
    return [{ path, message: `must be ${allowed.join(" or ")}, not ${types[0]?.[2]}` }];
  }
  const [closest] = branches
    .filter((branch, place) => branch.length > 0 && types[place] === null) // another type was not meant
    .sort((a, b) => distance(value, a) - distance(value, b));
  return closest ?? [{ path, message: issue.message }];
}

/** How far a value is from a branch: a missing field, more than a wrong one, shows that another branch was meant. */
function distance(value: unknown, problems: readonly Problem[]): number {
  const missing = problems.filter(({ path }) => valueAt(value, path) === undefined).length;
  const deepest = problems.reduce((depth, { path }) => Math.max(depth, path.length), 0);
  return missing * 1_000 + problems.length - deepest / 100;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (part, key) => (typeof part === "object" && part !== null ? Reflect.get(part, key) : undefined),
    value,
  );
}

/** A path as `messages[0].role`; `show` writes its names. */
export function formatPath(path: readonly PropertyKey[], show: (name: PropertyKey) => string = String): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part}]`;
    return text === "" ? show(part) : `${text}.${show(part)}`;
  }, "");
}
