import { Citations } from "./citations.js";
import { html } from "./html.js";
import { Markdown } from "./markdown.js";
import { Badge, between, duration, Facts, IdLink, money, number, Problem, span, Text, Time } from "./ui.js";

/** What happened in a run, step by step. */

/** What a step has made: a text is Markdown. @param {{ value: any, label: string }} props */
export const Output = ({ value, label }) =>
  typeof value === "string" && value.length <= 4_000
    ? html`<${Markdown} text=${value} />`
    : html`<${Text} value=${value} label=${label} />`;

/** What becomes of approvals of calls that are not made then, which is no failure. */
const unmade = ["rejected", "expired", "cancelled"];

/** @param {any} action */
const call = ({
  action,
  actionInput,
  observation,
  isError,
  runId,
  jobId,
  approval,
  citations,
  startedAt,
  finishedAt,
}) => html`<div class="call">
  <h4>${action} ${isError && !unmade.includes(approval?.status) ? html`<${Badge} text="failed" />` : null} <span class="meta">${between(startedAt, finishedAt)}</span></h4>
  <${Text} value=${actionInput} label="The input" />
  ${approval ? html`<p><${IdLink} id=${approval.approvalId} text="Approval" /> <${Badge} text=${approval.status} /> ${approval.decidedBy ?? ""}</p>` : null}
  ${runId ? html`<p><${IdLink} id=${runId} text="Its own run" /></p>` : null}
  ${jobId ? html`<p><${IdLink} id=${jobId} text="Its own job" /></p>` : null}
  ${finishedAt ? html`<${Text} value=${observation} label="The result" /><${Citations} citations=${citations} />` : html`<p class="busy-note">${approval?.status === "pending" ? "waits for a decision …" : "running …"}</p>`}
</div>`;

/**
 * What the model and the tools took of each step, in ms: a step begins with the model's answer, which it waited for since
 * the step before, and ends with the last of its tools.
 * @param {any} run
 */
function timesOf({ startedAt, steps }) {
  return steps.map((/** @type {any} */ step, /** @type {number} */ at) => ({
    model: span(steps[at - 1]?.finishedAt ?? (at === 0 ? startedAt : undefined), step.startedAt),
    tools: step.action === "final_answer" ? 0 : span(step.startedAt, step.finishedAt),
  }));
}

/** @param {readonly number[]} values */
export const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Names with times; those of nothing are left out. @param {Record<string, number>} times */
export const shown = (times) =>
  Object.entries(times)
    .filter(([, ms]) => ms > 0)
    .map(([name, ms]) => `${name} ${duration(ms)}`)
    .join(", ");

/** @param {any} step @param {{ model: number, tools: number }} times */
const agentStep = (step, times) => {
  const isAnswer = step.action === "final_answer";
  return html`<li class=${step.isError ? "failed" : ""}>
    <h3>${isAnswer ? "Answer" : step.action}</h3>
    <p class="meta"><${Time} at=${step.startedAt} />, ${shown(times)}${times.model + times.tools > 0 ? ", " : ""}${step.model}, ${number(step.tokens)} tokens, ${money(step.costUsd)}, <${IdLink} id=${step.logId} text="model call" /></p>
    ${step.thought && !isAnswer ? html`<${Markdown} text=${step.thought} />` : null}
    ${isAnswer ? null : (step.actions ?? [step]).map(call)}
  </li>`;
};

/** @param {any} awaited */
const waited = ({ kind, approvalId, jobId, toolName, event, until }) =>
  html`<div>${
    approvalId || jobId
      ? html`<${IdLink} id=${approvalId ?? jobId} text=${`${approvalId ? "the approval" : "the job"} of ${toolName}`} />`
      : html`${kind === "event" ? `the event ${event}, until` : ""} <${Time} at=${until} />`
  }</div>`;

/** @param {{ run: any }} props */
export function AgentRunView({ run }) {
  const {
    agentName,
    agentId,
    agentVersion,
    input,
    steps,
    finalOutput,
    citations,
    error,
    integrity,
    tokensUsed,
    costUsd,
    stopReason,
    awaiting,
    createdAt,
    startedAt,
  } = run;
  const times = timesOf(run);
  return html`<${Facts} facts=${[
    ["Agent", html`<${IdLink} id=${agentId} text=${agentName} />, version ${agentVersion}`],
    ["Stopped by", stopReason],
    ["Waits for", awaiting?.map(waited)],
    [
      "Time",
      shown({
        model: sum(times.map((/** @type {any} */ one) => one.model)),
        tools: sum(times.map((/** @type {any} */ one) => one.tools)),
        waiting: span(createdAt, startedAt),
      }),
    ],
    ["Used", `${number(tokensUsed)} tokens, ${money(costUsd)}`],
    [
      "Audit log",
      integrity.verified
        ? html`<${Badge} text="intact" /> ${integrity.entries} ${integrity.entries === 1 ? "entry" : "entries"}, head <code>${integrity.head}</code>`
        : html`<${Badge} text="broken" /> at entry ${integrity.breach?.seq}: ${integrity.breach?.problem}`,
    ],
  ]} />
    <h2>Question</h2><${Text} value=${input} label="The question" />
    <h2>Steps</h2><ol class="timeline">${steps.map((/** @type {any} */ step, /** @type {number} */ at) => agentStep(step, times[at]))}</ol>
    <${Problem} error=${error} />
    ${finalOutput ? html`<h2>Answer</h2><${Markdown} text=${finalOutput} /><${Citations} citations=${citations} />` : null}`;
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
  <h3>${step}</h3><p class="meta"><${Time} at=${startedAt} />, ${between(startedAt, finishedAt)}, ${role}, ${model}, ${number(tokens)} tokens, ${money(costUsd)} ${logId ? html`<${IdLink} id=${logId} text="model call" />` : null}</p>
  <${Problem} error=${error} /><${Output} value=${output} label="The answer" /></li>`;

/** @param {{ run: any }} props */
export function CompositeView({ run }) {
  const { pattern, profile, models, input, steps, result } = run;
  return html`<${Facts} facts=${[["Pattern", pattern], ["Profile", profile], ["Models", models?.join(", ")], ["Used", `${number(sum(steps.map((/** @type {any} */ one) => one.tokens)))} tokens, ${money(sum(steps.map((/** @type {any} */ one) => one.costUsd)))}`]]} />
    ${input === undefined ? null : html`<h2>Input</h2><${Text} value=${input} label="The input" />`}
    <h2>Model calls</h2><ol class="timeline">${steps.map(compositeStep)}</ol>
    ${result?.output ? html`<h2>Answer</h2><${Markdown} text=${result.output} />` : null}
    ${result === undefined ? null : html`<h2>Result</h2><${Text} value=${result} label="The result" />`}`;
}
