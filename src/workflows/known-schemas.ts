/** A JSON Schema, as far as it is known of a value. */
export type Schema = Readonly<Record<string, unknown>>;
/** What is known of what expressions name: of `input`, and of the items of lists. */
export type Schemas = Readonly<Record<string, Schema>>;

const plainPath = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/;

export const isSchema = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** What is known of the value of an expression that is a path, as `input.order.lines`; undefined of any other. */
export function schemaOf(expression: string, schemas: Schemas): Schema | undefined {
  const text = expression.trim();
  if (!plainPath.test(text)) return undefined;
  const [root = "", ...names] = text.split(".");
  let found: unknown = Object.hasOwn(schemas, root) ? schemas[root] : undefined;
  for (const name of names) {
    const fields: unknown = isSchema(found) ? found.properties : undefined;
    found = isSchema(fields) && Object.hasOwn(fields, name) ? fields[name] : undefined;
  }
  return isSchema(found) ? found : undefined;
}
