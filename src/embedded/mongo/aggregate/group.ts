import { type Document, isDocument, setField } from "../bson/bson-types.ts";
import { keyOf } from "../bson/index-keys.ts";
import { located, notOffered } from "../command-error.ts";
import { compileExpression, type EvaluationContext, type Expression } from "./expressions.ts";

/** What a value adds to the total of its group, which is 0 at first. */
type Accumulator = (total: number, value: unknown) => number;

/** Every accumulator that this server has: what is not here is refused. */
export const accumulators: Readonly<Record<string, Accumulator>> = {
  $sum: (total, value) => (typeof value === "number" ? total + value : total),
};

type Field = { name: string; accumulator: Accumulator; expression: Expression };
type Group = { key: unknown; totals: number[] };

/** `$group`: one document for each value of `_id`, in the order in which the values came. */
export function compileGroup(operand: unknown): (documents: Iterable<Document>) => Iterable<Document> {
  if (!isDocument(operand)) throw located(15947, "a group's fields must be specified in an object");
  if (!("_id" in operand)) throw located(15955, "a group specification must include an _id");
  const { _id: id, ...specifications } = operand;
  const idOf = compileExpression(id);
  const fields = Object.keys(specifications).map((name) => compileField(name, specifications[name]));
  return function* (documents) {
    const groups = new Map<string, Group>();
    const now = new Date();
    for (const root of documents) addToGroup(groups, fields, idOf, { root, now });
    for (const { key, totals } of groups.values()) {
      const result: Document = { _id: key };
      for (const [at, { name }] of fields.entries()) setField(result, name, totals[at]);
      yield result;
    }
  };
}

/** Keys are equal as BSON values are: 1 and 1.0 are one group. */
function addToGroup(
  groups: Map<string, Group>,
  fields: readonly Field[],
  idOf: Expression,
  context: EvaluationContext,
): void {
  const key = idOf(context) ?? null;
  const identity = keyOf(key);
  const group = groups.get(identity) ?? { key, totals: fields.map(() => 0) };
  groups.set(identity, group);
  for (const [at, { accumulator, expression }] of fields.entries()) {
    group.totals[at] = accumulator(group.totals[at] ?? 0, expression(context));
  }
}

function compileField(name: string, specification: unknown): Field {
  if (name.includes(".")) throw located(40235, `The field name '${name}' cannot contain '.'`);
  if (name.startsWith("$")) throw located(40236, `The field name '${name}' cannot be an operator name`);
  const operators = isDocument(specification) ? Object.keys(specification) : [];
  const [operator = ""] = operators;
  if (!isDocument(specification) || !operator.startsWith("$"))
    throw located(40234, `The field '${name}' must be an accumulator object`);
  if (operators.length > 1) throw located(40238, `The field '${name}' must specify one accumulator`);
  const accumulator = Object.hasOwn(accumulators, operator) ? accumulators[operator] : undefined;
  if (accumulator === undefined) throw notOffered(operator, "Location15952");
  return { name, accumulator, expression: compileExpression(specification[operator]) };
}
