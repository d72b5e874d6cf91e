import { Long } from "bson";
import { typeName } from "./bson-types.ts";
import { notImplemented } from "./command-error.ts";
import { fixed, isNullish, type OperatorTable, unary, variadic } from "./expression-arguments.ts";
import {
  addNumbers,
  divideNumbers,
  makeDouble,
  multiplyNumbers,
  numberKind,
  subtractNumbers,
  toBigInt,
  toDouble,
  toSafeInteger,
} from "./numbers.ts";
import { badValue, located, typeMismatch } from "./refusals.ts";

/** Sums numbers; one date among them makes the sum a date. */
export function addAll(values: readonly unknown[]): unknown {
  if (values.some(isNullish)) return null;
  const dates = values.filter((value) => value instanceof Date);
  const bad = values.find((value) => numberKind(value) === undefined && !(value instanceof Date));
  if (bad !== undefined) throw typeMismatch(`$add only supports numeric or date types, not ${typeName(bad)}`);
  if (dates.length > 1) throw typeMismatch("only one date allowed in an $add expression");
  const numbers = values.filter((value) => !(value instanceof Date));
  const sum = numbers.reduce((total: unknown, value) => widenOnOverflow(addNumbers, total, value), 0);
  const [date] = dates;
  return date === undefined ? sum : new Date(date.getTime() + Math.round(toDouble(sum)));
}

/** Where a 64-bit sum overflows, aggregation goes on in doubles. */
export function widenOnOverflow(combine: (a: unknown, b: unknown) => unknown, a: unknown, b: unknown): unknown {
  return combine(a, b) ?? combine(makeDouble(toDouble(a)), makeDouble(toDouble(b)));
}

function subtract([a, b]: unknown[]): unknown {
  if (isNullish(a) || isNullish(b)) return null;
  if (a instanceof Date) {
    if (b instanceof Date) return Long.fromNumber(a.getTime() - b.getTime());
    if (numberKind(b) !== undefined) return new Date(a.getTime() - Math.round(toDouble(b)));
  }
  if (numberKind(a) === undefined || numberKind(b) === undefined) {
    throw typeMismatch(`can't $subtract ${typeName(b)} from ${typeName(a)}`);
  }
  return widenOnOverflow(subtractNumbers, a, b);
}

function multiply(values: readonly unknown[]): unknown {
  if (values.some(isNullish)) return null;
  const bad = values.find((value) => numberKind(value) === undefined);
  if (bad !== undefined) throw typeMismatch(`$multiply only supports numeric types, not ${typeName(bad)}`);
  return values.reduce((product, value) => widenOnOverflow(multiplyNumbers, product, value), 1);
}

function divide([a, b]: unknown[]): unknown {
  if (isNullish(a) || isNullish(b)) return null;
  if (numberKind(a) === undefined || numberKind(b) === undefined) {
    throw typeMismatch(`$divide only supports numeric types, not ${typeName(a)} and ${typeName(b)}`);
  }
  if (toDouble(b) === 0) throw badValue("can't $divide by zero");
  return divideNumbers(a, b);
}

function modulo([a, b]: unknown[]): unknown {
  if (isNullish(a) || isNullish(b)) return null;
  const kinds = [numberKind(a), numberKind(b)];
  if (kinds.includes(undefined)) {
    throw located(16611, `$mod only supports numeric types, not ${typeName(a)} and ${typeName(b)}`);
  }
  if (toDouble(b) === 0) throw located(16610, "can't $mod by zero");
  if (kinds.includes("decimal")) throw notImplemented("$mod of a decimal");
  if (kinds.includes("double")) return makeDouble(toDouble(a) % toDouble(b));
  const rest = toBigInt(a) % toBigInt(b);
  return kinds.includes("long") ? Long.fromBigInt(rest) : Number(rest);
}

/** A function of one number whose result is a double. */
const real = (run: (value: number) => number, check?: (value: number) => void) =>
  unary((value, name) => {
    if (isNullish(value)) return null;
    if (numberKind(value) === undefined) throw notNumeric(name, value);
    refuseDecimal(name, value);
    const double = toDouble(value);
    check?.(double);
    return makeDouble(run(double));
  });

/** A function of one number that keeps the type of whole numbers. */
const whole = (run: (value: number) => number) =>
  unary((value, name) => {
    if (isNullish(value)) return null;
    const kind = numberKind(value);
    if (kind === undefined) throw notNumeric(name, value);
    refuseDecimal(name, value);
    return kind === "int" || kind === "long" ? value : makeDouble(run(toDouble(value)));
  });

/** Functions that would have to go by way of a double would lose a decimal's digits. */
function refuseDecimal(name: string, ...values: readonly unknown[]): void {
  if (values.some((value) => numberKind(value) === "decimal")) throw notImplemented(`${name} of a decimal`);
}

