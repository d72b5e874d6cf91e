import { type Document, Long, Timestamp } from "bson";
import { isDocument, typeName } from "./bson-types.ts";
import { compareValues } from "./compare.ts";
import { addNumbers, multiplyNumbers, numberKind, toBigInt } from "./numbers.ts";
import { badValue, typeMismatch } from "./refusals.ts";
import { showElement, showValue } from "./show-value.ts";
import { addToSet, pop, pull, pullAll, push } from "./update-arrays.ts";
import { type Modifier, removed } from "./update-paths.ts";

/** What a modifier may mention of the document it changes. */
export type UpdateTarget = { id: unknown; now: Date };

/** The modifier of one `operator: { path: operand }`; throws for a malformed operand. */
export type ModifierFactory = (operand: unknown, path: string, target: UpdateTarget) => Modifier;

const set: ModifierFactory = (operand) => ({ isCreating: true, apply: () => operand });

const unset: ModifierFactory = () => ({
  isCreating: false,
  isTolerant: true,
  apply: (current) => (current === undefined ? undefined : removed),
});

const inc: ModifierFactory = (operand, path, target) => {
  if (numberKind(operand) === undefined) {
    throw typeMismatch(`Cannot increment with non-numeric argument: {${showElement(path, operand)}}`);
  }
  return arithmetic("$inc", target, (current) => (current === undefined ? operand : addNumbers(current, operand)));
};

const mul: ModifierFactory = (operand, path, target) => {
  if (numberKind(operand) === undefined) {
    throw typeMismatch(`Cannot multiply with non-numeric argument: {${showElement(path, operand)}}`);
  }
  // A missing field becomes zero of the operand's type.
  return arithmetic("$mul", target, (current) => multiplyNumbers(current === undefined ? 0 : current, operand));
};

function arithmetic(name: string, target: UpdateTarget, compute: (current: unknown) => unknown): Modifier {
  return {
    isCreating: true,
    apply(current, path) {
      if (current !== undefined && numberKind(current) === undefined) {
        const field = path.split(".").at(-1);
        throw typeMismatch(
          `Cannot apply ${name} to a value of non-numeric type. {_id: ${showValue(target.id)}} has the field '${field}' of non-numeric type ${typeName(current)}`,
        );
      }
      const outcome = compute(current);
      if (outcome !== undefined) return outcome;
      throw badValue(
        `Failed to apply ${name} operations to current value ((NumberLong)${String(current)}) for document {_id: ${showValue(target.id)}}`,
      );
    },
  };
}

const min: ModifierFactory = (operand) => extreme(operand, -1);
const max: ModifierFactory = (operand) => extreme(operand, 1);

function extreme(operand: unknown, sign: number): Modifier {
  return {
    isCreating: true,
    apply: (current) => (current === undefined || compareValues(operand, current) * sign > 0 ? operand : undefined),
  };
}

const currentDate: ModifierFactory = (operand, _path, target) => {
  const kind = typeof operand === "boolean" ? "date" : currentDateType(operand);
  const seconds = Math.floor(target.now.getTime() / 1000);
  const value = kind === "date" ? target.now : new Timestamp({ t: seconds, i: 1 });
  return { isCreating: true, apply: () => value };
};

function currentDateType(operand: unknown): "date" | "timestamp" {
  if (!isDocument(operand)) {
    throw badValue(
      `${typeName(operand)} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({$type: 'timestamp/date'}).`,
    );
  }
  const unknown = Object.keys(operand).find((name) => name !== "$type");
  if (unknown !== undefined) throw badValue(`Unrecognized $currentDate option: ${unknown}`);
  if (operand.$type === "date" || operand.$type === "timestamp") return operand.$type;
  throw badValue(
    "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}",
  );
}

const bitOperations: Record<string, (a: bigint, b: bigint) => bigint> = {
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
};

const bit: ModifierFactory = (operand, path, target) => {
  if (!isDocument(operand) || Object.keys(operand).length === 0) {
    throw badValue(
      `The $bit modifier is not compatible with a ${typeName(operand)}. You must pass in an embedded document: {$bit: {field: {and/or/xor: #}}`,
    );
  }
  const steps = Object.keys(operand).map((name) => bitStep(name, operand, path));
  return {
    isCreating: true,
    apply(current) {
      const kind = current === undefined ? "int" : numberKind(current);
      if (kind !== "int" && kind !== "long") {
        throw badValue(
          `Cannot apply $bit to a value of non-integral type._id: ${showValue(target.id)} has the field ${path} of non-integer type ${typeName(current)}`,
        );
      }
      const isLong = kind === "long" || steps.some((step) => step.isLong);
      const bits = steps.reduce((value, step) => step.run(value), current === undefined ? 0n : toBigInt(current));
      return isLong ? Long.fromBigInt(bits) : Number(bits);
    },
  };
};

function bitStep(name: string, operand: Document, path: string) {
  const operation = bitOperations[name];
  if (operation === undefined) {
    throw badValue(
      `The $bit modifier only supports 'and', 'or', and 'xor', not '${name}' which is an unknown operator: {${showElement(path, operand)}}`,
    );
  }
  const kind = numberKind(operand[name]);
  if (kind !== "int" && kind !== "long") {
    throw badValue(
      `The $bit modifier field must be an Integer(32/64 bit); a '${typeName(operand[name])}' is not supported here: {${showElement(path, operand)}}`,
    );
  }
  const mask = toBigInt(operand[name]);
  return { isLong: kind === "long", run: (value: bigint) => operation(value, mask) };
}

/** Every update operator that this server has; `$rename` and `$setOnInsert` are resolved before. */
export const modifierFactories: Readonly<Record<string, ModifierFactory>> = {
  $set: set,
  $setOnInsert: set,
  $unset: unset,
  $inc: inc,
  $mul: mul,
  $min: min,
  $max: max,
  $currentDate: currentDate,
  $bit: bit,
  $push: push,
  $addToSet: addToSet,
  $pull: pull,
  $pullAll: pullAll,
  $pop: pop,
};
