import { useCallback } from "preact/hooks";
import { post, toQuery } from "./api.js";
import { useDraft } from "./drafts.js";
import { DefinitionChoice, Filters, filterOf, toListQuery } from "./filters.js";
import { html } from "./html.js";
import { useAction, useJobChanges, useList, useLoad } from "./load.js";
import { Markdown } from "./markdown.js";
import { navigate } from "./router.js";
import { WorkflowRunView } from "./run-tree.js";
import { AgentRunView } from "./timeline.js";
import { Badge, Choice, Facts, Field, IdLink, money, Problem, Table, Text, Time } from "./ui.js";

/** Jobs whose runs wait for approvals. */
const kinds = ["workflow", "agent"];
const states = ["pending", "approved", "rejected", "expired", "cancelled"];

/** What an approval is about: a step of a workflow, or a tool call of an agent. @param {any} one */
export const nameOf = ({ kind, workflowName, stepId, agentName, toolName }) =>
  kind === "agent" ? `${agentName}: ${toolName}` : `${workflowName}: ${stepId}`;

/** What tells it from others: the first line of its message, and the arguments of its call. @param {any} one */
const wordsOf = ({ message, arguments: given }) =>
  [message?.trim().split("\n", 1)[0], given && JSON.stringify(given)].filter(Boolean);

/** @param {any} one */
const row = (
  one,
) => html`<tr><td class="what"><${IdLink} id=${one.approvalId} text=${nameOf(one)} />${wordsOf(one).map((words) => html`<br /><span class="meta line">${words}</span>`)}</td>
  <td><${Badge} text=${one.status} /></td><td>${one.assigneeRole}</td><td class="name">${one.startedBy ?? ""}</td>
  <td><${Time} at=${one.createdAt} /></td><td>${one.status === "pending" ? html`<${Time} at=${one.expiresAt} />` : (one.decidedBy ?? "")}</td></tr>`;

/** @param {{ id: string, onDecided: () => void }} props */
function Decision({ id, onDecided }) {
  const [comment, setComment, forget] = useDraft("comment");
  const { run, error, isBusy } = useAction();
  /** @param {"approved" | "rejected"} decision */
  const decide = (decision) => () =>
    run(async () => {
      await post(`/workflows/approvals/${id}/decide`, { decision, ...(comment.trim() === "" ? {} : { comment }) });
      forget();
      onDecided();
    });
  return html`<div class="card"><${Field} label="Comment (optional)" rows="2" value=${comment} onInput=${setComment} />
    <p class="actions"><button type="button" class="approved" disabled=${isBusy} onClick=${decide("approved")}>Approve</button>
      <button type="button" class="rejected" disabled=${isBusy} onClick=${decide("rejected")}>Reject</button></p><${Problem} error=${error} /></div>`;
}

/** One approval, with the run that waits for it. @param {{ id: string }} props */
function Approval({ id }) {
  const { value, error, reload } = useLoad(`/workflows/approvals/${id}`);
  const jobId = (value?.run ?? value?.agentRun)?.jobId;
  useJobChanges(useCallback((job) => (!job || job.jobId === jobId ? reload() : undefined), [jobId, reload]));
  if (!value) return html`<h1>Approval</h1><${Problem} error=${error} />`;
  const { kind, status, assigneeRole, message, createdAt, expiresAt, decidedBy, decidedAt, comment, mayDecide } = value;
  const run = value.run ?? value.agentRun;
  const forWhom = assigneeRole === "owner" ? "an owner" : "an admin or owner";
  const isOpen = status === "pending";
  return html`<h1>${nameOf(value)} <${Badge} text=${status} /></h1>
    ${message ? html`<${Markdown} text=${message} />` : null}
    ${kind === "agent" ? html`<${Text} value=${JSON.stringify(value.arguments, null, 2)} label="The arguments" />` : null}
    <${Facts} facts=${[["For", forWhom], ["Asked for by", value.startedBy], ["Requested", html`<${Time} at=${createdAt} />`], ["Until", isOpen && html`<${Time} at=${expiresAt} />`], ["Decided by", decidedBy && html`${decidedBy} <${Time} at=${decidedAt} />`], ["Comment", comment], ["Tool", value.toolName], ["Cost so far", money(run.costUsd)], ["Run", html`<${IdLink} id=${run.jobId} text="that asked for it" /> <${Badge} text=${run.status} />`]]} />
    ${isOpen && mayDecide ? html`<${Decision} id=${id} onDecided=${reload} />` : null}
    ${isOpen && !mayDecide ? html`<p class="hint">Your key may not decide this: it is for ${forWhom}.</p>` : null}
    ${kind === "agent" ? html`<${AgentRunView} run=${run} />` : html`<${WorkflowRunView} run=${run} />`}`;
}

const path = "/console/approvals";

/** @param {{ id: string, query: URLSearchParams }} props */
export function Approvals({ id, query }) {
  if (id) return html`<${Approval} id=${id} />`;
  return html`<${ApprovalList} query=${query} />`;
}

/** @param {{ query: URLSearchParams }} props */
function ApprovalList({ query }) {
  const filter = { ...filterOf(query, ["agentId", "workflowId"]), status: query.get("status") ?? "pending" };
  const { status } = filter;
  const list = useList(`/workflows/approvals?${toListQuery(filter)}`, { id: "approvalId" });
  const runs = list.items.map((/** @type {any} */ { runId }) => runId).join();
  const { reload } = list;
  useJobChanges(
    useCallback(
      (job) => {
        const mayChange =
          job && kinds.includes(job.kind) && (job.status === "awaiting" || runs.includes(job.about.runId));
        if (!job || mayChange) reload();
      },
      [reload, runs],
    ),
  );
  /** @param {string} chosen */
  const choose = (chosen) => navigate(`${path}?${toQuery({ ...filter, status: chosen })}`);
  const empty = html`${status === "pending" ? "Nothing waits for a decision." : "None."} A <a href="/console/workflows">workflow</a> asks by a step <code>human_approval</code>, an <a href="/console/agents">agent</a> by a tool with <code>approval</code>.`;
  return html`<h1>Approvals</h1><${Filters} key=${query.toString()} path=${path} filter=${filter}>
      <${Choice} label="Approvals that are" value=${status} options=${states} onChange=${choose} />
      <${DefinitionChoice} filter=${filter} onChoose=${(/** @type {object} */ change) => navigate(`${path}?${toQuery({ ...filter, ...change })}`)} /></${Filters}>
    <${Table} list=${list} columns=${["What", "Status", "For", "Asked for by", "Requested", status === "pending" ? "Until" : "By"]} row=${row} empty=${empty} />`;
}
