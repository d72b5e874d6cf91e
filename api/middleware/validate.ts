import type { z } from "zod";
import { AppError } from "../../src/errors.ts";

/** Most problems that one answer lists. */
const MAX_ISSUES = 100;
/** Paths and messages name fields as the caller did; so many characters of them are told. */
const MAX_TOLD_LENGTH = 300;

type Issue = z.core.$ZodIssue;
type InputPlace = "body" | "query" | "arguments";

/** Parses a part of a request. @throws AppError `invalid_request` with every problem and its path. */
export function parseInput(schema: z.ZodType, value: unknown, where: InputPlace): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const flat = result.error.issues.slice(0, MAX_ISSUES).flatMap((issue) => flatten(issue, value));
  throw toValidationError(flat, where);
}

type Problem = { path: PropertyKey[]; message: string };

function toValidationError(flat: readonly Problem[], where: InputPlace): AppError {
  const details = flat
    .slice(0, MAX_ISSUES)
    .map(({ path, message }) => ({ in: where, path: shorten(formatPath(path)), message: shorten(message) }));
  const [first] = details;
  const param = first === undefined || first.path === "" ? where : first.path;
  const message = first === undefined ? "The request is not valid." : `${param}: ${first.message}`;
  return new AppError("invalid_request", message, { param, details });
}

function shorten(text: string): string {
  return text.length > MAX_TOLD_LENGTH ? `${text.slice(0, MAX_TOLD_LENGTH)}…` : text;
}

/** The problems of an issue in `value`; those of a union are those of the branch that the value came closest to. */
function flatten(issue: Issue, value: unknown, prefix: readonly PropertyKey[] = []): Problem[] {
  const path = [...prefix, ...issue.path];
  if (issue.code !== "invalid_union") return [{ path, message: issue.message }];
  const branches = issue.errors.map((branch) =>
    branch.slice(0, MAX_ISSUES).flatMap((inner) => flatten(inner, value, path)),
  );
  const [closest] = branches
    .filter((branch) => branch.length > 0)
    .sort((a, b) => distance(value, a) - distance(value, b));
  return closest ?? [{ path, message: issue.message }];
}

/** How far a value is from a branch: a field that is missing tells that another one was meant, more than a wrong one does. */
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

/** A path as `messages[0].role`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part}]`;
    return text === "" ? String(part) : `${text}.${String(part)}`;
  }, "");
}

/** Names of the top-level fields that a schema knows; undefined when it takes any. */
export function knownFields(schema: z.ZodType | undefined): Set<string> | undefined {
  if (schema === undefined) return undefined;
  const { def } = schema._zod as z.core.$ZodTypeInternals & { def: SchemaDef };
  if (def.type === "object") return def.catchall === undefined ? new Set(Object.keys(def.shape ?? {})) : undefined;
  if (def.type === "pipe" && def.in) return knownFields(def.in);
  if (def.innerType) return knownFields(def.innerType);
  if (def.type !== "union" && def.type !== "intersection") return undefined;
  const parts = (def.options ?? [def.left, def.right]).map(knownFields);
  return parts.every((part) => part !== undefined) ? new Set(parts.flatMap((part) => [...part])) : undefined;
}

/** The parts of zod's definitions that name fields; https://zod.dev/packages/core describes them. */
type SchemaDef = {
  type: string;
  shape?: Record<string, unknown>;
  catchall?: unknown;
  in?: z.ZodType;
  innerType?: z.ZodType;
  options?: z.ZodType[];
  left?: z.ZodType;
  right?: z.ZodType;
};