const notNumeric = (name: string, value: unknown) =>
  located(28765, `${name} only supports numeric types, not ${typeName(value)}`);

function absolute(value: unknown, name: string): unknown {
  if (isNullish(value)) return null;
  const kind = numberKind(value);
  if (kind === undefined) throw notNumeric(name, value);
  refuseDecimal(name, value);
  if (kind !== "long") return kind === "int" ? Math.abs(toDouble(value)) : makeDouble(Math.abs(toDouble(value)));
  const bits = toBigInt(value);
  return Long.fromBigInt(bits < 0n ? -bits : bits);
}

/** `$round` to even at the half, `$trunc` towards zero, at a decimal place that may be negative. */
const atPlace = (run: (value: number) => number) =>
  fixed(1, 2, ([value, place], name) => {
    if (isNullish(value) || place === null) return null;
    const kind = numberKind(value);
    if (kind === undefined) throw located(51081, `${name} only supports numeric types, not ${typeName(value)}`);
    refuseDecimal(name, value);
    const places = place === undefined ? 0 : toSafeInteger(place);
    if (places === undefined) throw located(51082, `precision argument to ${name} must be a integral value`);
    if (places < -20 || places > 100)
      throw located(51083, `cannot apply ${name} with precision value ${places} value must be in [-20, 100]`);
    if ((kind === "int" || kind === "long") && places >= 0) return value;
    const moved = run(shift(toDouble(value), places));
    const result = shift(moved, -places);
    return kind === "int" ? result : kind === "long" ? Long.fromNumber(result) : makeDouble(result);
  });

/** Moves the decimal point by text, because a multiplication by ten is not exact. */
function shift(value: number, places: number): number {
  if (places === 0 || !Number.isFinite(value)) return value;
  const [mantissa = "0", exponent = "0"] = String(value).split("e");
  return Number(`${mantissa}e${Number(exponent) + places}`);
}

function roundHalfEven(value: number): number {
  const rounded = Math.round(value);
  return Math.abs(value % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

const power = fixed(2, 2, ([base, exponent]) => {
  if (isNullish(base) || isNullish(exponent)) return null;
  if (numberKind(base) === undefined) throw located(28762, `$pow's base must be numeric, not ${typeName(base)}`);
  if (numberKind(exponent) === undefined)
    throw located(28763, `$pow's exponent must be numeric, not ${typeName(exponent)}`);
  if (toDouble(base) === 0 && toDouble(exponent) < 0)
    throw located(28764, "$pow cannot take a base of 0 and a negative exponent");
  refuseDecimal("$pow", base, exponent);
  const result = toDouble(base) ** toDouble(exponent);
  const isWhole = [base, exponent].every((part) => numberKind(part) === "int" || numberKind(part) === "long");
  return isWhole && Number.isSafeInteger(result) ? addNumbers(Long.fromNumber(result), 0) : makeDouble(result);
});

const logarithm = fixed(2, 2, ([value, base]) => {
  if (isNullish(value) || isNullish(base)) return null;
  if (numberKind(value) === undefined) throw located(28756, `$log's argument must be numeric, not ${typeName(value)}`);
  if (numberKind(base) === undefined) throw located(28757, `$log's base must be numeric, not ${typeName(base)}`);
  if (toDouble(value) <= 0)
    throw located(28758, `$log's argument must be a positive number, but is ${toDouble(value)}`);
  if (toDouble(base) <= 0 || toDouble(base) === 1)
    throw located(28759, "$log's base must be a positive number not equal to 1");
  refuseDecimal("$log", value, base);
  return makeDouble(Math.log(toDouble(value)) / Math.log(toDouble(base)));
});

const positive = (name: string, code: number) => (value: number) => {
  if (value <= 0) throw located(code, `${name}'s argument must be a positive number, but is ${value}`);
};

export const arithmeticOperators: OperatorTable = {
  $add: variadic(addAll),
  $subtract: fixed(2, 2, subtract),
  $multiply: variadic(multiply),
  $divide: fixed(2, 2, divide),
  $mod: fixed(2, 2, modulo),
  $abs: unary(absolute),
  $ceil: whole(Math.ceil),
  $floor: whole(Math.floor),
  $round: atPlace(roundHalfEven),
  $trunc: atPlace(Math.trunc),
  $sqrt: real(Math.sqrt, (value) => {
    if (value < 0) throw located(28714, "$sqrt's argument must be greater than or equal to 0");
  }),
  $exp: real(Math.exp),
  $ln: real(Math.log, positive("$ln", 28766)),
  $log10: real(Math.log10, positive("$log10", 28761)),
  $log: logarithm,
  $pow: power,
  $rand: (_operand) => () => Math.random(),
};
