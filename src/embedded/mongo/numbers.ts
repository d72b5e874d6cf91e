import { Decimal128, Double, Long } from "bson";
import { bsonTag, isInt32 } from "./bson-types.ts";
import {
  addDecimals,
  compareDecimals,
  type Decimal,
  decimalOfDouble,
  divideDecimals,
  multiplyDecimals,
  parseDecimal,
  toDecimal128,
} from "./decimal.ts";

/** The four numeric types, in the order in which arithmetic widens them. */
export type NumberKind = "int" | "long" | "double" | "decimal";
const kindOrder: readonly NumberKind[] = ["int", "long", "double", "decimal"];

/** The numeric type of a value, or undefined when it is not a number. */
export function numberKind(value: unknown): NumberKind | undefined {
  if (typeof value === "number") return isInt32(value) ? "int" : "double";
  if (typeof value === "bigint") return "long";
  switch (bsonTag(value)) {
    case "Long":
      return "long";
    case "Int32":
      return "int";
    case "Double":
      return "double";
    case "Decimal128":
      return "decimal";
    default:
      return undefined;
  }
}

/** The nearest double of a number of any type; NaN for what is not a number. */
export function toDouble(value: unknown): number {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Long) return value.toNumber();
  return numberKind(value) === undefined ? Number.NaN : Number(value);
}

/** A double as it is kept in documents: wrapped where a plain number would be written as a 32-bit integer. */
export function makeDouble(value: number): number | Double {
  return isInt32(value) ? new Double(value) : value;
}

/** A whole number as MongoDB types it: 32 bits where it fits, else 64. */
export function makeInteger(value: number): number | Long {
  return isInt32(value) ? value : value === 0 ? 0 : Long.fromNumber(value);
}

/** The value as a 64-bit integer; the caller knows that it is an int or a long. */
export function toBigInt(value: unknown): bigint {
  if (typeof value === "bigint") return value;
  if (value instanceof Long) return value.toBigInt();
  return BigInt(Math.trunc(toDouble(value)));
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
  const kindA = numberKind(a);
  const kindB = numberKind(b);
  if (isInteger(kindA) && isInteger(kindB)) {
    const left = toBigInt(a);
    const right = toBigInt(b);
    return left < right ? -1 : left > right ? 1 : 0;
  }
  const doubleA = toDouble(a);
  const doubleB = toDouble(b);
  if (kindA === "double" && kindB === "double") return compareDoubles(doubleA, doubleB);
  const exactA = toDecimal(a);
  const exactB = toDecimal(b);
  // A decimal may be too large for a double without being infinite, so the exact forms decide where there are two.
  if (exactA !== undefined && exactB !== undefined) return compareDecimals(exactA, exactB);
  if (exactA !== undefined) return doubleB === Number.POSITIVE_INFINITY ? -1 : 1;
  if (exactB !== undefined) return doubleA === Number.POSITIVE_INFINITY ? 1 : -1;
  return compareDoubles(doubleA, doubleB);
}

function compareDoubles(a: number, b: number): number {
  if (a < b) return -1;
  if (a > b) return 1;
  if (a === b) return 0;
  return Number.isNaN(a) ? (Number.isNaN(b) ? 0 : -1) : 1;
}

const isInteger = (kind: NumberKind | undefined) => kind === "int" || kind === "long";

/** The exact decimal of a finite number of any type; undefined for NaN and the infinities. */
export function toDecimal(value: unknown): Decimal | undefined {
  const kind = numberKind(value);
  if (isInteger(kind)) return { coefficient: toBigInt(value), exponent: 0 };
  if (kind === "decimal") return parseDecimal(String(value));
  const double = toDouble(value);
  return Number.isFinite(double) ? decimalOfDouble(double) : undefined;
}

export function addNumbers(a: unknown, b: unknown): unknown {
  return combine(a, b, { double: (x, y) => x + y, integer: (x, y) => x + y, decimal: addDecimals });
}

export function subtractNumbers(a: unknown, b: unknown): unknown {
  return combine(a, b, {
    double: (x, y) => x - y,
    integer: (x, y) => x - y,
    decimal: (x, y) => addDecimals(x, { coefficient: -y.coefficient, exponent: y.exponent }),
  });
}

export function multiplyNumbers(a: unknown, b: unknown): unknown {
  return combine(a, b, { double: (x, y) => x * y, integer: (x, y) => x * y, decimal: multiplyDecimals });
}

/** The quotient, a decimal where one of the two is and a double otherwise; the divisor is not zero. */
export function divideNumbers(a: unknown, b: unknown): unknown {
  const left = toDecimal(a);
  const right = toDecimal(b);
  const isDecimal = numberKind(a) === "decimal" || numberKind(b) === "decimal";
  if (isDecimal && left !== undefined && right !== undefined) return toDecimal128(divideDecimals(left, right));
  const quotient = toDouble(a) / toDouble(b);
  return isDecimal ? Decimal128.fromString(String(quotient)) : makeDouble(quotient);
}

type Operation = {
  double: (a: number, b: number) => number;
  integer: (a: bigint, b: bigint) => bigint;
  decimal: (a: Decimal, b: Decimal) => Decimal;
};

/** Applies an operation in the wider of the two types. Undefined says that a 64-bit integer overflowed. */
function combine(a: unknown, b: unknown, operation: Operation): unknown {
  const kind = widerKind(numberKind(a), numberKind(b));
  if (kind === "double") return makeDouble(operation.double(toDouble(a), toDouble(b)));
  if (kind === "decimal") {
    const left = toDecimal(a);
    const right = toDecimal(b);
    if (left !== undefined && right !== undefined) return toDecimal128(operation.decimal(left, right));
    return Decimal128.fromString(String(operation.double(toDouble(a), toDouble(b))));
  }
  if (kind === "int") {
    const result = operation.double(toDouble(a), toDouble(b));
    if (isInt32(result)) return result;
    if (result === 0) return 0;
  }
  const result = operation.integer(toBigInt(a), toBigInt(b));
  return BigInt.asIntN(64, result) === result ? Long.fromBigInt(result) : undefined;
}

function widerKind(a: NumberKind | undefined, b: NumberKind | undefined): NumberKind {
  const place = Math.max(a === undefined ? 0 : kindOrder.indexOf(a), b === undefined ? 0 : kindOrder.indexOf(b));
  return kindOrder[place] ?? "double";
}
