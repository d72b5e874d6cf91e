import type { JsonSchema } from "../src/lib/json-schema.ts";
import type { Operation } from "./openapi.ts";

/** Deepest object that an example is made of; what is deeper is left out. */
const MAX_DEPTH = 6;

type Schemas = Record<string, JsonSchema>;
type Call = { path: string; method: string; operation: Operation; schemas: Schemas };

/** The call of an operation for a shell, with the address and the key in variables. */
export function toCurl({ path, method, operation, schemas }: Call): string {
  const { requestBody, parameters = [], security } = operation;
  const key = security?.length === 0 ? "" : ` -H "authorization: Bearer $KEY"`;
  const body = toBody(requestBody, schemas);
  const isImplied = body !== "" ? method === "post" : method === "get";
  const place = path.replace(/\{(\w+)\}/g, (_, name: string) => `$${name.toUpperCase()}`);
  const needed = parameters.filter((one) => one.in === "query" && one.required === true);
  const query = needed.map(({ name }) => `${name}=$${String(name).toUpperCase()}`).join("&");
  const address = `"$URL${place}${query === "" ? "" : `?${query}`}"`;
  return `curl -s${isImplied ? "" : ` -X ${method.toUpperCase()}`} ${address}${key}${body}`;
}

type Content = Record<string, { schema: JsonSchema; example?: unknown } | undefined>;

/** The options of curl that send a body: the documented example, or what the schema requires. */
function toBody(requestBody: JsonSchema | undefined, schemas: Schemas): string {
  const content = (requestBody?.content ?? {}) as Content; // as OpenAPI has it
  const json = content["application/json"];
  if (json?.example !== undefined) return jsonOption(json.example);
  if (requestBody?.required !== true) return "";
  const form = content["multipart/form-data"];
  if (form) return formOptions(exampleOf(form.schema, schemas));
  return json === undefined ? "" : jsonOption(exampleOf(json.schema, schemas));
}

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
const jsonOption = (value: unknown) => ` --json ${quote(JSON.stringify(value))}`;

function formOptions(value: unknown): string {
  const others = Object.entries(value as Record<string, unknown>).filter(([name]) => name !== "file");
  return [" -F file=@FILE", ...others.map(([name, text]) => ` -F ${name}=${quote(String(text))}`)].join("");
}

/** A value that has what a schema requires, and no more. */
function exampleOf(schema: JsonSchema, schemas: Schemas, depth = 0): unknown {
  if (typeof schema.$ref === "string")
    return exampleOf(schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {}, schemas, depth);
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const [choice] = (schema.anyOf ?? schema.oneOf ?? []) as readonly JsonSchema[];
  if (choice) return exampleOf(choice, schemas, depth);
  const [type] = [schema.type].flat();
  if (type === "array") {
    const isNeeded = Number(schema.minItems ?? 0) > 0 && depth < MAX_DEPTH;
    return isNeeded ? [exampleOf((schema.items ?? {}) as JsonSchema, schemas, depth + 1)] : [];
  }
  if (type === "object" || schema.properties !== undefined) {
    const properties = (schema.properties ?? {}) as Record<string, JsonSchema>;
    const required = depth < MAX_DEPTH ? ((schema.required ?? []) as readonly string[]) : [];
    return Object.fromEntries(required.map((name) => [name, exampleOf(properties[name] ?? {}, schemas, depth + 1)]));
  }
  if (type === "boolean") return true;
  if (type === "number" || type === "integer") return Math.max(Number(schema.minimum ?? 1), 1);
  return "…";
}
