import { z } from "zod";
import { withFewFields } from "../../lib/bounded-json.ts";

const MAX_HEADERS = 30;
/** Headers that the connection itself needs, or that would make one request two. */
const ownHeaders = /^(host|content-length|transfer-encoding|connection|upgrade|te|trailer|expect|idempotency-key)$/i;

/** Headers that a tool sends with each request. */
export const headersSchema = withFewFields(
  MAX_HEADERS,
  z.record(
    z.string().regex(/^[0-9A-Za-z_-]{1,100}$/, "must be a header's name"),
    z
      .string()
      .max(4_000)
      .regex(/^[\t\x20-\x7e]*(…[\x20-\x7e]{0,4})?$/, "must be printable ASCII, or the preview of the stored value"),
  ),
)
  .refine(
    (record) => !Object.keys(record).some((name) => ownHeaders.test(name)),
    "holds a header that is set by itself",
  )
  .optional()
  .describe(
    "Sent with each request; `{{context.x}}` stands for `x` of the run's context. Stored encrypted; responses show previews, and a preview that is sent back keeps the stored value",
  );

type Context = Readonly<Record<string, unknown>> | undefined;

/** Headers with `{{context.a.b}}` replaced by the value in the run's context. */
export function fillHeaders(headers: Readonly<Record<string, string>>, context: Context): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, fillContext(value, context)]));
}

/** A value that is missing, or is no plain value, leaves nothing; line breaks do not get into a header. */
function fillContext(template: string, context: Context): string {
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
