import type { JsonSchema } from "../src/json-schema.ts";

/** Tables of the properties that a schema has: name, type and meaning. Named schemas are links to their own tables. */
export function renderSchema(schema: JsonSchema): string {
  const choices = choicesOf(schema);
  if (choices.length > 1 && choices.some((choice) => propertiesOf(choice).length > 0))
    return choices.map((choice) => `<p>One of:</p>${renderSchema(choice)}`).join("");
  const rows = rowsOf(schema, "");
  if (rows.length === 0) return `<p>${typeOf(schema)}</p>`;
  return `<table><tr><th>Field</th><th>Type</th><th>Meaning</th></tr>${rows.join("")}</table>`;
}

/** A row for each property, and for each property of an object within, as `messages[].role`. */
function rowsOf(schema: JsonSchema, prefix: string): string[] {
  const required = (schema.required ?? []) as readonly string[];
  return propertiesOf(schema).flatMap(([name, field]) => {
    const path = prefix + name;
    const isRequired = required.includes(name) ? " <b>required</b>" : "";
    const fallback =
      field.default === undefined ? "" : ` Default <code>${escapeHtml(JSON.stringify(field.default))}</code>.`;
    const meaning = `${prose(String(field.description ?? ""))}${fallback}`;
    const row = `<tr><td><code>${escapeHtml(path)}</code>${isRequired}</td><td>${typeOf(field)}</td><td>${meaning}</td></tr>`;
    const within = [field, ...choicesOf(field)].flatMap((one) => {
      const [inner, mark] = one.type === "array" ? [(one.items ?? {}) as JsonSchema, "[]."] : [one, "."];
      return [inner, ...choicesOf(inner)].flatMap((each) => rowsOf(each, path + mark));
    });
    return [row, ...new Set(within)];
  });
}

/** The type in words, with its bounds. */
export function typeOf(schema: JsonSchema): string {
  if (typeof schema.$ref === "string") {
    const name = escapeHtml(schema.$ref.split("/").at(-1) ?? "");
    return `<a href="#${name}">${name}</a>`;
  }
  if (schema.const !== undefined) return `<code>${escapeHtml(JSON.stringify(schema.const))}</code>`;
  if (Array.isArray(schema.enum))
    return schema.enum.map((value) => `<code>${escapeHtml(JSON.stringify(value))}</code>`).join(", ");
  const choices = choicesOf(schema);
  if (choices.length > 0) return [...new Set(choices.map(typeOf))].join(" or ");
  const { type, items, additionalProperties, format } = schema;
  if (type === "array") return `array of ${typeOf((items ?? {}) as JsonSchema)}${bounds(schema)}`;
  if (type === "object" && typeof additionalProperties === "object" && propertiesOf(schema).length === 0)
    return `object of ${typeOf(additionalProperties as JsonSchema)}`;
  const name = type === undefined ? "anything" : [type].flat().join(" or ");
  return escapeHtml(typeof format === "string" ? `${name} (${format})` : name) + bounds(schema);
}

function bounds({ minimum, maximum, minLength, maxLength, minItems, maxItems }: JsonSchema): string {
  const named = [
    [minimum, Math.abs(Number(maximum)) < Number.MAX_SAFE_INTEGER ? maximum : undefined, ""],
    [minLength, maxLength, " characters"],
    [minItems, maxItems, " items"],
  ] as const;
  const texts = named.map(([least, most, unit]) => {
    const hasLeast = least !== undefined && least !== Number.MIN_SAFE_INTEGER;
    if (!hasLeast) return most === undefined ? "" : `, at most ${most}${unit}`;
    return most === undefined ? `, at least ${least}${unit}` : `, ${least} to ${most}${unit}`;
  });
  return texts.join("");
}

const choicesOf = (schema: JsonSchema) => (schema.anyOf ?? schema.oneOf ?? []) as readonly JsonSchema[];
const propertiesOf = (schema: JsonSchema) => Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);

/** Text with its `code` marked. */
export function prose(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, "<code>$1</code>");
}

export function escapeHtml(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
