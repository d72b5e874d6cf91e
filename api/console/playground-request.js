import { call, post, readEvents } from "./api.js";

/** What the playground asks of the API, and the same for programs. */

/** Passages that a model gets of the documents. */
const PASSAGES = 8;

/**
 * @typedef {{ name: string, type: string, data: string }} Attachment `data`: the text of a text file, else a data URL
 * @typedef {{ role: "user" | "assistant", content: string, attachments?: Attachment[], end?: any, citations?: any[], passages?: any[], error?: string, ms?: number }} Turn
 * @typedef {{ system: string, temperature: string, maxTokens: string, topP: string, seed: string, further: string, documents: string }} Settings
 * `documents`: empty for none, `*` for all, else the name of a collection
 */

/** Agents and patterns search documents themselves. @param {string} model */
const isRun = (model) => model.startsWith("agent:") || model.startsWith("composite:");

/** @param {Turn} turn */
function toContent({ content, attachments = [] }) {
  const texts = attachments.filter(({ type }) => type.startsWith("text/"));
  const others = attachments.filter(({ type }) => !type.startsWith("text/"));
  const text = [...texts.map(({ name, data }) => `${name}:\n\n${data}`), content].join("\n\n");
  if (others.length === 0) return text;
  const parts = others.map(({ name, type, data }) =>
    type.startsWith("image/")
      ? { type: "image_url", image_url: { url: data } }
      : { type: "file", file: { filename: name, file_data: data } },
  );
  return [{ type: "text", text }, ...parts];
}

/** Settings that are given, as the body names them. @param {Settings} settings */
function toParameters({ temperature, maxTokens, topP, seed, further }) {
  const given = { temperature, maxTokens, top_p: topP, seed };
  const numbers = Object.entries(given)
    .filter(([, value]) => value !== "")
    .map(([name, value]) => [name, Number(value)]);
  return { ...Object.fromEntries(numbers), ...(further.trim() === "" ? {} : JSON.parse(further)) };
}

/**
 * The request for the next answer of a conversation. @throws SyntaxError for further parameters that are no JSON.
 * @param {Settings} settings @param {string} model @param {readonly Turn[]} turns the last one is the question
 */
export function toRequest(settings, model, turns) {
  const said = turns.filter(({ error }) => error === undefined);
  if (settings.documents !== "" && !isRun(model)) {
    const question = said.at(-1)?.content ?? "";
    const history = said.slice(0, -1).map(({ role, content }) => ({ role, content }));
    const body = {
      query: question,
      ...(history.length > 0 ? { history: history.slice(-40) } : {}),
      ...(model === "" ? {} : { model }),
      ...(settings.documents === "*" ? {} : { collection: settings.documents }),
      topK: PASSAGES,
    };
    return { path: "/rag/answer", body };
  }
  const messages = [
    ...(settings.system === "" ? [] : [{ role: "system", content: settings.system }]),
    ...said.map((turn) => ({ role: turn.role, content: toContent(turn) })),
  ];
  return { path: "/ai/chat", body: { ...(model === "" ? {} : { model }), ...toParameters(settings), messages } };
}

/** @typedef {ReturnType<typeof toRequest>} Request */

/**
 * Asks, and reports the answer as it grows.
 * @param {Request} request @param {AbortSignal} signal @param {(change: Partial<Turn>) => void} onChange
 */
export async function ask({ path, body }, signal, onChange) {
  const startedAt = performance.now();
  const headers = { "x-svc-debug": "true", "x-svc-surface": "playground" };
  const response = await call("POST", path, { body: { ...body, stream: true }, headers, signal });
  let content = "";
  for await (const event of readEvents(response)) {
    if (event.error) throw new Error(event.error.message);
    content = event.answer ?? content + (event.delta?.content ?? "");
    const ms = performance.now() - startedAt;
    onChange({
      content,
      ms,
      ...(event.citations ? { citations: event.citations } : {}),
      ...(event.done ? { end: event } : {}),
    });
  }
}

/** The passages that a question finds, beside an answer from documents. @param {string} query @param {string} documents */
export const findPassages = async (query, documents) =>
  (await post("/rag/query", { query, topK: PASSAGES, ...(documents === "*" ? {} : { collection: documents }) }))
    .results;

/** A value as it is written in Python. @param {any} value @param {string} [indent] @returns {string} */
function toPython(value, indent = "") {
  const inner = `${indent}    `;
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value))
    return value.length === 0
      ? "[]"
      : `[\n${value.map((one) => `${inner}${toPython(one, inner)},\n`).join("")}${indent}]`;
  if (typeof value === "object")
    return `{\n${Object.entries(value)
      .map(([name, one]) => `${inner}${JSON.stringify(name)}: ${toPython(one, inner)},\n`)
      .join("")}${indent}}`;
  return JSON.stringify(value);
}

/** The same request for programs, with the key in a variable. @param {Request} request */
export function toPrograms({ path, body }) {
  const json = JSON.stringify(body, null, 2);
  const url = location.origin + path;
  return {
    curl: `curl -s ${url} -H "authorization: Bearer $KEY" --json '${json.replaceAll("'", "'\\''")}'`,
    Python: `import os, requests\n\nresponse = requests.post(\n    ${JSON.stringify(url)},\n    headers={"authorization": f"Bearer {os.environ['KEY']}"},\n    json=${toPython(body, "    ")},\n)\nresponse.raise_for_status()\nprint(response.json())`,
    TypeScript: `const response = await fetch(${JSON.stringify(url)}, {\n  method: "POST",\n  headers: { authorization: \`Bearer \${process.env.KEY}\`, "content-type": "application/json" },\n  body: JSON.stringify(${json}),\n});\nif (!response.ok) throw new Error(await response.text());\nconsole.log(await response.json());`,
  };
}
