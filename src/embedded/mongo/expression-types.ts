import { Decimal128, Double, Long, ObjectId } from "bson";
import { bsonTag, typeName, typeNumbers } from "./bson-types.ts";
import { CommandError } from "./command-error.ts";
import { truncateDecimal } from "./decimal.ts";
import {
  type Expression,
  isNullish,
  isTruthy,
  namedOperands,
  type OperatorCompiler,
  type OperatorTable,
  unary,
} from "./expression-arguments.ts";
import { makeDouble, numberKind, toBigInt, toDecimal, toDouble } from "./numbers.ts";
import { badValue } from "./refusals.ts";

type Converter = (value: unknown) => unknown;

const failure = (message: string) =>
  new CommandError(241, "ConversionFailure", `${message} in $convert with no onError value`);

const unsupported = (value: unknown, target: string) =>
  failure(`Unsupported conversion from ${typeName(value)} to ${target}`);

function toStringValue(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return String(value);
  if (value instanceof Date) return value.toISOString();
  if (numberKind(value) !== undefined || bsonTag(value) === "ObjectId") return String(value);
  throw unsupported(value, "string");
}

function toBoolean(value: unknown): boolean {
  return typeof value === "string" || isTruthy(value);
}

/** A whole number within bounds, from a number (towards zero), a boolean or the digits of one. */
function toWhole(value: unknown, target: "int" | "long"): bigint {
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (value instanceof Date && target === "long") return BigInt(value.getTime());
  if (typeof value === "string") {
    if (!/^[+-]?\d+$/.test(value)) throw failure(`Failed to parse number '${value}'`);
    return inRange(BigInt(value.replace(/^\+/, "")), target, value);
  }
  const kind = numberKind(value);
  if (kind === undefined) throw unsupported(value, target);
  if (kind === "int" || kind === "long") return inRange(toBigInt(value), target, value);
  const decimal = kind === "decimal" ? toDecimal(value) : undefined;
  if (decimal !== undefined) return inRange(truncateDecimal(decimal), target, value);
  const double = toDouble(value);
  if (!Number.isFinite(double)) throw failure("Attempt to convert NaN or infinity value to integer type");
  return inRange(BigInt(Math.trunc(double)), target, value);
}

function inRange(whole: bigint, target: "int" | "long", value: unknown): bigint {
  if (BigInt.asIntN(target === "int" ? 32 : 64, whole) === whole) return whole;
  throw failure(`Conversion would overflow target type: ${String(value)}`);
}

function toDoubleValue(value: unknown): unknown {
  if (typeof value === "boolean") return new Double(value ? 1 : 0);
  if (value instanceof Date) return makeDouble(value.getTime());
  if (numberKind(value) !== undefined) return makeDouble(toDouble(value));
  if (typeof value !== "string") throw unsupported(value, "double");
  const double = Number(value);
  if (value.trim() !== value || value === "" || (Number.isNaN(double) && value !== "NaN")) {
    throw failure(`Failed to parse number '${value}'`);
  }
  return makeDouble(double);
}

function toDecimalValue(value: unknown): unknown {
  if (bsonTag(value) === "Decimal128") return value;
  if (typeof value === "boolean") return Decimal128.fromString(value ? "1" : "0");
  if (typeof value !== "string" && numberKind(value) === undefined) throw unsupported(value, "decimal");
  try {
    return Decimal128.fromStringWithRounding(String(value));
  } catch {
    throw failure(`Failed to parse number '${String(value)}'`);
  }
}

export function toDateValue(value: unknown): unknown {
  if (value instanceof Date) return value;
  if (value instanceof ObjectId) return value.getTimestamp();
  const kind = numberKind(value);
  if (kind !== undefined && kind !== "int") return new Date(Math.trunc(toDouble(value)));
  if (typeof value !== "string") throw unsupported(value, "date");
  // Text without a zone is UTC for MongoDB, and local time for JavaScript.
  const hasZone = /(?:Z|[+-]\d{2}:?\d{2})$/i.test(value) || /^\d{4}-\d{2}-\d{2}$/.test(value);
  const date = new Date(hasZone ? value : `${value}Z`);
  if (/^\d{4}-\d{2}/.test(value) && !Number.isNaN(date.getTime())) return date;
  throw failure(`Error parsing date string '${value}'`);
}

function toObjectIdValue(value: unknown): unknown {
  if (bsonTag(value) === "ObjectId") return value;
  if (typeof value !== "string") throw unsupported(value, "objectId");
  if (!/^[0-9a-f]{24}$/i.test(value)) throw failure(`Failed to parse objectId '${value}'`);
  return new ObjectId(value);
}

const converters: Record<string, Converter> = {
  string: toStringValue,
  bool: toBoolean,
  int: (value) => Number(toWhole(value, "int")),
  long: (value) => Long.fromBigInt(toWhole(value, "long")),
  double: toDoubleValue,
  decimal: toDecimalValue,
  date: toDateValue,
  objectId: toObjectIdValue,
};

function converterOf(target: unknown): Converter {
  const byNumber = Object.entries(typeNumbers).find(
    ([, code]) => numberKind(target) !== undefined && code === toDouble(target),
  );
  const name = typeof target === "string" ? target : byNumber?.[0];
  const converter = name === undefined ? undefined : converters[name];
  if (converter === undefined) throw badValue(`Unknown type name: ${String(target)}`);
  return converter;
}

const convert: OperatorCompiler = (operand, compile, name) => {
  const fields = namedOperands(operand, { required: ["input", "to"], optional: ["onError", "onNull"] }, name);
  const input = compile(fields.input);
  const to = compile(fields.to);
  const optional = (field: string): Expression | undefined => (field in fields ? compile(fields[field]) : undefined);
  const onError = optional("onError");
  const onNull = optional("onNull");
  return (context) => {
    const value = input(context);
    const target = to(context);
    if (isNullish(value)) return onNull?.(context) ?? null;
    if (isNullish(target)) return null;
    const converter = converterOf(target);
    try {
      return converter(value);
    } catch (error) {
      if (onError === undefined || !(error instanceof CommandError)) throw error;
      return onError(context);
    }
  };
};

const converted = (run: Converter) => unary((value) => (isNullish(value) ? null : run(value)));

export const typeOperators: OperatorTable = {
  $type: unary((value) => typeName(value)),
  $isNumber: unary((value) => numberKind(value) !== undefined),
  $convert: convert,
  $toString: converted(toStringValue),
  $toBool: converted(toBoolean),
  $toInt: converted((value) => Number(toWhole(value, "int"))),
  $toLong: converted((value) => Long.fromBigInt(toWhole(value, "long"))),
  $toDouble: converted(toDoubleValue),
  $toDecimal: converted(toDecimalValue),
  $toDate: converted(toDateValue),
  $toObjectId: converted(toObjectIdValue),
};
