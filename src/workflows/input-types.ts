import type { ASTNode } from "@marcbachmann/cel-js";
import { childNodes, nameIn } from "./expression-cost.ts";
import { isSchema as isObject, type Schema, type Schemas } from "./known-schemas.ts";

/** The names that stand for parts of the input, or of an item, whose type is known; no name of a step's item has capitals. */
export const typedNames = {
  INPUT_STRING: "string",
  INPUT_INT: "int",
  INPUT_BOOL: "bool",
  INPUT_LIST: "list<dyn>",
  INPUT_TEXTS: "list<string>",
} as const;
type TypedName = keyof typeof typedNames;

/** Fields that a message names. */
const SHOWN_FIELDS = 10;

/** An expression with names of a type in the place of parts of what it reads; or what is wrong with one of these. */
type Typed = { text: string } | { problem: string };

/**
 * What the schemas of the input and of items say of an expression: each path as `input.order.id` that leads to a text, a whole number, a list, or true
 * and false, is replaced by a name of that type. Undefined when it says nothing. A number may be of both kinds in CEL, and objects
 * have functions that depend on what is in them, so these keep any type; so does what may be null.
 */
export function typeInput(text: string, tree: ASTNode, schemas: Schemas): Typed | undefined {
  const parts: { start: number; end: number; name: TypedName }[] = [];
  let problem: string | undefined;
  let isShadowed = false;
  const visit = (node: ASTNode): void => {
    const { op, args } = node;
    if (op === "rcall" && args[2].some((one) => one.op === "id" && Object.hasOwn(schemas, String(one.args))))
      isShadowed = true;
    if (op === "call" && args[0] === "has") return; // it asks whether a field is there
    const found = lookUp(node, schemas);
    if (found !== undefined && "problem" in found) problem ??= found.problem;
    const name = found && "schema" in found ? nameOf(found.schema) : undefined;
    if (name !== undefined) parts.push({ ...node.range, name });
    else for (const child of childNodes(args)) visit(child);
  };
  visit(tree);
  if (isShadowed) return undefined;
  if (problem !== undefined) return { problem };
  if (parts.length === 0) return undefined;
  let typed = "";
  let at = 0;
  for (const { start, end, name } of parts.toSorted((a, b) => a.start - b.start)) {
    typed += text.slice(at, start) + name;
    at = end;
  }
  return { text: typed + text.slice(at) };
}

type Found = { schema: Schema; path: string } | { problem: string };

/** The schema of the part of the input, or of an item, that a node reads; undefined when it reads another thing, or one that may be anything. */
function lookUp(node: ASTNode, schemas: Schemas): Found | undefined {
  if (node.op === "id") {
    const schema = Object.hasOwn(schemas, String(node.args)) ? schemas[String(node.args)] : undefined;
    return schema && { schema, path: String(node.args) };
  }
  const named = node.op === "." || node.op === "[]" ? nameIn(node) : undefined;
  const of = named && lookUp(named.of, schemas);
  if (named === undefined || of === undefined || "problem" in of) return undefined; // a problem is told of the part alone
  const fields = isObject(of.schema.properties) ? of.schema.properties : {};
  const path = `${of.path}.${named.name}`;
  const field = Object.hasOwn(fields, named.name) ? fields[named.name] : undefined;
  if (isObject(field)) return { schema: field, path };
  const isClosed = of.schema.additionalProperties === false && of.schema.patternProperties === undefined;
  if (field !== undefined || !isClosed || of.schema.type !== "object") return undefined;
  const names = Object.keys(fields).slice(0, SHOWN_FIELDS).join(", ");
  return { problem: `${path} is no field of its schema, which has ${names === "" ? "none" : names}.` };
}

function nameOf({ type, items }: Schema): TypedName | undefined {
  switch (type) {
    case "string":
      return "INPUT_STRING";
    case "integer":
      return "INPUT_INT";
    case "boolean":
      return "INPUT_BOOL";
    case "array":
      return isObject(items) && items.type === "string" ? "INPUT_TEXTS" : "INPUT_LIST";
    default:
      return undefined;
  }
}
