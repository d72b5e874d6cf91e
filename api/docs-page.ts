import { createHash } from "node:crypto";
import type { OpenApiDocument, Operation } from "./openapi.ts";

const style = `
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--accent:#2563eb}
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1.5rem}
h1{margin:0}h2{border-bottom:1px solid var(--line);margin-top:2.5rem;padding-bottom:.3rem}
code,pre{font:14px/1.45 ui-monospace,monospace}pre{background:var(--soft);border-radius:6px;overflow:auto;padding:.8rem}
details{border:1px solid var(--line);border-radius:8px;margin:.5rem 0}summary{cursor:pointer;padding:.6rem .8rem}
details>div{border-top:1px solid var(--line);padding:.2rem .8rem .8rem}
.method{color:var(--accent);display:inline-block;font-weight:700;min-width:4.2rem;text-transform:uppercase}
table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid var(--line);padding:.3rem .5rem;text-align:left;vertical-align:top}
nav a{margin-right:1rem}.about{opacity:.75}`;

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
  const { title, version, description } = document.info;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}: API reference</title><style>${style}</style></head><body>
<h1>${escapeHtml(title)}</h1><p class="about">API reference, contract of ${escapeHtml(version)}. Machine-readable: <a href="/openapi.json">/openapi.json</a></p>
<p>${prose(description)}</p><p>Send your key as <code>Authorization: Bearer sk_…</code></p><nav>${links}</nav>
${sections.join("\n")}</body></html>`;
}

function renderOperation(entry: { path: string; method: string; operation: Operation }): string {
  const { path, method, operation } = entry;
  const { parameters = [], requestBody, responses } = operation;
  return `<details id="${escapeHtml(operation.operationId)}"><summary><span class="method">${escapeHtml(method)}</span><code>${escapeHtml(path)}</code> ${escapeHtml(operation.summary)}</summary><div>
${operation.description ? `<p>${prose(operation.description)}</p>` : ""}
${parameters.length > 0 ? `<h4>Parameters</h4><table>${parameters.map(renderParameter).join("")}</table>` : ""}
${requestBody ? `<h4>Body</h4>${renderContent(requestBody.content)}` : ""}
<h4>Responses</h4>${Object.entries(responses).map(renderResponse).join("")}</div></details>`;
}

function renderParameter(parameter: Record<string, unknown>): string {
  const { name, in: place, required, description = "", schema } = parameter;
  const isRequired = required === true ? ", required" : "";
  return `<tr><td><code>${escapeHtml(String(name))}</code></td><td>${escapeHtml(String(place))}${isRequired}</td><td>${prose(String(description))} <code>${escapeHtml(JSON.stringify(schema))}</code></td></tr>`;
}

function renderResponse([status, response]: [string, Record<string, unknown>]): string {
  const isError = Number(status) >= 400;
  const content = isError ? "" : renderContent(response.content);
  return `<p><b>${escapeHtml(status)}</b> ${prose(String(response.description))}</p>${content}`;
}

function renderContent(content: unknown): string {
  if (typeof content !== "object" || content === null) return "";
  return Object.entries(content)
    .map(([type, { schema, example }]) => {
      const shown = example === undefined ? "" : `<p>For example</p><pre>${pretty(example)}</pre>`;
      return `<p><code>${escapeHtml(type)}</code></p>${shown}<pre>${pretty(schema)}</pre>`;
    })
    .join("");
}

function pretty(value: unknown): string {
  return escapeHtml(JSON.stringify(value, null, 2) ?? "");
}

/** Text with its `code` marked. */
function prose(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, "<code>$1</code>");
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
