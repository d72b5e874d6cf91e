import { isDocument, typeName } from "../bson/bson-types.ts";
import { compareValues } from "../bson/order.ts";
import { badValue, notOffered, showValue, typeMismatch } from "../command-error.ts";

/** What an operator makes of a field's value (undefined: missing). Undefined as outcome leaves all as it is. */
export type Modifier = (current: unknown) => unknown;

/** The modifier of one `operator: { path: operand }` for the document of that `_id`; throws for a malformed operand. */
type ModifierFactory = (operand: unknown, path: string, id: unknown) => Modifier;

/** Takes the field away. It passes over what is missing, and over a path through a scalar, where others are refused. */
export const removal: Modifier = () => undefined;

/** Every update operator that this server has: what is not here is refused. Only an insert applies `$setOnInsert`. */
export const updateOperators: Readonly<Record<string, ModifierFactory>> = {
  $set: (operand) => () => operand,
  $setOnInsert: (operand) => () => operand,
  $unset: () => removal,
  $inc: inc,
  $min: (operand) => (current) => (current === undefined || compareValues(operand, current) < 0 ? operand : undefined),
  $push: push,
};

function inc(operand: unknown, path: string, id: unknown): Modifier {
  if (typeof operand !== "number")
    throw typeMismatch(`Cannot increment with non-numeric argument: {${path}: ${showValue(operand)}}`);
  return (current = 0) => {
    if (typeof current === "number") return current + operand;
    const field = `{_id: ${showValue(id)}} has the field '${path.split(".").at(-1)}'`;
    const type = `of non-numeric type ${typeName(current)}`;
    throw typeMismatch(`Cannot apply $inc to a value of non-numeric type. ${field} ${type}`);
  };
}

function push(operand: unknown, path: string, id: unknown): Modifier {
  const { items, slice } = readPush(operand);
  return (current = []) => {
    if (Array.isArray(current)) return [...current, ...items].slice(slice);
    const place = `is of type ${typeName(current)} in document {_id: ${showValue(id)}}`;
    throw badValue(`The field '${path}' must be an array but ${place}`);
  };
}

/** What goes with `$each` in a `$push`: what is not here is refused. */
export const pushClauses = ["$each", "$slice"] as const;

/** The items that `$push` appends, and where what is kept of all begins, counted from the end. @throws CommandError 2. */
function readPush(operand: unknown): { items: readonly unknown[]; slice: number } {
  if (!isDocument(operand) || !Object.keys(operand)[0]?.startsWith("$"))
    return { items: [operand], slice: Number.NEGATIVE_INFINITY };
  const unknown = Object.keys(operand).find((name) => !pushClauses.some((clause) => clause === name));
  if (unknown !== undefined) throw notOffered(`${unknown} of $push`, "BadValue");
  const { $each: items, $slice: slice = Number.NEGATIVE_INFINITY } = operand;
  if (!Array.isArray(items)) throw badValue("The argument to $each in $push must be an array");
  if (typeof slice !== "number" || Number.isNaN(slice)) throw badValue("The value for $slice must be an integer value");
  if (slice >= 0) throw notOffered("a $slice of $push that keeps the first", "BadValue");
  return { items, slice };
}
