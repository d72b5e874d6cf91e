import { post } from "./api.js";
import { DefinitionList, DefinitionPage } from "./definitions.js";
import { html } from "./html.js";
import { useAction } from "./load.js";
import { navigate } from "./router.js";
import { Problem } from "./ui.js";
import { WorkflowForm } from "./workflow-form.js";
import { useInput } from "./workflow-input.js";
import { WorkflowTrial } from "./workflow-trial.js";

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
  Trial: WorkflowTrial,
  checks: "/workflows/validate",
  columns: ["Steps"],
  cells: (/** @type {any} */ { stepCount }) => html`<td>${stepCount}</td>`,
};

/** @param {{ definition: any }} props */
function RunForm({ definition: { inputSchema, workflowId } }) {
  const input = useInput(inputSchema);
  const { run, error, isBusy } = useAction();
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(async () => {
      const { jobId } = await post(`/workflows/${workflowId}/execute`, input.read());
      input.forget();
      navigate(`/console/runs/${jobId}`);
    });
  };
  return html`<form onSubmit=${submit}>${input.fields}<button type="submit" disabled=${isBusy}>Run</button></form><${Problem} error=${error} />`;
}

/** @param {{ id: string }} props */
export function Workflows({ id }) {
  return id
    ? html`<${DefinitionPage} kind=${kind} id=${id} RunForm=${RunForm} />`
    : html`<${DefinitionList} kind=${kind} />`;
}
