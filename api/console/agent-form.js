import { useEffect, useState } from "preact/hooks";
import { post } from "./api.js";
import { html } from "./html.js";
import { useList } from "./load.js";
import { ModelChoice, useChoices } from "./playground-models.js";
import { bodyOf, resolve } from "./reference.js";
import { Check, SchemaField, SchemaFields, withField } from "./schema-form.js";
import { Choice, Field, number } from "./ui.js";

/** An agent as a form. What it does not show stays as it is. */

/** How long the writer pauses before the tokens are counted, in ms. */
const COUNT_AFTER_MS = 700;

/** How many tokens a text has for a model. @param {{ text: string, model: string }} props */
function Tokens({ text, model }) {
  const [count, setCount] = useState(/** @type {number | undefined} */ (undefined));
  useEffect(() => {
    setCount(undefined);
    if (text.trim() === "") return;
    let isCurrent = true;
    const timer = setTimeout(async () => {
      const body = {
        model: !model || model === "auto" ? "meta-llm" : model,
        messages: [{ role: "user", content: text }],
      };
      const { input_tokens: tokens } = await post("/v1/messages/count_tokens", body).catch(() => ({}));
      if (isCurrent) setCount(tokens);
    }, COUNT_AFTER_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [text, model]);
  return count === undefined ? null : html`<p class="meta">${number(count)} tokens in each call</p>`;
}

const newApproval = { assigneeRole: "admin" };

/** Who has to approve a tool's calls. @param {{ schema: any, value: any, onChange: (value: any) => void }} props */
function Approval({ schema, value, onChange }) {
  return html`<${Check} label="Its calls need an approval" value=${value !== undefined} onChange=${(/** @type {any} */ isOn) => onChange(isOn ? newApproval : undefined)} />
    ${value === undefined ? null : html`<div class="nested"><${SchemaFields} schema=${schema} value=${value} collections=${[]} onChange=${onChange} /></div>`}`;
}

/** @param {{ tool: any, schema: any, at: number, collections: readonly string[], agents: readonly any[], onChange: (tool: any) => void, onRemove: () => void }} props */
function Tool({ tool, schema, at, collections, agents, onChange, onRemove }) {
  /** @param {string} name */
  const set = (name) => (/** @type {any} */ value) => onChange(withField(tool, name, value));
  const { name, description, approval, config } = schema?.properties ?? {};
  const others = agents.map(({ agentId }) => agentId);
  /** @param {string} id */
  const nameOf = (id) => agents.find(({ agentId }) => agentId === id)?.name ?? id;
  /** The agent that a tool calls is chosen by its name. */
  const fields =
    tool.type === "agent"
      ? html`<${Choice} label="Agent" value=${tool.config?.agentId ?? ""} options=${others} nameOf=${nameOf} all="…" onChange=${(/** @type {string} */ agentId) => set("config")(withField(tool.config, "agentId", agentId || undefined))} />`
      : html`<${SchemaFields} schema=${config} value=${tool.config} collections=${collections} onChange=${set("config")} />`;
  return html`<fieldset class="wide"><legend>Tool ${at + 1}: ${tool.type}</legend><div class="fields">
      ${name && html`<${SchemaField} name="name" schema=${name} value=${tool.name} collections=${[]} onChange=${set("name")} />`}
      ${description && html`<${SchemaField} name="description" schema=${description} value=${tool.description} collections=${[]} onChange=${set("description")} />`}
      ${fields}
      ${approval && html`<${Approval} schema=${approval} value=${tool.approval} onChange=${set("approval")} />`}
      <button type="button" aria-label=${`Remove tool ${at + 1}`} onClick=${onRemove}>Remove</button></div></fieldset>`;
}

/** @param {{ schema: any, tools: any[], onChange: (tools: any[]) => void, reference: any }} props */
function Tools({ schema, tools, onChange, reference }) {
  const collections = useList("/rag/collections?limit=100").items.map(({ name }) => name);
  const agents = useList("/agents?limit=100").items;
  const kinds = (schema?.items?.oneOf ?? schema?.items?.anyOf ?? []).map((/** @type {any} */ one) =>
    resolve(reference, one),
  );
  const byType = new Map(kinds.map((/** @type {any} */ one) => [one.properties?.type?.const, one]));
  /** @param {string} type */
  const add = (type) => type && onChange([...tools, { type, config: {} }]);
  return html`<h3>Tools</h3>${tools.map(
    (
      tool,
      at,
    ) => html`<${Tool} key=${at} tool=${tool} at=${at} schema=${byType.get(tool.type)} collections=${collections} agents=${agents}
      onChange=${(/** @type {any} */ next) => onChange(tools.map((one, place) => (place === at ? next : one)))} onRemove=${() => onChange(tools.filter((_, place) => place !== at))} />`,
  )}
    <${Choice} label="Add a tool" value="" options=${[...byType.keys()].filter((type) => type !== undefined)} all="…" onChange=${add} />`;
}

/** @param {{ value: any, schema: any, onChange: (value: any) => void }} props */
function Publishing({ value, schema, onChange }) {
  return html`<${Check} label="Published as a tool of MCP" value=${value !== undefined} onChange=${(/** @type {any} */ isOn) => onChange(isOn ? { name: "", description: "" } : undefined)} />
    ${value === undefined ? null : html`<div class="nested"><${SchemaFields} schema=${schema} value=${value} collections=${[]} onChange=${onChange} /></div>`}`;
}

/** @param {{ value: any, reference: any, onChange: (value: any) => void }} props */
export function AgentForm({ value, reference, onChange }) {
  const choices = useChoices();
  const properties = bodyOf(reference, "/agents")?.properties ?? {};
  /** @param {string} name */
  const set = (name) => (/** @type {any} */ next) => onChange(withField(value, name, next));
  /** @param {string} name */
  const field = (name) =>
    properties[name] &&
    html`<${SchemaField} name=${name} schema=${properties[name]} value=${value[name]} collections=${[]} onChange=${set(name)} />`;
  return html`<div class="fields"><${Field} label="Name of the agent" value=${value.name ?? ""} onInput=${set("name")} required />
      <${ModelChoice} label="Its model" value=${value.model === "auto" ? "" : (value.model ?? "")} choices=${choices} onChange=${(/** @type {string} */ model) => set("model")(model || "auto")} />
      ${field("description")}
      <${Field} label="Its prompt" rows="8" value=${value.systemPrompt ?? ""} onInput=${set("systemPrompt")} required /></div>
    <${Tokens} text=${value.systemPrompt ?? ""} model=${value.model} />
    <${Tools} schema=${properties.tools} tools=${value.tools ?? []} onChange=${set("tools")} reference=${reference} />
    <h3>Limits</h3><div class="fields">${["maxIterations", "temperature", "maxTokens", "allowSelfApproval"].map(field)}</div>
    <h3>Publishing</h3><${Publishing} value=${value.publish} schema=${properties.publish} onChange=${set("publish")} />`;
}
