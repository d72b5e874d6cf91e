import type { z } from "zod";
import { readingOf } from "../../src/lib/limiting.ts";
import { isNearName, isSameName } from "../../src/lib/near-names.ts";

/** Most unknown fields that are looked for in one value. */
const MAX_FOUND = 20;
/** Most objects and lists of a value that are looked at, and how deep. */
const MAX_VISITED = 20_000;
const MAX_DEPTH = 64;

type Path = readonly PropertyKey[];

/** A field that no schema knows; `near`: the limiting field that it may have been meant for. */
type UnknownField = { path: Path; near?: string };

/** What was found, each field once, however many items of a list have it; and how much may still be looked at. */
type Walk = { found: Map<string, UnknownField>; left: { values: number } };

/** The parts of zod's definitions that lead to fields; https://zod.dev/packages/core describes them. */
type SchemaDef = {
  type: string;
  shape?: Record<string, z.ZodType>;
  catchall?: z.ZodType;
  in?: z.ZodType;
  out?: z.ZodType;
  element?: z.ZodType;
  valueType?: z.ZodType;
  innerType?: z.ZodType;
  options?: z.ZodType[];
  left?: z.ZodType;
  right?: z.ZodType;
  getter?(): z.ZodType;
  values?: readonly unknown[];
  entries?: Record<string, unknown>;
};

/** The definition of a schema. */
export const defOf = (schema: z.ZodType) => (schema._zod as z.core.$ZodTypeInternals & { def: SchemaDef }).def;

/**
 * What becomes of fields that an object schema does not know: `strict` objects refuse them, `lenient` ones ignore them, `open`
 * ones take them.
 */
export function opennessOf({ catchall }: SchemaDef): "strict" | "lenient" | "open" {
  if (catchall === undefined) return "lenient";
  return defOf(catchall).type === "never" ? "strict" : "open";
}

/**
 * The fields of a value, at any depth, that its schema ignores: the first 20. A limiting field under another spelling of its name
 * gets its own name in `value`.
 */
export function findUnknown(schema: z.ZodType, value: unknown): UnknownField[] {
  const walk: Walk = { found: new Map(), left: { values: MAX_VISITED } };
  visit(schema, value, [], walk);
  return [...walk.found.values()];
}

function visit(schema: z.ZodType, value: unknown, path: Path, walk: Walk): void {
  if (typeof value !== "object" || value === null) return;
  const def = defOf(schema);
  if (def.type === "object" || def.type === "array" || def.type === "record") {
    if (!isEnough(path, walk)) visitFields(def, value, path, walk);
    return;
  }
  if (def.type === "union" || def.type === "intersection") {
    const parts = def.options?.filter((option) => mayBe(option, value)) ?? [def.left, def.right];
    visitAlternatives(
      parts.filter((part) => part !== undefined),
      value,
      path,
      walk,
    );
    return;
  }
  // Of a pipe both ends: a transform of the value has no fields.
  for (const part of [def.in, def.out, def.innerType, def.getter?.()]) if (part) visit(part, value, path, walk);
}

function isEnough(path: Path, { found, left }: Walk): boolean {
  left.values -= 1;
  return left.values < 0 || found.size >= MAX_FOUND || path.length > MAX_DEPTH;
}

function visitFields(def: SchemaDef, value: object, path: Path, walk: Walk): void {
  const { element, valueType } = def;
  if (element) {
    if (!Array.isArray(value)) return;
    for (const [index, one] of value.entries()) {
      if (typeof one === "object") visit(element, one, [...path, index], walk);
    }
  } else if (valueType) {
    for (const [name, one] of Object.entries(value)) visit(valueType, one, [...path, name], walk);
  } else if (!Array.isArray(value)) {
    visitObject(def, value as Record<string, unknown>, path, walk);
  }
}

function visitObject(def: SchemaDef, value: Record<string, unknown>, path: Path, walk: Walk): void {
  const { shape = {} } = def;
  const openness = opennessOf(def);
  for (const name of Object.keys(value)) {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (field) visit(field, value[name], [...path, name], walk);
    else if (openness === "lenient") noteUnknown(shape, value, { name, path }, walk.found);
    if (walk.found.size >= MAX_FOUND) return;
  }
}

/** Notes an unknown field, unless it is a limiting one in another spelling, which gets its own name. */
function noteUnknown(
  shape: Record<string, z.ZodType>,
  value: Record<string, unknown>,
  { name, path }: { name: string; path: Path },
  found: Walk["found"],
): void {
  const here = [...path, name];
  const key = here.map((part) => (typeof part === "number" ? "[]" : JSON.stringify(part))).join(".");
  for (const [own, field] of Object.entries(shape)) {
    const reading = readingOf(field);
    if (!reading) continue;
    const { also = [], unlike = [], isOther } = reading;
    const isUnlike = unlike.some((other) => isSameName(name, other));
    const isMeant = !isUnlike && [own, ...also].some((other) => isSameName(name, other));
    if (isMeant && !Object.hasOwn(value, own) && !isOther?.(value[name])) {
      value[own] = isList(field) && typeof value[name] === "string" ? [value[name]] : value[name];
      Reflect.deleteProperty(value, name);
      return;
    }
    if (isMeant || isUnlike || isNearName(name, own)) {
      found.set(key, { path: here, near: own });
      return;
    }
  }
  if (!found.has(key)) found.set(key, { path: here });
}

/** Whether a field is a list, as `documentIds`; one item may stand for it under the name `documentId`. */
function isList(field: z.ZodType): boolean {
  const { type, innerType } = defOf(field);
  return type === "array" || (innerType !== undefined && isList(innerType));
}

/** Of schemas of which one, or each, takes the value: a field is unknown if none of them knows it. */
function visitAlternatives(schemas: readonly z.ZodType[], value: object, path: Path, walk: Walk): void {
  const [only, second] = schemas;
  if (second === undefined) {
    if (only) visit(only, value, path, walk);
    return;
  }
  const finds = schemas.map((schema) => {
    const found: Walk["found"] = new Map();
    visit(schema, value, path, { ...walk, found });
    return found;
  });
  for (const [key, field] of finds[0] ?? []) {
    if (finds.every((found) => found.has(key))) walk.found.set(key, field);
  }
}

/** Whether a value can be one of a schema, by its kind and by the fields that say which of several it is. */
function mayBe(schema: z.ZodType, value: object): boolean {
  const def = defOf(schema);
  switch (def.type) {
    case "object":
      return (
        !Array.isArray(value) && Object.entries(def.shape ?? {}).every(([name, field]) => isOf(field, value, name))
      );
    case "array":
      return Array.isArray(value);
    case "string":
    case "number":
    case "boolean":
    case "literal":
    case "enum":
    case "null":
      return false;
    case "pipe":
      return [def.in, def.out].every((part) => !part || mayBe(part, value));
    default:
      return def.innerType ? mayBe(def.innerType, value) : true;
  }
}

function isOf(field: z.ZodType, value: object, name: string): boolean {
  const { type, values = [], entries = {} } = defOf(field);
  const named = Reflect.get(value, name);
  return type === "literal" ? values.includes(named) : type !== "enum" || Object.values(entries).includes(named);
}
