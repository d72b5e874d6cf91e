import { z } from "zod";
import { AppError } from "../../lib/errors.ts";
import { toolKind } from "./tool.ts";

/** Computes arithmetic expressions. */
export const calculator = toolKind({
  schema: z.strictObject({}).default({}),
  make: (_, { tool, about }) =>
    tool(({ expression }) => String(evaluateArithmetic(expression)), {
      ...about(
        "Computes an arithmetic expression: + - * / % ^, parentheses, pi, e, and functions as sqrt, round, min, max, ln, log10, sin.",
        1_000,
      ),
      schema: z.object({ expression: z.string().min(1).max(1_000).describe("As (2 + 3) * 4^2") }),
    }),
});

type Compute = (...values: number[]) => number;
type Operator = (a: number, b: number) => number;

const constants: Readonly<Record<string, number>> = { pi: Math.PI, e: Math.E };
const named = ["abs", "ceil", "cos", "exp", "floor", "log10", "max", "min", "round", "sin", "sqrt", "tan"] as const;
const functions: Readonly<Record<string, Compute>> = {
  ...Object.fromEntries(named.map((name) => [name, Math[name]])),
  ...{ ln: Math.log, log: Math.log10, log2: Math.log2 },
};
/** Operators of two values, those that bind least first; those of one level bind from the left. */
const levels: readonly Readonly<Record<string, Operator>>[] = [
  { "+": (a, b) => a + b, "-": (a, b) => a - b },
  { "*": (a, b) => a * b, "/": (a, b) => a / notZero(b), "%": (a, b) => a % notZero(b) },
];
/** Parentheses within parentheses, at most. */
const MAX_DEPTH = 100;

type Reader = { peek(): string | undefined; next(): string | undefined; depth: number };

/**
 * The value of an expression as `-2^2 + 3 * (4 - 1)`: powers bind first and from the right, then signs, products, sums.
 * @throws AppError `invalid_request` that says what is wrong with it.
 */
function evaluateArithmetic(text: string): number {
  const tokens = text.match(/\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+|[A-Za-z]\w*|\*\*|\S/g) ?? [];
  let at = 0;
  const reader: Reader = { peek: () => tokens[at], next: () => tokens[at++], depth: 0 };
  const value = readSum(reader);
  if (at < tokens.length) throw wrong(`"${tokens[at]}" is not expected there`);
  if (!Number.isFinite(value)) throw wrong("it has no finite value");
  return Number(value.toPrecision(15));
}

const readSum = (reader: Reader) => nested(reader, () => readLevel(reader, 0));

function nested(reader: Reader, read: () => number): number {
  reader.depth += 1;
  if (reader.depth > MAX_DEPTH) throw wrong("it is nested too deeply");
  const value = read();
  reader.depth -= 1;
  return value;
}

function readLevel(reader: Reader, level: number): number {
  const operators = levels[level];
  if (!operators) return readSigned(reader);
  let value = readLevel(reader, level + 1);
  for (;;) {
    const apply = entryOf(operators, reader.peek());
    if (!apply) return value;
    reader.next();
    value = apply(value, readLevel(reader, level + 1));
  }
}

function readSigned(reader: Reader): number {
  let sign = 1;
  for (let next = reader.peek(); next === "-" || next === "+"; next = reader.peek()) {
    reader.next();
    if (next === "-") sign = -sign;
  }
  return sign * readPower(reader);
}

function readPower(reader: Reader): number {
  const base = readValue(reader);
  if (reader.peek() !== "^" && reader.peek() !== "**") return base;
  reader.next();
  return nested(reader, () => base ** readSigned(reader));
}

function readValue(reader: Reader): number {
  const token = reader.next();
  if (token === undefined) throw wrong("it ends too early");
  if (token === "(") return readGroup(reader, 1)[0] ?? 0;
  if (/^[\d.]/.test(token)) return Number(token);
  const name = token.toLowerCase();
  const constant = entryOf(constants, name);
  if (constant !== undefined) return constant;
  const compute = entryOf(functions, name);
  if (!compute) throw wrong(`"${token}" is not known`);
  if (reader.next() !== "(") throw wrong(`${name} needs its value in parentheses`);
  return compute(...readGroup(reader, MAX_DEPTH));
}

/** The values up to the closing parenthesis, with commas between them. */
function readGroup(reader: Reader, most: number): number[] {
  const values = [readSum(reader)];
  while (reader.peek() === "," && values.length < most) {
    reader.next();
    values.push(readSum(reader));
  }
  if (reader.next() !== ")") throw wrong("a parenthesis is not closed");
  return values;
}

const entryOf = <T>(record: Readonly<Record<string, T>>, name = "") =>
  Object.hasOwn(record, name) ? record[name] : undefined;

function notZero(value: number): number {
  if (value === 0) throw wrong("it divides by zero");
  return value;
}

const wrong = (why: string) => new AppError("invalid_request", `The expression cannot be computed: ${why}.`);
