import { createHash } from "node:crypto";
import type { JsonSchema } from "../src/json-schema.ts";
import { escapeHtml, prose, renderSchema, typeOf } from "./docs-schemas.ts";
import type { OpenApiDocument, Operation } from "./openapi.ts";

const style = `
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--accent:light-dark(#1d4ed8,#93c5fd)}
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;overflow-wrap:anywhere;padding:1.5rem}a{color:var(--accent)}
h1{margin:0}h2{border-bottom:1px solid var(--line);margin-top:2.5rem;padding-bottom:.3rem}
code,pre{font:14px/1.45 ui-monospace,monospace}pre{background:var(--soft);border-radius:6px;overflow:auto;padding:.8rem}
details{border:1px solid var(--line);border-radius:8px;margin:.5rem 0}summary{cursor:pointer;padding:.6rem .8rem}
details>div{border-top:1px solid var(--line);padding:.2rem .8rem .8rem}
.method{color:var(--accent);display:inline-block;font-weight:700;min-width:4.2rem;text-transform:uppercase}
table{border-collapse:collapse;width:100%}td,th{min-width:6rem;border-bottom:1px solid var(--line);padding:.3rem .5rem;text-align:left;vertical-align:top}
nav a{margin-right:1rem}details details{margin:.3rem 0}`;

/** What the page may load: nothing but its own style. */
export const docsPolicy = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;

/** The reference page: the whole OpenAPI document as plain HTML, without scripts or files of other servers. */
export function renderDocsPage(document: OpenApiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const byTag = [...Map.groupBy(operations, ({ operation }) => operation.tags[0] ?? "Other")];
  const links = byTag.map(([tag]) => `<a href="#${escapeHtml(tag)}">${escapeHtml(tag)}</a>`).join("");
  const sections = byTag.map(
    ([tag, entries]) => `<h2 id="${escapeHtml(tag)}">${escapeHtml(tag)}</h2>${entries.map(renderOperation).join("")}`,
  );
  const { schemas } = document.components as { schemas: Record<string, JsonSchema> };
  const shapes = Object.entries(schemas).map(
    ([name, schema]) => `<h3 id="${escapeHtml(name)}">${escapeHtml(name)}</h3>${renderSchema(schema)}`,
  );
  const { title, version, description } = document.info;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}: API reference</title><style>${style}</style></head><body>
<h1>${escapeHtml(title)}</h1><p>API reference, contract of ${escapeHtml(version)}. Machine-readable: <a href="/openapi.json">/openapi.json</a></p>
<p>${prose(description)}</p><p>Send your key as <code>Authorization: Bearer sk_…</code></p><nav>${links}<a href="#schemas">Schemas</a></nav>
${sections.join("\n")}<h2 id="schemas">Schemas</h2>${shapes.join("\n")}</body></html>`;
}

function renderOperation(entry: { path: string; method: string; operation: Operation }): string {
  const { path, method, operation } = entry;
  const { parameters = [], requestBody, responses } = operation;
  return `<details id="${escapeHtml(operation.operationId)}"><summary><span class="method">${escapeHtml(method)}</span><code>${escapeHtml(path)}</code> ${escapeHtml(operation.summary)}</summary><div>
${operation.description ? `<p>${prose(operation.description)}</p>` : ""}
${parameters.length > 0 ? `<h4>Parameters</h4><table>${parameters.map(renderParameter).join("")}</table>` : ""}
${requestBody ? `<h4>Body</h4>${renderContent(requestBody.content)}` : ""}
${renderCall(path, method, operation)}<h4>Responses</h4>${Object.entries(responses).map(renderResponse).join("")}
<p><a href="#${escapeHtml(operation.operationId)}">Link to this operation</a></p></div></details>`;
}

/** The call by curl, where a body that it needs has an example. */
function renderCall(path: string, method: string, { requestBody, security }: Operation): string {
  const json = (requestBody?.content as Record<string, { example?: unknown }> | undefined)?.["application/json"];
  if (requestBody?.required === true && json?.example === undefined) return "";
  const key = security?.length === 0 ? "" : ` -H "authorization: Bearer $KEY"`;
  const body = json?.example === undefined ? "" : ` --json '${JSON.stringify(json.example).replaceAll("'", "'\\''")}'`;
  const verb = body !== "" && method === "post" ? "" : method === "get" ? "" : ` -X ${method.toUpperCase()}`;
  const place = path.replace(/\{(\w+)\}/g, (_, name: string) => `$${name.toUpperCase()}`);
  return `<pre>${escapeHtml(`curl -s${verb} "$URL${place}"${key}${body}`)}</pre>`;
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
