import { AgentForm } from "./agent-form.js";
import { AgentTrial } from "./agent-trial.js";
import { post } from "./api.js";
import { DefinitionList, DefinitionPage } from "./definitions.js";
import { useDraft } from "./drafts.js";
import { html } from "./html.js";
import { useAction } from "./load.js";
import { navigate } from "./router.js";
import { Field, Problem } from "./ui.js";

const kind = {
  title: "Agents",
  path: "/agents",
  screen: "agents",
  idField: "agentId",
  example: {
    name: "Maintenance desk",
    model: "auto",
    systemPrompt: "You answer questions on the plant's machines from its manuals.",
    tools: [{ type: "rag_query", config: {} }],
  },
  Form: AgentForm,
  Trial: AgentTrial,
  columns: ["Model", "Tools"],
  cells: (/** @type {any} */ { model, toolTypes }) => html`<td>${model}</td><td>${toolTypes.join(", ") || "none"}</td>`,
};

/** @param {{ definition: any }} props */
function RunForm({ definition }) {
  const [input, setInput, forget] = useDraft("question");
  const { run, error, isBusy } = useAction();
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(async () => {
      const headers = { prefer: "respond-async" };
      const { jobId } = await post(`/agents/${definition.agentId}/run`, { input }, { headers });
      forget();
      navigate(`/console/runs/${jobId}`);
    });
  };
  return html`<form onSubmit=${submit}><${Field} label="Question" rows="3" value=${input} onInput=${setInput} required />
    <button type="submit" disabled=${isBusy}>Run</button></form><${Problem} error=${error} />`;
}

/** @param {{ id: string }} props */
export function Agents({ id }) {
  return id
    ? html`<${DefinitionPage} kind=${kind} id=${id} RunForm=${RunForm} />`
    : html`<${DefinitionList} kind=${kind} />`;
}
