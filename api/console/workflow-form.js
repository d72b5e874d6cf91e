import { html } from "./html.js";
import { useList } from "./load.js";
import { ModelChoice, useChoices } from "./playground-models.js";
import { bodyOf } from "./reference.js";
import { Check, CollectionPicker, JsonField, withField } from "./schema-form.js";
import { Choice, Field, inWords } from "./ui.js";

/** A workflow as a list of steps, and a picture of its flow. What the list does not show stays as it is. */

/**
 * The fields of each kind of step, and how they are written: `text` over several lines, `cel` an expression, a list of names to
 * choose from. `nests`: where steps stand within it; `*` for lists by a name.
 * @type {Record<string, { fields: Record<string, string | readonly string[]>, nests?: readonly string[] }>}
 */
const kinds = {
  ai_completion: {
    fields: {
      model: "model",
      prompt: "text",
      systemPrompt: "text",
      temperature: "number",
      maxTokens: "number",
      allowIncomplete: "boolean",
    },
  },
  rag_query: {
    fields: {
      query: "text",
      topK: "number",
      collection: "collection",
      expand: "number",
      rewrite: "json",
      rerank: "json",
    },
  },
  human_approval: { fields: { assigneeRole: ["admin", "owner"], message: "text", timeoutMs: "number" } },
  webhook: { fields: { url: "line", method: ["POST", "PUT", "PATCH", "GET", "DELETE"], body: "json" } },
  condition: { fields: { expression: "cel" }, nests: ["then", "else"] },
  agent: { fields: { agentId: "agent", input: "text", context: "json", budget: "json" } },
  composite: { fields: { pattern: "line", profile: "line", input: "text", models: "json" } },
  workflow: { fields: { workflowId: "line", input: "json" } },
  set: { fields: { values: "json" } },
  wait: { fields: { ms: "number", until: "line", event: "line", match: "json" } },
  for_each: { fields: { items: "cel", as: "line", concurrency: "number" }, nests: ["do"] },
  parallel: { fields: {}, nests: ["*"] },
};

/** What a new step of a kind begins with. @type {Record<string, object>} */
const beginnings = {
  ai_completion: { model: "auto", prompt: "" },
  rag_query: { query: "" },
  human_approval: { assigneeRole: "admin" },
  webhook: { url: "https://", method: "POST" },
  condition: { expression: "", else: [] },
  agent: { input: "" },
  composite: { pattern: "consensus", profile: "content", input: "" },
  workflow: { workflowId: "" },
  set: { values: {} },
  wait: { ms: 60_000 },
  for_each: { items: "", do: [] },
  parallel: { branches: { first: [], second: [] } },
};

/** The lists of steps within a step, each with its place and how it is written back. @param {any} step @param {(step: any) => void} onChange */
function listsIn(step, onChange = () => undefined) {
  return (kinds[step.type]?.nests ?? []).flatMap((name) =>
    name === "*"
      ? Object.entries(step.branches ?? {}).map(([branch, steps]) => ({
          name: branch,
          path: `branches.${branch}`,
          steps: /** @type {any[]} */ (steps),
          set: (/** @type {any[]} */ next) => onChange({ ...step, branches: { ...step.branches, [branch]: next } }),
        }))
      : [
          {
            name,
            path: name,
            steps: /** @type {any[]} */ (step[name] ?? []),
            set: (/** @type {any[]} */ next) => onChange({ ...step, [name]: next }),
          },
        ],
  );
}

/** What the fields of steps choose from. @typedef {{ choices: any, collections: readonly string[], agents: readonly any[], types: readonly string[], problems: readonly any[] }} Offered */

