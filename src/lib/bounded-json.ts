import { z } from "zod";

const [quote, backslash, colon, bracket, brace] = [0x22, 0x5c, 0x3a, 0x5b, 0x7b];
const CLOSES = 2; // the closing bracket and brace are that much above the opening ones
/** A text that is parsed whatever its shape, in characters: that takes some milliseconds at most. */
const ALWAYS_PARSED = 32 << 10;
/** Objects, lists and fields in one JSON text, and levels of them, at most. */
const MAX_PARTS = 50_000;
const MAX_LEVELS = 200;

/**
 * Whether parsing a JSON text of an outside would hold the event loop for long: 4 MiB of empty objects or of fields take a
 * second, of lists in lists two, while one long text takes 12 ms, and numbers 50 to 170.
 */
export function isCostlyJson(text: string): boolean {
  if (text.length <= ALWAYS_PARSED) return false;
  let [parts, level] = [0, 0];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at);
    else if (code === colon) parts += 1;
    else if (code === bracket || code === brace) [parts, level] = [parts + 1, level + 1];
    else if (code === bracket + CLOSES || code === brace + CLOSES) level -= 1;
    if (parts > MAX_PARTS || level > MAX_LEVELS) return true;
  }
  return false;
}

/** The place of the quote that ends a string: one after an odd number of backslashes does not. */
function endOfString(text: string, begin: number): number {
  for (let at = text.indexOf('"', begin + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (text.charCodeAt(before) === backslash) before -= 1;
    if ((at - before) % 2 === 1) return at;
  }
  return text.length;
}

/**
 * A schema of objects with at most `max` fields, which are counted before any of them is parsed. Records and loose objects
 * that a caller fills need it: they keep, or report, every field, and millions fit into one body.
 * A field `__proto__` is refused, because records would silently drop it.
 */
export function withFewFields<S extends z.ZodType>(max: number, schema: S) {
  return z.preprocess((value, context) => {
    if (typeof value !== "object" || value === null) return value;
    const problem =
      Object.keys(value).length > max
        ? `must not have more than ${max} fields`
        : Object.hasOwn(value, "__proto__") && "must not have a field of the name __proto__";
    if (!problem) return value;
    context.addIssue({ code: "custom", message: problem });
    return z.NEVER;
  }, schema);
}

type Bounds = { values: number; levels: number; characters: number };

/** Whether a JSON value is within these bounds: inner values, levels below itself, and characters when it is printed. */
export function isSmallJson(value: unknown, { values, levels, characters }: Bounds): boolean {
  let seen = 0;
  const isSmall = (part: unknown, level: number): boolean => {
    seen += 1;
    if (seen > values || level > levels) return false;
    if (typeof part !== "object" || part === null) return true;
    return Object.values(part).every((inner) => isSmall(inner, level + 1));
  };
  return isSmall(value, 0) && JSON.stringify(value).length <= characters;
}

/** The deepest nesting of a value that later code walks by recursion. */
const MAX_DEPTH = 100;

/**
 * A JSON value in the form in which a store keeps it and canonical JSON (RFC 8785) has it: halves of characters are U+FFFD, and
 * numbers that no double holds are null. @throws RangeError for a value that is nested deeper than 100 levels.
 */
export function toWellFormed(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value !== "object" || value === null) return value;
  if (depth > MAX_DEPTH) throw new RangeError(`nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return value.map((item) => toWellFormed(item, depth + 1));
  const fields = Object.entries(value).map(([name, field]) => [name.toWellFormed(), toWellFormed(field, depth + 1)]);
  return Object.fromEntries(fields);
}
