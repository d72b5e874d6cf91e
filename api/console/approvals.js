import { useCallback, useState } from "preact/hooks";
import { post, toQuery } from "./api.js";
import { html } from "./html.js";
import { useAction, useJobChanges, useList, useLoad } from "./load.js";
import { navigate } from "./router.js";
import { AgentRunView, WorkflowRunView } from "./timeline.js";
import { Badge, Choice, Facts, Field, IdLink, money, Problem, Table, Text, Time } from "./ui.js";

/** Jobs whose runs wait for approvals. */
const kinds = ["workflow", "agent"];
const states = ["pending", "approved", "rejected", "expired", "cancelled"];

/** What an approval is about: a step of a workflow, or a tool call of an agent. @param {any} one */
const nameOf = ({ kind, workflowName, stepId, agentName, toolName }) =>
  kind === "agent" ? `${agentName}: ${toolName}` : `${workflowName}: ${stepId}`;

/** @param {any} one */
const row = (
  one,
) => html`<tr><td><${IdLink} id=${one.approvalId} text=${nameOf(one)} /></td><td><${Badge} text=${one.status} /></td><td>${one.assigneeRole}</td>
  <td><${Time} at=${one.createdAt} /></td><td>${one.status === "pending" ? html`<${Time} at=${one.expiresAt} />` : (one.decidedBy ?? "")}</td></tr>`;

/** @param {{ id: string, onDecided: () => void }} props */
function Decision({ id, onDecided }) {
  const [comment, setComment] = useState("");
  const { run, error, isBusy } = useAction();
  /** @param {"approved" | "rejected"} decision */
  const decide = (decision) => () =>
    run(async () => {
      await post(`/workflows/approvals/${id}/decide`, { decision, ...(comment.trim() === "" ? {} : { comment }) });
      onDecided();
    });
  return html`<div class="card"><${Field} label="Comment (optional)" rows="2" value=${comment} onInput=${setComment} />
    <p class="actions"><button type="button" class="approved" disabled=${isBusy} onClick=${decide("approved")}>Approve</button>
      <button type="button" class="rejected" disabled=${isBusy} onClick=${decide("rejected")}>Reject</button></p><${Problem} error=${error} /></div>`;
}

/** One approval, with the run that waits for it. @param {{ id: string }} props */
function Approval({ id }) {
  const { value, error, reload } = useLoad(`/workflows/approvals/${id}`);
  useJobChanges(useCallback((job) => (job && !kinds.includes(job.kind) ? undefined : reload()), [reload]));
  if (!value) return html`<h1>Approval</h1><${Problem} error=${error} />`;
  const { kind, status, assigneeRole, message, createdAt, expiresAt, decidedBy, decidedAt, comment, mayDecide } = value;
  const run = value.run ?? value.agentRun;
  const forWhom = assigneeRole === "owner" ? "an owner" : "an admin or owner";
  const isOpen = status === "pending";
  return html`<h1>${nameOf(value)} <${Badge} text=${status} /></h1>
    <${Text} value=${message} label="The message" />
    ${kind === "agent" ? html`<${Text} value=${JSON.stringify(value.arguments, null, 2)} label="The arguments" />` : null}
    <${Facts} facts=${[["For", forWhom], ["Requested", html`<${Time} at=${createdAt} />`], ["Until", isOpen && html`<${Time} at=${expiresAt} />`], ["Decided by", decidedBy && html`${decidedBy} <${Time} at=${decidedAt} />`], ["Comment", comment], ["Agent", kind === "agent" && html`<${IdLink} id=${value.agentId} text=${value.agentName} />`], ["Tool", value.toolName], ["Cost so far", money(run.costUsd)], ["Run", html`<${IdLink} id=${run.jobId} text=${run.runId} /> ${run.status.replace("_", " ")}`]]} />
    ${isOpen && mayDecide ? html`<${Decision} id=${id} onDecided=${reload} />` : null}
    ${isOpen && !mayDecide ? html`<p class="hint">Your key may not decide this: it is for ${forWhom}.</p>` : null}
    ${kind === "agent" ? html`<${AgentRunView} run=${run} />` : html`<${WorkflowRunView} run=${run} />`}`;
}

/** @param {{ id: string, query: URLSearchParams }} props */
export function Approvals({ id, query }) {
  if (id) return html`<${Approval} id=${id} />`;
  return html`<${ApprovalList} status=${query.get("status") ?? "pending"} />`;
}

/** @param {{ status: string }} props */
function ApprovalList({ status }) {
  const list = useList(`/workflows/approvals?${toQuery({ status, limit: 50 })}`);
  useJobChanges(useCallback((job) => (job && !kinds.includes(job.kind) ? undefined : list.reload()), [list.reload]));
  return html`<h1>Approvals</h1><div class="actions"><${Choice} label="Approvals that are" value=${status} options=${states} onChange=${(/** @type {string} */ chosen) => navigate(`/console/approvals?status=${chosen}`)} /></div>
    <${Table} list=${list} columns=${["What", "Status", "For", "Requested", status === "pending" ? "Until" : "By"]} row=${row} empty=${status === "pending" ? "Nothing waits for a decision." : "None."} />`;
}