/** @param {{ name: string, kind: string | readonly string[], value: any, offered: Offered, onChange: (value: any) => void }} props */
function StepField({ name, kind, value, offered, onChange }) {
  /** @param {string} text */
  const change = (text) => onChange(text === "" ? undefined : text);
  const label = inWords(name);
  if (Array.isArray(kind))
    return html`<${Choice} label=${label} value=${value ?? ""} options=${kind} all="…" onChange=${change} />`;
  if (kind === "model")
    return html`<${ModelChoice} label=${label} value=${value === "auto" ? "" : (value ?? "")} choices=${offered.choices} onChange=${(/** @type {string} */ model) => onChange(model || "auto")} />`;
  if (kind === "agent")
    return html`<${Choice} label="Agent" value=${value ?? ""} options=${offered.agents.map(({ agentId }) => agentId)} nameOf=${(/** @type {string} */ id) => offered.agents.find(({ agentId }) => agentId === id)?.name ?? id} all="…" onChange=${change} />`;
  if (kind === "collection")
    return html`<${CollectionPicker} value=${value} names=${offered.collections} onChange=${onChange} />`;
  if (kind === "boolean") return html`<${Check} label=${label} value=${value} onChange=${onChange} />`;
  if (kind === "json") return html`<${JsonField} label=${`${label}, as JSON`} value=${value} onChange=${onChange} />`;
  if (kind === "number")
    return html`<${Field} label=${label} type="number" step="any" value=${value ?? ""} onInput=${(/** @type {string} */ text) => onChange(text === "" ? undefined : Number(text))} />`;
  const isLong = kind === "text" || kind === "cel";
  return html`<${Field} label=${kind === "cel" ? `${label}, in CEL` : label} ...${isLong ? { rows: kind === "cel" ? "1" : "3" } : {}} class=${kind === "cel" ? "code" : ""} value=${value ?? ""} onInput=${change} />`;
}

/**
 * `onOut`: puts a step of a list within this one behind it.
 * @param {{ step: any, path: string, offered: Offered, actions: any, onChange: (step: any) => void, onOut: (changed: any, out: any) => void }} props
 */
