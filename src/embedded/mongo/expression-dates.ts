import { Long } from "bson";
import { Context } from "mingo/core";
import { $dateDiff, $dateToString, $dateTrunc, $dayOfYear, $isoWeek } from "mingo/operators/expression/date";
import { typeName } from "./bson-types.ts";
import { notImplemented } from "./command-error.ts";
import { isNullish, named, type OperatorTable, unary } from "./expression-arguments.ts";
import { toDateValue } from "./expression-types.ts";
import { toSafeInteger } from "./numbers.ts";
import { located } from "./refusals.ts";

type Values = Readonly<Record<string, unknown>>;

/** mingo's options with nothing registered but `$literal`, so that operands are taken as the values they are. */
const options = {
  context: Context.init({ expression: { $literal: (_document: unknown, operand: unknown) => operand } as never }),
} as never; // the operators take options in this form too, though their types name only mingo's inner one

/** Calendar arithmetic in UTC is mingo's; it is handed dates and names that were checked here. */
function calculate(operator: typeof $dateTrunc, values: Values): unknown {
  const literals = Object.entries(values).map(([name, value]) => [name, { $literal: value }]);
  return operator({}, Object.fromEntries(literals), options);
}

const units = new Set(["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"]);

function assertUnit(unit: unknown, name: string): asserts unit is string {
  if (typeof unit !== "string" || !units.has(unit))
    throw located(9, `${name} parameter 'unit' value cannot be recognized as a time unit: ${String(unit)}`);
}

/** Only UTC is offered: zones need rules that are not here, and a wrong hour is worse than a refusal. */
function assertUtc(zone: unknown): void {
  if (
    zone === undefined ||
    (typeof zone === "string" && ["UTC", "GMT", "Etc/UTC", "Z", "+00:00", "+0000", "+00"].includes(zone))
  )
    return;
  throw notImplemented("a timezone other than UTC");
}

function assertDate(value: unknown, name: string): asserts value is Date {
  if (!(value instanceof Date))
    throw located(16006, `can't convert from BSON type ${typeName(value)} to Date in ${name}`);
}

/** The date as the operators take it: a date, or an ObjectId's or a timestamp's. */
const part = (read: (date: Date) => unknown) =>
  unary((value, name) => {
    if (isNullish(value)) return null;
    const date = typeof value === "object" && !(value instanceof Date) ? toDateValue(value) : value;
    assertDate(date, name);
    return read(date);
  });

const dateToString = named(
  { required: ["date"], optional: ["format", "timezone", "onNull"] },
  ({ date, format = "%Y-%m-%dT%H:%M:%S.%LZ", timezone, onNull }, name) => {
    if (isNullish(date)) return onNull ?? null;
    assertDate(date, name);
    assertUtc(timezone);
    if (typeof format !== "string")
      throw located(18533, `$dateToString requires that 'format' be a string, found: ${typeName(format)}`);
    const bad = /%(?![YmdHMSLjuVw%])(.?)/.exec(format.replaceAll("%%", ""));
    if (bad !== null && /[BbGUzZ]/.test(bad[1] ?? "")) throw notImplemented(`%${bad[1]} in a date format`);
    if (bad !== null) throw located(18536, `Invalid format character '%${bad[1]}' in format string`);
    return format
      .split("%%")
      .map((piece) => (piece === "" ? "" : calculate($dateToString, { date, format: piece })))
      .join("%");
  },
);

const dateTrunc = named(
  { required: ["date", "unit"], optional: ["binSize", "timezone", "startOfWeek"] },
  ({ date, unit, binSize = 1, timezone, startOfWeek = "sunday" }, name) => {
    if (isNullish(date) || isNullish(unit) || binSize === null) return null;
    assertDate(date, name);
    assertUnit(unit, name);
    assertUtc(timezone);
    const size = toSafeInteger(binSize);
    if (size === undefined || size <= 0) throw located(5439017, "$dateTrunc requires 'binSize' to be greater than 0");
    return calculate($dateTrunc, { date, unit, binSize: size, startOfWeek });
  },
);

const dateDiff = named(
  { required: ["startDate", "endDate", "unit"], optional: ["timezone", "startOfWeek"] },
  ({ startDate, endDate, unit, timezone, startOfWeek = "sunday" }, name) => {
    if (isNullish(startDate) || isNullish(endDate) || isNullish(unit)) return null;
    assertDate(startDate, name);
    assertDate(endDate, name);
    assertUnit(unit, name);
    assertUtc(timezone);
    return Long.fromNumber(unitsBetween(startDate, endDate, unit, startOfWeek));
  },
);

const unitMs: Record<string, number> = { hour: 3_600_000, minute: 60_000, second: 1_000, millisecond: 1 };

/** How many boundaries of the unit lie between two dates. */
function unitsBetween(start: Date, end: Date, unit: string, startOfWeek: unknown): number {
  const size = unitMs[unit];
  if (size === undefined) return Number(calculate($dateDiff, { startDate: start, endDate: end, unit, startOfWeek }));
  return Math.floor(end.getTime() / size) - Math.floor(start.getTime() / size);
}

const dateAdd = (sign: 1 | -1) =>
  named(
    { required: ["startDate", "unit", "amount"], optional: ["timezone"] },
    ({ startDate, unit, amount, timezone }, name) => {
      if (isNullish(startDate) || isNullish(unit) || isNullish(amount)) return null;
      assertDate(startDate, name);
      assertUnit(unit, name);
      assertUtc(timezone);
      const count = toSafeInteger(amount);
      if (count === undefined) throw located(5166405, `${name} expects integer amount of time units`);
      return addUnits(startDate, unit, count * sign);
    },
  );

const monthsOf: Record<string, number> = { month: 1, quarter: 3, year: 12 };

/** The last day of a shorter month stands for a day that it does not have: 31 January + 1 month is 28 February. */
function addUnits(date: Date, unit: string, count: number): Date {
  const months = monthsOf[unit];
  if (months === undefined) {
    const size = unitMs[unit] ?? (unit === "week" ? 7 : 1) * 86_400_000;
    return new Date(date.getTime() + count * size);
  }
  const moved = new Date(date);
  const day = moved.getUTCDate();
  moved.setUTCDate(1);
  moved.setUTCMonth(moved.getUTCMonth() + count * months);
  const lastDay = new Date(Date.UTC(moved.getUTCFullYear(), moved.getUTCMonth() + 1, 0)).getUTCDate();
  moved.setUTCDate(Math.min(day, lastDay));
  return moved;
}

export const dateOperators: OperatorTable = {
  $year: part((date) => date.getUTCFullYear()),
  $month: part((date) => date.getUTCMonth() + 1),
  $dayOfMonth: part((date) => date.getUTCDate()),
  $hour: part((date) => date.getUTCHours()),
  $minute: part((date) => date.getUTCMinutes()),
  $second: part((date) => date.getUTCSeconds()),
  $millisecond: part((date) => date.getUTCMilliseconds()),
  $dayOfWeek: part((date) => date.getUTCDay() + 1),
  $isoDayOfWeek: part((date) => date.getUTCDay() || 7),
  $dayOfYear: part((date) => $dayOfYear({}, { $literal: date } as never, options)),
  $isoWeek: part((date) => $isoWeek({}, { $literal: date } as never, options)),
  $dateToString: dateToString,
  $dateTrunc: dateTrunc,
  $dateDiff: dateDiff,
  $dateAdd: dateAdd(1),
  $dateSubtract: dateAdd(-1),
};
