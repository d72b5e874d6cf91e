import { z } from "zod";
import { invalidRequest } from "../lib/errors.ts";
import { toPlainWords, toSentence } from "../lib/issue-messages.ts";
import { type GivenInput, isCertain, toPath } from "./given-inputs.ts";
import { isSchema, type Schema } from "./known-schemas.ts";

/** Deepest nesting of a schema, and values in it. */
const MAX_DEPTH = 64;
const MAX_VALUES = 5_000;

const invalid = (message: string) => invalidRequest("inputSchema", message);

/** @throws AppError `invalid_request` when it is no JSON Schema that can be checked, or one without an end. */
export function checkInputSchema(inputSchema: Schema): void {
  checkSize(inputSchema);
  checkProgress(inputSchema);
  toZod(inputSchema);
}

/** @throws AppError `invalid_request` for an input that does not fit; `param` names the part of it. */
export function checkInput(inputSchema: Schema, input: unknown): void {
  const issue = toZod(inputSchema).safeParse(input, { error: toPlainWords }).error?.issues[0];
  if (!issue) return;
  const param = `input${toPath(issue.path)}`;
  throw invalidRequest(param, toSentence(param, issue.message));
}

/** @throws AppError `invalid_request` for what is known of an input, and does not fit whatever the run brings. */
export function checkGiven(inputSchema: Schema, given: GivenInput, field: string): void {
  const issues = toZod(inputSchema).safeParse(given.value, { error: toPlainWords }).error?.issues ?? [];
  const issue = issues.find((one) => isCertain(one, given));
  if (!issue) return;
  const at = `input${toPath(issue.path)}`;
  const message = `${toSentence(at, issue.message)} So says the inputSchema of that workflow.`;
  throw invalidRequest(`${field}.${at}`, message);
}

/** The registry is a new one each time: zod's own keeps every schema that has an id, for good. */
function toZod(inputSchema: Schema): z.ZodType {
  try {
    return z.fromJSONSchema(inputSchema as Parameters<typeof z.fromJSONSchema>[0], { registry: z.registry() });
  } catch (error) {
    const why = error instanceof Error ? error.message.slice(0, 200) : "";
    throw invalid(`It is no JSON Schema that can be checked: ${why}`);
  }
}

/** Level by level, since a schema may nest deeper than recursion goes. */
function checkSize(inputSchema: Schema): void {
  let level: unknown[] = [inputSchema];
  let count = 0;
  for (let depth = 1; level.length > 0; depth += 1) {
    count += level.length;
    if (depth > MAX_DEPTH) throw invalid(`It nests deeper than ${MAX_DEPTH}.`);
    if (count > MAX_VALUES) throw invalid(`It holds more than ${MAX_VALUES} values.`);
    level = level.flatMap((value) => (typeof value === "object" && value !== null ? Object.values(value) : []));
  }
}

/** @throws AppError for schemas that refer to each other in a circle without looking at a part of the input in between. */
function checkProgress(inputSchema: Schema): void {
  const done = new Set<Schema>();
  const open = new Set<Schema>();
  const visit = (schema: Schema) => {
    if (done.has(schema)) return;
    if (open.has(schema)) throw invalid("A schema in it refers to itself without an end.");
    open.add(schema);
    for (const next of sameValueSchemas(schema, inputSchema)) visit(next);
    open.delete(schema);
    done.add(schema);
  };
  for (const schema of schemasWithin(inputSchema)) visit(schema);
}

function* schemasWithin(value: unknown): Generator<Schema> {
  if (typeof value !== "object" || value === null) return;
  if (isSchema(value)) yield value;
  for (const one of Object.values(value)) yield* schemasWithin(one);
}

/** The schemas that look at the same value as this one. */
function sameValueSchemas(schema: Schema, root: Schema): Schema[] {
  const lists = [schema.anyOf, schema.oneOf, schema.allOf].flatMap((list) => (Array.isArray(list) ? list : []));
  return [...lists, schema.not, targetOf(schema.$ref, root)].filter(isSchema);
}

/** What a reference means to zod: the root, or one of its definitions. Others are refused when the schema is read. */
function targetOf(ref: unknown, root: Schema): unknown {
  if (typeof ref !== "string" || !ref.startsWith("#")) return undefined;
  const [place, name] = ref.slice(1).split("/").filter(Boolean);
  if (place === undefined) return root;
  const definitions = Object(root.$defs ?? root.definitions) as Schema;
  return name === undefined ? undefined : definitions[name.replaceAll("~1", "/").replaceAll("~0", "~")];
}