function Step({ step, path, offered, actions, onChange, onOut }) {
  const { fields } = kinds[step.type] ?? { fields: {} };
  /** @param {string} name */
  const set = (name) => (/** @type {any} */ value) => onChange(withField(step, name, value));
  const own = offered.problems.filter(
    ({ path: at }) => at.startsWith(path) && !/\.(then|else|do|branches\.[^.[]+)\[/.test(at.slice(path.length)),
  );
  /** @param {{ path: string }} list */
  const takeOut = (list) => (/** @type {any} */ out, /** @type {any[]} */ rest) =>
    listsIn(step, (changed) => onOut(changed, out))
      .find(({ path: at }) => at === list.path)
      ?.set(rest);
  return html`<li class="step"><fieldset><legend>${step.type.replaceAll("_", " ")} ${step.id ? html`<code>${step.id}</code>` : null}</legend>
      ${actions}<div class="fields"><${StepField} name="id" kind="line" value=${step.id} offered=${offered} onChange=${set("id")} />
      ${Object.entries(fields).map(([name, kind]) => html`<${StepField} key=${name} name=${name} kind=${kind} value=${step[name]} offered=${offered} onChange=${set(name)} />`)}</div>
      ${own.map(({ path: at, message }) => html`<p class="problem"><code>${at}</code> ${message}</p>`)}
      ${listsIn(step, onChange).map((list) => html`<h4>${list.name}</h4><${StepList} steps=${list.steps} path=${`${path}.${list.path}`} offered=${offered} onChange=${list.set} onOut=${takeOut(list)} />`)}
    </fieldset></li>`;
}

/**
 * Steps in order. `onOut`: takes a step out of the step that the list stands in.
 * @param {{ steps: any[], path: string, offered: Offered, onChange: (steps: any[]) => void, onOut?: (step: any, rest: any[]) => void }} props
 */
function StepList({ steps, path, offered, onChange, onOut }) {
  /** @param {number} at */
  const without = (at) => steps.filter((_, place) => place !== at);
  /** @param {number} from @param {number} to */
  const move = (from, to) => () => onChange(without(from).toSpliced(to, 0, steps[from]));
  /** Puts a step into the one before it. @param {number} at */
  const nest = (at) => () => {
    const [first] = listsIn(steps[at - 1], (changed) => onChange(without(at).with(at - 1, changed)));
    first?.set([...first.steps, steps[at]]);
  };
  /** @param {string} type */
  const add = (type) => type && onChange([...steps, { type, ...beginnings[type] }]);
  /** @param {any} step @param {number} at */
  const item = (step, at) => {
    const name = `${step.id ?? step.type} ${at + 1}`;
    const mayNest = at > 0 && listsIn(steps[at - 1]).length > 0;
    /** @param {string} label @param {string} what @param {() => void} act @param {boolean} [isOff] */
    const button = (label, what, act, isOff = false) =>
      html`<button type="button" class="quiet" disabled=${isOff} aria-label=${`${what} ${name}`} onClick=${act}>${label}</button> `;
    const actions = html`<p class="actions">${button("↑", "Move up", move(at, at - 1), at === 0)}${button("↓", "Move down", move(at, at + 1), at === steps.length - 1)}
      ${mayNest ? button("→", "Put into the step before:", nest(at)) : null}${onOut ? button("←", "Take out", () => onOut(step, without(at))) : null}${button("Remove", "Remove", () => onChange(without(at)))}</p>`;
    return html`<${Step} key=${at} step=${step} path=${`${path}[${at}]`} offered=${offered} actions=${actions} onChange=${(/** @type {any} */ next) => onChange(steps.with(at, next))}
      onOut=${(/** @type {any} */ changed, /** @type {any} */ out) => onChange(steps.with(at, changed).toSpliced(at + 1, 0, out))} />`;
  };
  return html`<ol class="steps">${steps.map(item)}</ol>
    <${Choice} label=${path === "steps" ? "Add a step" : `Add a step to ${path}`} value="" options=${offered.types} all="…" onChange=${add} />`;
}

/** The flow as boxes, one within the other. @param {{ steps: any[] }} props */
export function Flow({ steps }) {
  if (!Array.isArray(steps)) return null;
  return html`<ol class="flow">${steps.map((step) => {
    const lists = listsIn(step);
    return html`<li><span class="box"><b>${step?.id ?? step?.type?.replaceAll("_", " ")}</b> <span class="meta">${step?.id ? step.type.replaceAll("_", " ") : ""} ${step?.expression ?? step?.items ?? ""}</span></span>
      ${lists.length === 0 ? null : html`<div class="branches">${lists.map(({ name, steps: inner }) => html`<div><span class="meta">${name}</span>${inner.length === 0 ? html`<p class="meta">nothing</p>` : html`<${Flow} steps=${inner} />`}</div>`)}</div>`}</li>`;
  })}</ol>`;
}

/** @param {{ value: any, reference: any, problems?: readonly any[], onChange: (value: any) => void }} props */
export function WorkflowForm({ value, reference, problems = [], onChange }) {
  const choices = useChoices();
  const collections = useList("/rag/collections?limit=100").items.map(({ name }) => name);
  const agents = useList("/agents?limit=100").items;
  const offeredTypes = bodyOf(reference, "/workflows")?.properties.steps.items?.properties?.type?.enum ?? [];
  const types = offeredTypes.filter((/** @type {string} */ type) => type in kinds);
  /** @param {string} name */
  const set = (name) => (/** @type {any} */ next) => onChange(withField(value, name, next));
  const offered = { choices, collections, agents, types, problems };
  return html`<div class="fields"><${Field} label="Name of the workflow" value=${value.name ?? ""} onInput=${set("name")} required />
      <${Field} label="Description (optional)" value=${value.description ?? ""} onInput=${(/** @type {string} */ text) => set("description")(text || undefined)} />
      <${JsonField} label="Input schema (optional), as JSON" value=${value.inputSchema} onChange=${set("inputSchema")} /></div>
    <h3>Steps</h3><${StepList} steps=${Array.isArray(value.steps) ? value.steps : []} path="steps" offered=${offered} onChange=${set("steps")} />
    <h3>The flow</h3><${Flow} steps=${value.steps} />`;
}
