import { bsonTag } from "./bson-types.ts";
import { badValue, located } from "./refusals.ts";

/** Whether the value is a stored or given regular expression. */
export function isRegex(value: unknown): boolean {
  return value instanceof RegExp || bsonTag(value) === "BSONRegExp";
}

/**
 * A tester for a pattern given as a string or a regular expression, with MongoDB's options i, m, s, x and u.
 * @throws CommandError for a pattern that does not compile and for an unknown option.
 */
export function compileRegex(pattern: unknown, options?: unknown): RegExp {
  const parts = regexParts(pattern);
  if (parts === undefined) throw badValue("$regex has to be a string");
  if (options !== undefined && typeof options !== "string") throw badValue("$options has to be a string");
  if (options !== undefined && parts.options !== "") throw located(51075, "options set in both $regex and $options");
  return build(parts.source, options ?? parts.options);
}

function regexParts(pattern: unknown): { source: string; options: string } | undefined {
  if (typeof pattern === "string") return { source: pattern, options: "" };
  if (pattern instanceof RegExp) return { source: pattern.source, options: pattern.flags.replace(/[gyd]/g, "") };
  if (bsonTag(pattern) !== "BSONRegExp") return undefined;
  const regex = pattern as { pattern: string; options: string }; // a BSONRegExp, by its tag
  return { source: regex.pattern, options: regex.options };
}

const leadingFlags = /^\(\?([imsx]+)\)/;

function build(source: string, options: string): RegExp {
  const unknown = /[^imsxul]/.exec(options);
  if (unknown) throw located(51108, `invalid flag in regex options: ${unknown[0]}`);
  const inline = leadingFlags.exec(source);
  const flags = new Set([...options, ...(inline?.[1] ?? "")]);
  const body = inline ? source.slice(inline[0].length) : source;
  const isExtended = flags.has("x");
  const kept = ["i", "m", "s"].filter((flag) => flags.has(flag)).join("");
  try {
    return new RegExp(toJavaScript(isExtended ? withoutComments(body) : body), `${kept}u`);
  } catch {
    return buildLenient(isExtended ? withoutComments(body) : body, kept);
  }
}

/** Patterns that are only valid without the `u` flag, as `\_` or a lone brace, which PCRE takes as they are. */
function buildLenient(source: string, flags: string): RegExp {
  try {
    return new RegExp(toJavaScript(source), flags);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "unknown";
    throw located(51091, `Regular expression is invalid: ${reason}`);
  }
}

/** PCRE's anchors of the whole text, which JavaScript writes otherwise. */
function toJavaScript(source: string): string {
  return source.replace(/\\(.)/gs, (sequence, letter) => {
    if (letter === "A") return "(?<![\\s\\S])";
    if (letter === "z") return "(?![\\s\\S])";
    return letter === "Z" ? "(?=\\n?(?![\\s\\S]))" : sequence;
  });
}

/** Drops white space and `#` comments outside classes, as the x option asks. */
function withoutComments(source: string): string {
  return source.replace(/\\.|\[(?:\\.|[^\]])*\]|\s+|#[^\n]*/gs, (token) => (/^[\s#]/.test(token) ? "" : token));
}
