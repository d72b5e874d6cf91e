import { AppError } from "../../errors.ts";

const constants: Readonly<Record<string, number>> = { pi: Math.PI, e: Math.E };
const functions: Readonly<Record<string, (...values: number[]) => number>> = {
  abs: Math.abs,
  ceil: Math.ceil,
  cos: Math.cos,
  exp: Math.exp,
  floor: Math.floor,
  ln: Math.log,
  log: Math.log10,
  log10: Math.log10,
  log2: Math.log2,
  max: Math.max,
  min: Math.min,
  round: Math.round,
  sin: Math.sin,
  sqrt: Math.sqrt,
  tan: Math.tan,
};
/** Parentheses within parentheses, at most. */
const MAX_DEPTH = 100;

type Reader = { peek(): string | undefined; next(): string | undefined; depth: number };

/**
 * The value of an arithmetic expression, as `-2^2 + 3 * (4 - 1)`. Powers bind first and from the right, then signs, then
 * products, then sums.
 * @throws AppError `invalid_request` that says what is wrong with it.
 */
export function evaluateArithmetic(text: string): number {
  const tokens = text.match(/\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+|[A-Za-z]\w*|\*\*|\S/g) ?? [];
  let at = 0;
  const reader: Reader = { peek: () => tokens[at], next: () => tokens[at++], depth: 0 };
  const value = readSum(reader);
  if (at < tokens.length) throw wrong(`"${tokens[at]}" is not expected there`);
  if (!Number.isFinite(value)) throw wrong("it has no finite value");
  return Number(value.toPrecision(15));
}

function readSum(reader: Reader): number {
  reader.depth += 1;
  if (reader.depth > MAX_DEPTH) throw wrong("it is nested too deeply");
  let value = readProduct(reader);
  for (let sign = reader.peek(); sign === "+" || sign === "-"; sign = reader.peek()) {
    reader.next();
    const right = readProduct(reader);
    value = sign === "+" ? value + right : value - right;
  }
  reader.depth -= 1;
  return value;
}

function readProduct(reader: Reader): number {
  let value = readSigned(reader);
  for (let sign = reader.peek(); sign === "*" || sign === "/" || sign === "%"; sign = reader.peek()) {
    reader.next();
    const right = readSigned(reader);
    if (sign !== "*" && right === 0) throw wrong("it divides by zero");
    value = sign === "*" ? value * right : sign === "/" ? value / right : value % right;
  }
  return value;
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
  reader.depth += 1;
  if (reader.depth > MAX_DEPTH) throw wrong("it is nested too deeply");
  const power = base ** readSigned(reader);
  reader.depth -= 1;
  return power;
}

function readValue(reader: Reader): number {
  const token = reader.next();
  if (token === undefined) throw wrong("it ends too early");
  if (token === "(") return readGroup(reader, 1)[0] ?? 0;
  if (/^[\d.]/.test(token)) return Number(token);
  const name = token.toLowerCase();
  const constant = Object.hasOwn(constants, name) ? constants[name] : undefined;
  if (constant !== undefined) return constant;
  const compute = Object.hasOwn(functions, name) ? functions[name] : undefined;
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

const wrong = (why: string) => new AppError("invalid_request", `The expression cannot be computed: ${why}.`);
