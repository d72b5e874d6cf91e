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
