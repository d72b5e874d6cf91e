import { typeName } from "./bson-types.ts";
import { fixed, isNullish, named, type OperatorTable, unary, variadic } from "./expression-arguments.ts";
import { toText } from "./expression-text.ts";
import { toSafeInteger } from "./numbers.ts";
import { located } from "./refusals.ts";
import { compileRegex } from "./regex.ts";

function concat(values: readonly unknown[]): unknown {
  if (values.some(isNullish)) return null;
  const bad = values.find((value) => typeof value !== "string");
  if (bad !== undefined) throw located(16702, `$concat only supports strings, not ${typeName(bad)}`);
  return values.join("");
}

/** Case changes cover ASCII alone, as MongoDB's do. */
const lower = (text: string) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
const upper = (text: string) => text.replace(/[a-z]+/g, (letters) => letters.toUpperCase());

function substringByBytes([value, start, length]: unknown[], name: string): string {
  const bytes = Buffer.from(toText(value), "utf8");
  const from = position(start, name, "starting index");
  const count = toSafeInteger(length);
  if (count === undefined) throw located(16035, `${name}: Third argument must be a numeric type representing a length`);
  if (from < 0) throw located(50752, `${name}: starting index must be non-negative (got: ${from})`);
  const to = count < 0 ? bytes.length : from + count;
  if (isContinuation(bytes[from]))
    throw located(28656, `${name}: Invalid range, starting index is a UTF-8 continuation byte.`);
  if (isContinuation(bytes[to]))
    throw located(28657, `${name}: Invalid range, ending index is in the middle of a UTF-8 character.`);
  return bytes.subarray(from, to).toString("utf8");
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;

function position(value: unknown, name: string, what: string): number {
  const integer = toSafeInteger(value);
  if (integer === undefined) throw located(16034, `${name}: ${what} must be a numeric type`);
  return integer;
}

function substringByCodePoints([value, start, length]: unknown[], name: string): string {
  const from = toSafeInteger(start);
  const count = toSafeInteger(length);
  if (from === undefined)
    throw located(34450, `${name}: starting index must be a numeric type (is BSON type ${typeName(start)})`);
  if (count === undefined)
    throw located(34452, `${name}: length must be a numeric type (is BSON type ${typeName(length)})`);
  if (from < 0) throw located(34455, `${name}: the starting index must be nonnegative integer.`);
  if (count < 0) throw located(34454, `${name}: length must be a nonnegative integer.`);
  return [...toText(value)].slice(from, from + count).join("");
}

/** The index of a substring among code points or bytes; -1 when it is not there. */
const indexOf = (split: (text: string) => readonly (string | number)[]) =>
  fixed(2, 4, ([text, wanted, start, end], name) => {
    if (isNullish(text)) return null;
    if (typeof text !== "string")
      throw located(40091, `${name} requires a string as the first argument, found: ${typeName(text)}`);
    if (typeof wanted !== "string")
      throw located(40092, `${name} requires a string as the second argument, found: ${typeName(wanted)}`);
    const units = split(text);
    const pattern = split(wanted);
    const from = bound(start, 0, name);
    const to = Math.min(bound(end, units.length, name), units.length);
    for (let at = from; at + pattern.length <= to; at += 1) {
      if (pattern.every((unit, offset) => units[at + offset] === unit)) return at;
    }
    return -1;
  });

function bound(value: unknown, fallback: number, name: string): number {
  if (value === undefined) return fallback;
  const integer = toSafeInteger(value);
  if (integer === undefined)
    throw located(40096, `${name} requires an integral index, found a value of type: ${typeName(value)}`);
  if (integer < 0) throw located(40097, `${name} requires a nonnegative index, found: ${integer}`);
  return integer;
}

const split = fixed(2, 2, ([text, separator]) => {
  if (isNullish(text) || isNullish(separator)) return null;
  if (typeof text !== "string")
    throw located(
      40085,
      `$split requires an expression that evaluates to a string as a first argument, found: ${typeName(text)}`,
    );
  if (typeof separator !== "string")
    throw located(
      40086,
      `$split requires an expression that evaluates to a string as a second argument, found: ${typeName(separator)}`,
    );
  if (separator === "") throw located(40087, "$split requires a non-empty separator");
  return text.split(separator);
});

/** White space as `$trim` knows it, without `chars`. */
const defaultTrimmed = new Set(
  "\0\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a",
);

const trim = (sides: { start: boolean; end: boolean }) =>
  named({ required: ["input"], optional: ["chars"] }, ({ input, chars }, name) => {
    if (isNullish(input) || chars === null) return null;
    if (typeof input !== "string")
      throw located(50699, `${name} requires its input to be a string, got ${typeName(input)} instead.`);
    if (chars !== undefined && typeof chars !== "string") {
      throw located(50700, `${name} requires 'chars' to be a string, got ${typeName(chars)} instead.`);
    }
    const dropped = chars === undefined ? defaultTrimmed : new Set(chars);
    const points = [...input];
    let from = 0;
    let to = points.length;
    while (sides.start && from < to && dropped.has(points[from] ?? "")) from += 1;
    while (sides.end && to > from && dropped.has(points[to - 1] ?? "")) to -= 1;
    return points.slice(from, to).join("");
  });

const replace = (isEvery: boolean) =>
  named({ required: ["input", "find", "replacement"] }, ({ input, find, replacement }, name) => {
    for (const [field, value] of Object.entries({ input, find, replacement })) {
      if (!isNullish(value) && typeof value !== "string") {
        throw located(51746, `${name} requires that '${field}' be a string, found: ${typeName(value)}`);
      }
    }
    if (typeof input !== "string" || typeof find !== "string" || typeof replacement !== "string") return null;
    return isEvery ? input.split(find).join(replacement) : input.replace(find, () => replacement);
  });

type RegexOperands = Readonly<Record<string, unknown>>;

/** The text and pattern of a `$regex…` operator, or undefined when one of them is null. */
function regexOperands(
  { input, regex, options }: RegexOperands,
  name: string,
): { text: string; regex: RegExp } | undefined {
  if (!isNullish(input) && typeof input !== "string")
    throw located(51104, `${name} needs 'input' to be of type string`);
  if (isNullish(input) || isNullish(regex)) return undefined;
  return { text: input, regex: compileRegex(regex, options ?? undefined) };
}

const regexNames = { required: ["input", "regex"], optional: ["options"] };

const regexMatch = named(regexNames, (values, name) => {
  const given = regexOperands(values, name);
  return given?.regex.test(given.text) ?? false;
});

const regexFind = named(regexNames, (values, name) => {
  const given = regexOperands(values, name);
  const match = given?.regex.exec(given.text);
  return match ? matchDocument(match) : null;
});

const regexFindAll = named(regexNames, (values, name) => {
  const given = regexOperands(values, name);
  if (given === undefined) return [];
  const regex = new RegExp(given.regex, `${given.regex.flags}g`);
  return [...given.text.matchAll(regex)].map(matchDocument);
});

function matchDocument(match: RegExpExecArray): unknown {
  return {
    match: match[0],
    idx: [...match.input.slice(0, match.index)].length,
    captures: match.slice(1).map((capture: string | undefined) => capture ?? null),
  };
}

export const stringOperators: OperatorTable = {
  $concat: variadic(concat),
  $toLower: unary((value) => lower(toText(value))),
  $toUpper: unary((value) => upper(toText(value))),
  $substr: fixed(3, 3, substringByBytes),
  $substrBytes: fixed(3, 3, substringByBytes),
  $substrCP: fixed(3, 3, substringByCodePoints),
  $strLenBytes: unary((value, name) => Buffer.byteLength(requireText(value, name, 34473))),
  $strLenCP: unary((value, name) => [...requireText(value, name, 34471)].length),
  $strcasecmp: fixed(2, 2, ([a, b]) => compareText(upper(toText(a)), upper(toText(b)))),
  $indexOfBytes: indexOf((text) => [...Buffer.from(text, "utf8")]),
  $indexOfCP: indexOf((text) => [...text]),
  $split: split,
  $trim: trim({ start: true, end: true }),
  $ltrim: trim({ start: true, end: false }),
  $rtrim: trim({ start: false, end: true }),
  $replaceOne: replace(false),
  $replaceAll: replace(true),
  $regexMatch: regexMatch,
  $regexFind: regexFind,
  $regexFindAll: regexFindAll,
};

const compareText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

function requireText(value: unknown, name: string, code: number): string {
  if (typeof value === "string") return value;
  throw located(code, `${name} requires a string argument, found: ${typeName(value)}`);
}
