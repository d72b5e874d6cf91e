/** Most characters of a line that stands for a text. */
const MAX_LENGTH = 200;
/** Fields of an object that are looked at. */
const MAX_FIELDS = 8;

/**
 * The first line of a text that holds more than blanks, cut at 200 characters; of an object its fields with their first lines.
 * Undefined if there is none.
 */
export function firstLine(value: unknown): string | undefined {
  const line = typeof value === "string" ? lineOf(value) : toFields(value);
  return line === "" ? undefined : line;
}

const lineOf = (text: string): string =>
  text.trimStart().slice(0, MAX_LENGTH).split(/\r?\n/, 1).join("").trimEnd().toWellFormed();

function toFields(value: unknown): string {
  if (typeof value !== "object" || value === null) return value === undefined ? "" : lineOf(String(value));
  const fields = Object.entries(value).slice(0, MAX_FIELDS);
  const texts = fields.map(([name, field]) => `${name}: ${typeof field === "object" ? "…" : lineOf(String(field))}`);
  return lineOf(texts.join(", "));
}
