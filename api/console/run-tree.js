import { useCallback, useState } from "preact/hooks";
import { toQuery } from "./api.js";
import { html } from "./html.js";
import { useJobChanges, useList, useLoad } from "./load.js";
import { isOfItems, itemOf, toTree } from "./step-tree.js";
import { AgentRunView, CompositeView, Output, shown, sum } from "./timeline.js";
import { Badge, between, Facts, IdLink, money, number, Problem, span, Text, Time } from "./ui.js";

/** A workflow's run, with the runs within it: what its steps have started is opened in its place. */

/** Where the API shows what a job works on, and what shows it here. @param {any} about */
export function detailOf({ runId, workflowId, executionId }) {
  if (workflowId) return { path: `/workflows/${workflowId}/runs/${runId}`, View: WorkflowRunView };
  if (runId) return { path: `/runs/${runId}/trail`, View: AgentRunView };
  return executionId ? { path: `/composite/executions/${executionId}`, View: CompositeView } : undefined;
}

/** What a job within did, as it is now. @param {{ id: string, about: any }} props */
function Inner({ id, about }) {
  const detailed = detailOf(about);
  const { value, error, reload } = useLoad(detailed?.path);
  useJobChanges(useCallback((job) => (!job || job.jobId === id ? reload() : undefined), [id, reload]));
  if (!detailed) return null;
  if (!value)
    return error ? html`<${Problem} error=${error} />` : html`<p class="busy-note" role="status">Loading …</p>`;
  return html`<${detailed.View} run=${value} />`;
}

/** A job that a step has started: its page, and what it did, read when somebody opens it. @param {{ jobId: string, kind: string, about: any, label: string, status?: string }} props */
function Started({ jobId, kind, about, label, status }) {
  const [isOpen, setIsOpen] = useState(false);
  /** @param {any} event */
  const toggle = (event) => setIsOpen(event.currentTarget.open);
  return html`<p>${label} <${IdLink} id=${jobId} text=${`the run of the ${kind}`} /> ${status ? html`<${Badge} text=${status} />` : null}</p>
    <details onToggle=${toggle}><summary>What it did</summary>${isOpen ? html`<${Inner} id=${jobId} about=${about} />` : null}</details>`;
}

/** The jobs that a list's items have started, the newest first. @param {{ jobId: string, path: string }} props */
function ItemJobs({ jobId, path }) {
  const { items, next, more, change, reload, error } = useList(`/jobs?${toQuery({ parentJobId: jobId })}`, {
    id: "jobId",
  });
  const isOwn = useCallback((/** @type {any} */ job) => job.parentJobId === jobId, [jobId]);
  useJobChanges(useCallback((job) => (job ? change(job, isOwn) : reload()), [change, isOwn, reload]));
  const own = items.filter((/** @type {any} */ job) => isOfItems(job, path));
  return html`<${Problem} error=${error} /><ol class="timeline">${own.map(
    (/** @type {any} */ { jobId: id, kind, about, status, parentStep }) =>
      html`<li key=${id} class=${status === "failed" ? "failed" : ""}><${Started} jobId=${id} kind=${kind} about=${about} status=${status} label=${`${itemOf(parentStep.path)}, ${parentStep.id}:`} /></li>`,
  )}</ol>${next === null ? null : html`<p class="actions"><button type="button" onClick=${more}>Older</button></p>`}`;
}

/** @param {{ items: any, jobId: string, path: string }} props */
function Items({ items: { done, total, failed }, jobId, path }) {
  const [isOpen, setIsOpen] = useState(false);
  /** @param {any} event */
  const toggle = (event) => setIsOpen(event.currentTarget.open);
  return html`<p class="meta">${number(done)} of ${number(total)} items${failed > 0 ? `, ${number(failed)} failed` : ""}</p>
    <details onToggle=${toggle}><summary>Runs that its items have started</summary>${isOpen ? html`<${ItemJobs} jobId=${jobId} path=${path} />` : null}</details>`;
}

/** @param {{ node: import("./step-tree.js").Node, jobId: string }} props */
function Step({ node: { step, branch, within }, jobId }) {
  const { id, path, type, status, startedAt, finishedAt, attempts, output, error, tokensUsed, costUsd, items, child } =
    step;
  const { jobId: childId, kind, ...about } = child ?? {};
  const facts = [
    between(startedAt, finishedAt),
    type.replaceAll("_", " "),
    branch && `in ${branch}`,
    attempts > 1 ? `${attempts} attempts` : "",
    tokensUsed ? `${number(tokensUsed)} tokens, ${money(costUsd)}` : "",
  ];
  return html`<li class=${status === "failed" ? "failed" : ""}>
  <h3>${id} ${status === "completed" ? null : html`<${Badge} text=${status} />`}</h3>
  <p class="meta"><${Time} at=${startedAt} />, ${facts.filter(Boolean).join(", ")}</p>
  <${Problem} error=${error} />${items ? html`<${Items} items=${items} jobId=${jobId} path=${path} />` : null}
  ${child ? html`<${Started} jobId=${childId} kind=${kind} about=${about} label="Started" />` : null}
  <${Output} value=${output} label="The output" />
  ${within.length > 0 ? html`<${Steps} nodes=${within} jobId=${jobId} />` : null}</li>`;
}

/** @param {{ nodes: readonly import("./step-tree.js").Node[], jobId: string }} props */
const Steps = ({ nodes, jobId }) =>
  html`<ol class="timeline">${nodes.map((node) => html`<${Step} key=${node.step.path} node=${node} jobId=${jobId} />`)}</ol>`;

/** @param {{ run: any }} props */
export function WorkflowRunView({ run }) {
  const { workflowId, workflowName, version, input, output, steps, error, awaiting, tokensUsed, costUsd, jobId } = run;
  /** @param {(type: string) => boolean} isOne */
  const took = (isOne) =>
    sum(
      steps.map((/** @type {any} */ { type, startedAt, finishedAt }) =>
        isOne(type) ? span(startedAt, finishedAt) : 0,
      ),
    );
  const isModel = (/** @type {string} */ type) => type === "ai_completion";
  const isWait = (/** @type {string} */ type) => type === "human_approval";
  return html`<${Facts} facts=${[
    ["Workflow", html`<${IdLink} id=${workflowId} text=${workflowName} />, version ${version}`],
    [
      "Time",
      shown({
        model: took(isModel),
        "other steps": took((type) => !isModel(type) && !isWait(type)),
        approvals: took(isWait),
      }),
    ],
    ["Used", `${number(tokensUsed)} tokens, ${money(costUsd)}`],
    [
      "Waits for",
      awaiting && html`<${IdLink} id=${awaiting.approvalId} text=${`the decision of an ${awaiting.assigneeRole}`} />`,
    ],
  ]} />
    ${input === undefined ? null : html`<h2>Input</h2><${Text} value=${input} label="The input" />`}
    <h2>Steps</h2><${Steps} nodes=${toTree(steps)} jobId=${jobId} /><${Problem} error=${error} />
    ${output === undefined ? null : html`<h2>Output</h2><${Text} value=${output} label="The output" />`}`;
}
