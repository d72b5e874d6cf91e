/**
 * A configured text with `{{context.a.b}}` replaced by what the run's caller gave there. What is not there, or is no plain
 * value, leaves nothing; line breaks do not get into a header.
 */
export function fillContext(template: string, context: Readonly<Record<string, unknown>> | undefined): string {
  return template.replace(/\{\{\s*context\.([\w.-]+)\s*\}\}/g, (_, path: string) => {
    const value = path
      .split(".")
      .reduce<unknown>(
        (at, key) =>
          typeof at === "object" && at !== null && Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined,
        context,
      );
    const isPlain = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
    return isPlain ? String(value).replace(/[^\t\x20-\x7e]/g, "") : "";
  });
}

/** The same for each header. */
export function fillHeaders(
  headers: Readonly<Record<string, string>> | undefined,
  context: Readonly<Record<string, unknown>> | undefined,
): Record<string, string> {
  return Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name, fillContext(value, context)]));
}
