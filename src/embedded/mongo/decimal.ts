import { Decimal128 } from "bson";

/** A finite decimal: coefficient × 10^exponent. */
export type Decimal = { coefficient: bigint; exponent: number };

const decimalPattern = /^([+-]?)(\d*)(?:\.(\d*))?(?:E([+-]?\d+))?$/i;

/** The finite value of a decimal's text, or undefined for NaN and the infinities. */
export function parseDecimal(text: string): Decimal | undefined {
  const match = decimalPattern.exec(text);
  if (match === null) return undefined;
  const [, sign, whole = "", fraction = "", power = "0"] = match;
  const digits = BigInt(`${whole}${fraction}` || "0");
  return { coefficient: sign === "-" ? -digits : digits, exponent: Number(power) - fraction.length };
}

/** The exact decimal value of a finite double. */
export function decimalOfDouble(value: number): Decimal {
  if (Number.isInteger(value)) return { coefficient: BigInt(value), exponent: 0 };
  // Every double is a whole number of 2^-1074 at the finest; halving 5^n × 10^-n keeps it exact in base ten.
  let scaled = value;
  let halvings = 0;
  while (!Number.isInteger(scaled)) {
    scaled *= 2;
    halvings += 1;
  }
  return { coefficient: BigInt(scaled) * 5n ** BigInt(halvings), exponent: -halvings };
}

/** The order of two finite decimals. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  const [left, right] = align(a, b);
  return left < right ? -1 : left > right ? 1 : 0;
}

export function addDecimals(a: Decimal, b: Decimal): Decimal {
  const [left, right, exponent] = align(a, b);
  return { coefficient: left + right, exponent };
}

export function multiplyDecimals(a: Decimal, b: Decimal): Decimal {
  return { coefficient: a.coefficient * b.coefficient, exponent: a.exponent + b.exponent };
}

/** The quotient to more digits than the BSON type keeps, without needless zeros where it is exact; `b` is not zero. */
export function divideDecimals(a: Decimal, b: Decimal): Decimal {
  const shift = Math.max(0, QUOTIENT_DIGITS + digits(b.coefficient) - digits(a.coefficient));
  let coefficient = (a.coefficient * 10n ** BigInt(shift)) / b.coefficient;
  let zeros = shift;
  while (zeros > 0 && coefficient % 10n === 0n) {
    coefficient /= 10n;
    zeros -= 1;
  }
  return { coefficient, exponent: a.exponent - b.exponent - zeros };
}

const QUOTIENT_DIGITS = 36;
const digits = (whole: bigint) => String(whole < 0n ? -whole : whole).length;

/** The whole part, towards zero. */
export function truncateDecimal({ coefficient, exponent }: Decimal): bigint {
  return exponent >= 0 ? coefficient * 10n ** BigInt(exponent) : coefficient / 10n ** BigInt(-exponent);
}

/** The BSON value, rounded to its 34 digits. */
export function toDecimal128(value: Decimal): Decimal128 {
  return Decimal128.fromStringWithRounding(`${value.coefficient}E${value.exponent}`);
}

function align(a: Decimal, b: Decimal): [bigint, bigint, number] {
  const exponent = Math.min(a.exponent, b.exponent);
  return [
    a.coefficient * 10n ** BigInt(a.exponent - exponent),
    b.coefficient * 10n ** BigInt(b.exponent - exponent),
    exponent,
  ];
}
