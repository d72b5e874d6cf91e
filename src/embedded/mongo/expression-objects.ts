import type { Document } from "bson";
import { getField, isDocument, setField, typeName } from "./bson-types.ts";
import {
  isNullish,
  named,
  namedOperands,
  type OperatorCompiler,
  type OperatorTable,
  unary,
  variadic,
} from "./expression-arguments.ts";
import { located } from "./refusals.ts";
import { scoreOf } from "./search-score.ts";

/** Fields of later documents win; null and missing ones are passed over. */
export function mergeObjects(values: readonly unknown[]): Document {
  const merged: Document = {};
  for (const value of values) {
    if (isNullish(value)) continue;
    if (!isDocument(value))
      throw located(40400, `$mergeObjects requires object inputs, but input is of type ${typeName(value)}`);
    for (const name of Object.keys(value)) setField(merged, name, value[name]);
  }
  return merged;
}

const objectToArray = unary((value) => {
  if (isNullish(value)) return null;
  if (!isDocument(value)) throw located(40390, `$objectToArray requires a document input, found: ${typeName(value)}`);
  return Object.keys(value).map((k) => ({ k, v: value[k] }));
});

/** Takes `[[k, v], …]` or `[{ k, v }, …]`, all of one form. */
const arrayToObject: OperatorCompiler = (operand, compile) => {
  // An array in the pipeline is the operator's list of operands: one array of pairs inside it is the operand itself.
  const [only] = Array.isArray(operand) && operand.length === 1 ? operand : [operand];
  const argument = compile(only);
  return (context) => {
    const pairs = argument(context);
    if (isNullish(pairs)) return null;
    if (!Array.isArray(pairs))
      throw located(40386, `$arrayToObject requires an array input, found: ${typeName(pairs)}`);
    const isOfPairs = Array.isArray(pairs[0]);
    const object: Document = {};
    for (const pair of pairs) {
      const [name, value] = isOfPairs ? fromPair(pair) : fromFields(pair);
      setField(object, name, value);
    }
    return object;
  };
};

function fromPair(pair: unknown): [string, unknown] {
  if (!Array.isArray(pair))
    throw located(
      40396,
      `$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. Array was detected, now found: ${typeName(pair)}`,
    );
  if (pair.length !== 2)
    throw located(40397, `$arrayToObject requires an array of size 2 arrays,found array of size: ${pair.length}`);
  const [name, value]: unknown[] = pair;
  if (typeof name !== "string")
    throw located(
      40395,
      `$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: ${typeName(name)}`,
    );
  return [name, value];
}

function fromFields(pair: unknown): [string, unknown] {
  if (!isDocument(pair)) throw located(40398, `Unrecognised input type format for $arrayToObject: ${typeName(pair)}`);
  if (Object.keys(pair).length !== 2)
    throw located(40392, "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys.");
  if (!("k" in pair) || !("v" in pair))
    throw located(40393, "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys.");
  if (typeof pair.k !== "string")
    throw located(
      40394,
      `$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: ${typeName(pair.k)}`,
    );
  return [pair.k, pair.v];
}

const getFieldOperator: OperatorCompiler = (operand, compile, name) => {
  const isNamed = isDocument(operand) && "field" in operand;
  const fields = isNamed
    ? namedOperands(operand, { required: ["field"], optional: ["input"] }, name)
    : { field: operand };
  const field = compile(fields.field);
  const input = compile("input" in fields ? fields.input : "$$CURRENT");
  return (context) => {
    const key = field(context);
    if (typeof key !== "string")
      throw located(3041704, `$getField requires 'field' to evaluate to type String, but got ${typeName(key)}`);
    const object = input(context);
    if (isNullish(object)) return object;
    return isDocument(object) ? getField(object, key) : undefined;
  };
};

const setFieldOperator = named({ required: ["field", "input", "value"] }, ({ field, input, value }, name) => {
  return withField(field, input, value, name);
});

function withField(field: unknown, input: unknown, value: unknown, name: string): unknown {
  if (isNullish(input)) return null;
  if (!isDocument(input)) throw located(4161105, `${name} requires 'input' to evaluate to type Object`);
  if (typeof field !== "string") throw located(4161106, `${name} requires 'field' to evaluate to type String`);
  const copy: Document = { ...input };
  if (value === undefined) delete copy[field];
  else setField(copy, field, value);
  return copy;
}

const unsetFieldOperator = named({ required: ["field", "input"] }, ({ field, input }, name) =>
  withField(field, input, undefined, name),
);

const scoreTitles: Record<string, string> = {
  vectorSearchScore: "vector search score",
  searchScore: "$search score",
  textScore: "text score",
};

/** `$meta` reads the score that a search stage attached. */
const meta: OperatorCompiler = (operand) => {
  const title = typeof operand === "string" ? scoreTitles[operand] : undefined;
  if (typeof operand !== "string" || title === undefined)
    throw located(17308, `Unsupported argument to $meta: ${String(operand)}`);
  return ({ root }) => {
    const score = scoreOf(root, operand);
    if (score === undefined) throw located(40218, `query requires ${title} metadata, but it is not available`);
    return score;
  };
};

export const objectOperators: OperatorTable = {
  $mergeObjects: variadic((values) =>
    mergeObjects(values.length === 1 && Array.isArray(values[0]) ? values[0] : values),
  ),
  $objectToArray: objectToArray,
  $arrayToObject: arrayToObject,
  $getField: getFieldOperator,
  $setField: setFieldOperator,
  $unsetField: unsetFieldOperator,
  $meta: meta,
};
