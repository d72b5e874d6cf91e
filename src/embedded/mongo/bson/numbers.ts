import { Double, Long } from "bson";
import { bsonTag, isInt32 } from "./bson-types.ts";

/** The numeric types, in the order in which arithmetic widens them. */
export type NumberKind = "int" | "long" | "double";

/** The numeric type of a value, or undefined when it is not a number. */
export function numberKind(value: unknown): NumberKind | undefined {
  if (typeof value === "number") return isInt32(value) ? "int" : "double";
  switch (bsonTag(value)) {
    case "Long":
      return "long";
    case "Int32":
      return "int";
    case "Double":
      return "double";
    default:
      return undefined;
  }
}

/** The nearest double of a number of any type; NaN for what is not a number. */
export function toDouble(value: unknown): number {
  if (typeof value === "number") return value;
  if (value instanceof Long) return value.toNumber();
  return numberKind(value) === undefined ? Number.NaN : Number(value);
}

/** A double as it is kept in documents: wrapped where a plain number would be written as a 32-bit integer. */
export function makeDouble(value: number): number | Double {
  return isInt32(value) ? new Double(value) : value;
}

/** The value as a 64-bit integer; the caller knows that it is an int or a long. */
function toBigInt(value: unknown): bigint {
  return value instanceof Long ? value.toBigInt() : BigInt(Math.trunc(toDouble(value)));
}

/** The value as a whole plain number, or undefined when it is not a whole number within the safe range. */
export function toSafeInteger(value: unknown): number | undefined {
  if (numberKind(value) === undefined) return undefined;
  const double = toDouble(value);
  return Number.isSafeInteger(double) ? double : undefined;
}

/** The order of two numbers of any types, exact across them. NaN comes before every other number and equals itself. */
export function compareNumbers(a: unknown, b: unknown): number {
  if (typeof a === "number" && typeof b === "number") return compareDoubles(a, b);
  const byDouble = compareDoubles(toDouble(a), toDouble(b));
  if (byDouble !== 0 || !(a instanceof Long || b instanceof Long) || Number.isNaN(toDouble(a))) return byDouble;
  // Equal as doubles, so both are whole: an int64 may lie beside the double that is nearest to it.
  const [left, right] = [toBigInt(a), toBigInt(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

function compareDoubles(a: number, b: number): number {
  if (a < b) return -1;
  if (a > b) return 1;
  if (a === b) return 0;
  return Number.isNaN(a) ? (Number.isNaN(b) ? 0 : -1) : 1;
}

/** The sum in the wider of the two types. Undefined says that a 64-bit integer overflowed. */
export function addNumbers(a: unknown, b: unknown): unknown {
  const kinds = [numberKind(a), numberKind(b)];
  const sum = toDouble(a) + toDouble(b);
  if (kinds.includes("double")) return makeDouble(sum);
  if (!kinds.includes("long") && (isInt32(sum) || sum === 0)) return sum === 0 ? 0 : sum;
  const exact = toBigInt(a) + toBigInt(b);
  return BigInt.asIntN(64, exact) === exact ? Long.fromBigInt(exact) : undefined;
}
