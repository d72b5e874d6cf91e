import { compareValues } from "./compare.ts";
import { widenOnOverflow } from "./expression-arithmetic.ts";
import { addNumbers, divideNumbers, numberKind } from "./numbers.ts";

/** The sum of the numbers among the values; 0 when there is none. */
export function sumOf(values: readonly unknown[]): unknown {
  return values.reduce(
    (total: unknown, value) => (numberKind(value) === undefined ? total : widenOnOverflow(addNumbers, total, value)),
    0,
  );
}

/** The mean of the numbers among the values; null when there is none. */
export function averageOf(values: readonly unknown[]): unknown {
  const numbers = values.filter((value) => numberKind(value) !== undefined);
  if (numbers.length === 0) return null;
  return divideNumbers(sumOf(numbers), numbers.length);
}

/** The smallest (`sign` -1) or largest (1) value by MongoDB's order, null and missing aside; null when there is none. */
export function extremeOf(values: readonly unknown[], sign: 1 | -1): unknown {
  return values.reduce((best: unknown, value) => {
    if (value === null || value === undefined) return best;
    return best === null || compareValues(value, best) * sign > 0 ? value : best;
  }, null);
}
