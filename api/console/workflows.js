import { useState } from "preact/hooks";
import { post } from "./api.js";
import { DefinitionList, DefinitionPage } from "./definitions.js";
import { html } from "./html.js";
import { useAction } from "./load.js";
import { navigate } from "./router.js";
import { Choice, Field, Problem } from "./ui.js";
import { WorkflowForm } from "./workflow-form.js";

const kind = {
  title: "Workflows",
  path: "/workflows",
  screen: "workflows",
  idField: "workflowId",
  example: {
    name: "Complaint",
    inputSchema: { type: "object", properties: { complaint: { type: "string" } }, required: ["complaint"] },
    steps: [
      { id: "draft", type: "ai_completion", model: "auto", prompt: "Draft a short reply to: {{ input.complaint }}" },
      { id: "approve", type: "human_approval", assigneeRole: "admin", message: "{{ steps.draft.output }}" },
    ],
  },
  Form: WorkflowForm,
  checks: "/workflows/validate",
  columns: ["Steps"],
  cells: (/** @type {any} */ { stepCount }) => html`<td>${stepCount}</td>`,
};

/** Types of properties that have a field of their own in the form. */
const simple = ["string", "number", "integer", "boolean"];

/** The properties of a schema, when all of them are simple; else the input is written as JSON. @param {any} schema */
function fieldsOf(schema) {
  const fields = Object.entries(schema?.properties ?? {});
  const areSimple = fields.every(([, field]) => simple.includes(/** @type {any} */ (field).type));
  return schema?.type === "object" && fields.length > 0 && areSimple ? fields : undefined;
}

/** @param {string} text @param {string} type */
function toValue(text, type) {
  if (type === "boolean") return text === "true";
  return type === "string" ? text : Number(text);
}

/** @param {{ name: string, field: any, isRequired: boolean, value: string, onInput: (value: string) => void }} props */
function InputField({ name, field, isRequired, value, onInput }) {
  const label = `${field.title ?? name}${isRequired ? "" : " (optional)"}`;
  const options = field.type === "boolean" ? ["true", "false"] : field.enum;
  if (options) return html`<${Choice} label=${label} value=${value} options=${options} all="…" onChange=${onInput} />`;
  const type = field.type === "string" ? "text" : "number";
  return html`<${Field} label=${label} type=${type} step="any" value=${value} onInput=${onInput} required=${isRequired} />`;
}

/** @param {{ definition: any }} props */
function RunForm({ definition }) {
  const { inputSchema: schema, workflowId } = definition;
  const fields = fieldsOf(schema);
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const [json, setJson] = useState("");
  const { run, error, isBusy } = useAction();
  const toInput = () => {
    if (!fields) return json.trim() === "" ? {} : { input: JSON.parse(json) };
    const given = fields.filter(([name]) => (values[name] ?? "") !== "");
    return {
      input: Object.fromEntries(
        given.map(([name, field]) => [name, toValue(values[name] ?? "", /** @type {any} */ (field).type)]),
      ),
    };
  };
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(async () => {
      const { jobId } = await post(`/workflows/${workflowId}/execute`, toInput());
      navigate(`/console/runs/${jobId}`);
    });
  };
  return html`<form onSubmit=${submit}>
    ${fields ? fields.map(([name, field]) => html`<${InputField} name=${name} field=${field} isRequired=${schema.required?.includes(name) ?? false} value=${values[name] ?? ""} onInput=${(/** @type {string} */ value) => setValues((before) => ({ ...before, [name]: value }))} />`) : html`<${Field} label="Input, as JSON" rows="4" class="code" value=${json} onInput=${setJson} />`}
    <button type="submit" disabled=${isBusy}>Run</button></form><${Problem} error=${error} />`;
}

/** @param {{ id: string }} props */
export function Workflows({ id }) {
  return id
    ? html`<${DefinitionPage} kind=${kind} id=${id} RunForm=${RunForm} />`
    : html`<${DefinitionList} kind=${kind} />`;
}
