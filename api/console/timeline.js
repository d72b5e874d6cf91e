import { html } from "./html.js";
import { Markdown } from "./markdown.js";
import { Badge, between, Facts, IdLink, money, number, Problem, Text, Time } from "./ui.js";

/** What happened in a run, step by step. */

/** @param {any} action */
const call = ({ action, actionInput, observation, isError, runId, startedAt, finishedAt }) => html`<div class="call">
  <h4>${action} ${isError ? html`<${Badge} text="failed" />` : null} <span class="meta">${between(startedAt, finishedAt)}</span></h4>
  <${Text} value=${actionInput} label="The input" />
  ${runId ? html`<p><${IdLink} id=${runId} text="Its own run" /></p>` : null}
  ${finishedAt ? html`<${Text} value=${observation} label="The result" />` : html`<p class="busy-note">running …</p>`}
</div>`;

/** Time of the tools of a step, and what is left of the step for the model. @param {any} step */
function timesOf({ startedAt, finishedAt, actions }) {
  const tools = (actions ?? []).filter((/** @type {any} */ one) => one.startedAt && one.finishedAt);
  if (tools.length === 0) return between(startedAt, finishedAt);
  const first = tools.map((/** @type {any} */ one) => one.startedAt).sort()[0];
  const last = tools
    .map((/** @type {any} */ one) => one.finishedAt)
    .sort()
    .at(-1);
  return `${between(startedAt, finishedAt)}, of it tools ${between(first, last)}`;
}

/** @param {any} step */
const agentStep = (step) => {
  const isAnswer = step.action === "final_answer";
  return html`<li class=${step.isError ? "failed" : ""}>
    <h3>${isAnswer ? "Answer" : step.action}</h3>
    <p class="meta"><${Time} at=${step.startedAt} /> ${timesOf(step)}, ${step.model}, ${number(step.tokens)} tokens, ${money(step.costUsd)}, <${IdLink} id=${step.logId} text="model call" /></p>
    ${step.thought && !isAnswer ? html`<p class="thought">${step.thought}</p>` : null}
    ${isAnswer ? null : (step.actions ?? [step]).map(call)}
  </li>`;
};

/** @param {{ run: any }} props */
export function AgentRunView({ run }) {
  const {
    agentName,
    agentId,
    agentVersion,
    input,
    steps,
    finalOutput,
    error,
    integrity,
    tokensUsed,
    costUsd,
    stopReason,
  } = run;
  return html`<${Facts} facts=${[
    ["Agent", html`<${IdLink} id=${agentId} text=${agentName} />, version ${agentVersion}`],
    ["Stopped by", stopReason],
    ["Used", `${number(tokensUsed)} tokens, ${money(costUsd)}`],
    [
      "Audit log",
      integrity.verified
        ? html`<${Badge} text="intact" /> ${integrity.entries} entries, head <code>${integrity.head}</code>`
        : html`<${Badge} text="broken" /> at entry ${integrity.breach?.seq}: ${integrity.breach?.problem}`,
    ],
  ]} />
    <h2>Question</h2><${Text} value=${input} label="The question" />
    <h2>Steps</h2><ol class="timeline">${steps.map(agentStep)}</ol>
    <${Problem} error=${error} />
    ${finalOutput ? html`<h2>Answer</h2><${Markdown} text=${finalOutput} />` : null}`;
}

/** @param {any} step */
const workflowStep = ({
  id,
  type,
  status,
  startedAt,
  finishedAt,
  attempts,
  output,
  error,
  tokensUsed,
  costUsd,
}) => html`<li class=${status === "failed" ? "failed" : ""}>
  <h3>${id} ${status === "completed" ? null : html`<${Badge} text=${status} />`}</h3>
  <p class="meta"><${Time} at=${startedAt} /> ${[between(startedAt, finishedAt), type, attempts > 1 ? `${attempts} attempts` : "", tokensUsed ? `${number(tokensUsed)} tokens, ${money(costUsd)}` : ""].filter(Boolean).join(", ")}</p>
  <${Problem} error=${error} /><${Text} value=${output} label="The output" /></li>`;

/** @param {{ run: any }} props */
export function WorkflowRunView({ run }) {
  const { workflowId, workflowName, version, input, output, steps, error, awaiting, tokensUsed, costUsd } = run;
  return html`<${Facts} facts=${[
    ["Workflow", html`<${IdLink} id=${workflowId} text=${workflowName} />, version ${version}`],
    ["Used", `${number(tokensUsed)} tokens, ${money(costUsd)}`],
    [
      "Waits for",
      awaiting && html`<${IdLink} id=${awaiting.approvalId} text=${`the decision of an ${awaiting.assigneeRole}`} />`,
    ],
  ]} />
    ${input === undefined ? null : html`<h2>Input</h2><${Text} value=${input} label="The input" />`}
    <h2>Steps</h2><ol class="timeline">${steps.map(workflowStep)}</ol><${Problem} error=${error} />
    ${output === undefined ? null : html`<h2>Output</h2><${Text} value=${output} label="The output" />`}`;
}

/** @param {any} step */
const compositeStep = ({
  step,
  role,
  model,
  status,
  output,
  error,
  tokens,
  costUsd,
  logId,
  startedAt,
  finishedAt,
}) => html`<li class=${status === "failed" ? "failed" : ""}>
  <h3>${step}</h3><p class="meta"><${Time} at=${startedAt} /> ${between(startedAt, finishedAt)}, ${role}, ${model}, ${number(tokens)} tokens, ${money(costUsd)} ${logId ? html`<${IdLink} id=${logId} text="model call" />` : null}</p>
  <${Problem} error=${error} /><${Text} value=${output} label="The answer" /></li>`;

/** @param {{ run: any }} props */
export function CompositeView({ run }) {
  const { pattern, profile, models, input, steps, result } = run;
  return html`<${Facts} facts=${[["Pattern", pattern], ["Profile", profile], ["Models", models?.join(", ")]]} />
    ${input === undefined ? null : html`<h2>Input</h2><${Text} value=${input} label="The input" />`}
    <h2>Model calls</h2><ol class="timeline">${steps.map(compositeStep)}</ol>
    ${result === undefined ? null : html`<h2>Result</h2><${Text} value=${result} label="The result" />`}`;
}
