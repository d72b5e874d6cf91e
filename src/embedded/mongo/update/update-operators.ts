import { isDocument, typeName } from "../bson/bson-types.ts";
import { compareValues } from "../bson/order.ts";
import { badValue, notOffered, showValue, typeMismatch } from "../command-error.ts";
import { type Modifier, removed } from "./update-paths.ts";

/** The modifier of one `operator: { path: operand }` for the document of that `_id`; throws for a malformed operand. */
type ModifierFactory = (operand: unknown, path: string, id: unknown) => Modifier;

/** Every update operator that this server has: what is not here is refused. Only an insert applies `$setOnInsert`. */
export const updateOperators: Readonly<Record<string, ModifierFactory>> = {
  $set: set,
  $setOnInsert: set,
  $unset: unset,
  $inc: inc,
  $min: min,
  $push: push,
};

function set(operand: unknown): Modifier {
  return { isCreating: true, apply: () => operand };
}

function unset(): Modifier {
  return {
    isCreating: false,
    isTolerant: true,
    apply: (current) => (current === undefined ? undefined : removed),
  };
}

function inc(operand: unknown, path: string, id: unknown): Modifier {
  if (typeof operand !== "number") {
    throw typeMismatch(`Cannot increment with non-numeric argument: {${path}: ${showValue(operand)}}`);
  }
  return {
    isCreating: true,
    apply(current) {
      if (current === undefined) return operand;
      if (typeof current === "number") return current + operand;
      const field = `{_id: ${showValue(id)}} has the field '${path.split(".").at(-1)}'`;
      throw typeMismatch(
        `Cannot apply $inc to a value of non-numeric type. ${field} of non-numeric type ${typeName(current)}`,
      );
    },
  };
}

function min(operand: unknown): Modifier {
  return {
    isCreating: true,
    apply: (current) => (current === undefined || compareValues(operand, current) < 0 ? operand : undefined),
  };
}

function push(operand: unknown, path: string, id: unknown): Modifier {
  const { items, slice } = readPush(operand);
  return {
    isCreating: true,
    apply(current = []) {
      if (Array.isArray(current)) return [...current, ...items].slice(slice);
      throw badValue(
        `The field '${path}' must be an array but is of type ${typeName(current)} in document {_id: ${showValue(id)}}`,
      );
    },
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
