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
  const clause = isDocument(operand) ? Object.keys(operand).find((name) => name.startsWith("$")) : undefined;
  if (clause !== undefined) throw notOffered(`${clause} of $push`, "BadValue");
  return {
    isCreating: true,
    apply(current) {
      if (current === undefined) return [operand];
      if (Array.isArray(current)) return [...current, operand];
      throw badValue(
        `The field '${path}' must be an array but is of type ${typeName(current)} in document {_id: ${showValue(id)}}`,
      );
    },
  };
}
