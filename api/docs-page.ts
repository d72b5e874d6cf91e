import type { JsonSchema } from "../src/lib/json-schema.ts";
import type { OpenApiDocument, Operation } from "./openapi.ts";

/**
 * The reference page: the whole OpenAPI document as plain HTML, without files of other servers. Its script only filters. It is
 * work for `inSlices`.
 */
export function* renderDocsPage(document: OpenApiDocument): Generator<void, string> {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const { schemas } = document.components as { schemas: Record<string, JsonSchema> };
  const byTag = [...Map.groupBy(operations, ({ operation }) => operation.tags[0] ?? "Other")];
  const links = byTag.map(([tag]) => `<a href="#${escapeHtml(tag)}">${escapeHtml(tag)}</a>`).join(" ");
  const sections: string[] = [];
  for (const [tag, entries] of byTag) {
    const rendered: string[] = [];
    for (const entry of entries) {
      rendered.push(renderOperation({ ...entry, schemas }));
      yield;
    }
    sections.push(`<section><h2 id="${escapeHtml(tag)}">${escapeHtml(tag)}</h2>${rendered.join("")}</section>`);
  }
  const shapes: string[] = [];
  for (const [name, schema] of Object.entries(schemas)) {
    shapes.push(`<h3 id="${escapeHtml(name)}">${escapeHtml(name)}</h3>${renderSchema(schema)}`);
    yield;
  }
  const { title, version, description } = document.info;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}: API reference</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/pages/page.css"></head><body class="reference">
<header><p class="product">${escapeHtml(title)}</p></header><main><h1>API reference</h1><p>The contract of ${escapeHtml(version)}. Machine-readable: <a href="/openapi.json">/openapi.json</a></p>
<p>${prose(description)}</p><p>Send your key as <code>Authorization: Bearer sk_…</code></p><nav aria-label="Parts">${links} <a href="#schemas">Schemas</a></nav>
<p><label>Filter the operations <input id="filter" type="search" autocomplete="off" placeholder="post agents"></label> <span id="filter-note" class="meta" role="status"></span></p>
${sections.join("\n")}<h2 id="schemas">Schemas</h2>${shapes.join("\n")}</main><script src="/pages/docs.js" type="module"></script></body></html>`;
}

type Entry = { path: string; method: string; operation: Operation; schemas: Record<string, JsonSchema> };

function renderOperation(entry: Entry): string {
  const { path, method, operation } = entry;
  const { parameters = [], requestBody, responses } = operation;
  return `<details class="card operation" id="${escapeHtml(operation.operationId)}"><summary><span class="badge">${escapeHtml(method.toUpperCase())}</span> <code>${escapeHtml(path)}</code> ${escapeHtml(operation.summary)}</summary><div>
${operation.description ? `<p>${prose(operation.description)}</p>` : ""}
${parameters.length > 0 ? `<h4>Parameters</h4><table>${parameters.map(renderParameter).join("")}</table>` : ""}
${requestBody ? `<h4>Body</h4>${renderContent(requestBody.content)}` : ""}
<pre>${escapeHtml(toCurl(entry))}</pre><h4>Responses</h4>${Object.entries(responses).map(renderResponse).join("")}
<p><a href="#${escapeHtml(operation.operationId)}">Link to this operation</a></p></div></details>`;
}

function renderParameter(parameter: Record<string, unknown>): string {
  const { name, in: place, required, description = "", schema } = parameter;
  const isRequired = required === true ? ", required" : "";
  return `<tr><td><code>${escapeHtml(String(name))}</code></td><td>${escapeHtml(String(place))}${isRequired}</td><td>${typeOf(schema as JsonSchema)}</td><td>${prose(String(description))}</td></tr>`;
}

/** A response in a line; the table of its body opens on demand. */
function renderResponse([status, response]: [string, JsonSchema]): string {
  const line = `<b>${escapeHtml(status)}</b> ${prose(String(response.description))}`;
  const content = Number(status) >= 400 ? "" : renderContent(response.content);
  return content === "" ? `<p>${line}</p>` : `<details><summary>${line}</summary><div>${content}</div></details>`;
}

function renderContent(content: unknown): string {
  return Object.entries((content ?? {}) as Record<string, { schema: JsonSchema }>)
    .map(([type, { schema }]) => `<p><code>${escapeHtml(type)}</code></p>${renderSchema(schema)}`)
    .join("");
}

/** Tables of the properties that a schema has: name, type and meaning. Named schemas are links to their own tables. */
function renderSchema(schema: JsonSchema): string {
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
function typeOf(schema: JsonSchema): string {
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
function prose(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, "<code>$1</code>");
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

/** Deepest object that an example is made of; what is deeper is left out. */
const MAX_DEPTH = 6;

type Schemas = Record<string, JsonSchema>;
type Call = { path: string; method: string; operation: Operation; schemas: Schemas };

/** The call of an operation for a shell, with the address and the key in variables. */
function toCurl({ path, method, operation, schemas }: Call): string {
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
