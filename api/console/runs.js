import { useCallback, useEffect, useState } from "preact/hooks";
import { post, toQuery } from "./api.js";
import { html } from "./html.js";
import { useAction, useJobChanges, useList, useLoad } from "./load.js";
import { navigate } from "./router.js";
import { AgentRunView, CompositeView, WorkflowRunView } from "./timeline.js";
import { Badge, between, Choice, Facts, IdLink, Problem, Table, Text, Time } from "./ui.js";

const kinds = ["ingestion", "agent", "workflow", "composite", "response", "completion"];
const states = ["queued", "running", "awaiting", "completed", "failed", "cancelled"];

/** A run that ended early shows how, although its job has completed. @param {any} job */
const stateOf = ({ status, progress }) => (status === "completed" ? progress.stage : status);

/** @param {any} job */
const row = (job) => html`<tr>
  <td><${IdLink} id=${job.jobId} text=${job.title ?? job.jobId} /></td><td>${job.kind}</td><td><${Badge} text=${stateOf(job)} /></td>
  <td>${job.startedBy ?? ""}</td><td><${Time} at=${job.createdAt} /></td><td>${between(job.startedAt, job.finishedAt)}</td>
</tr>`;

/** All work of the tenant, whatever its kind. @param {{ query: URLSearchParams }} props */
export function Runs({ query }) {
  const filter = { kind: query.get("kind") ?? "", status: query.get("status") ?? "" };
  const list = useList(`/jobs?${toQuery({ ...filter, limit: 50 })}`);
  const { reload } = list;
  useJobChanges(useCallback(() => reload(), [reload]));
  /** @param {Partial<typeof filter>} change */
  const choose = (change) => navigate(`/console/runs?${toQuery({ ...filter, ...change })}`);
  return html`<h1>Runs</h1><div class="actions">
      <${Choice} label="Kind" value=${filter.kind} options=${kinds} all="all" onChange=${(/** @type {string} */ kind) => choose({ kind })} />
      <${Choice} label="Status" value=${filter.status} options=${states} all="all" onChange=${(/** @type {string} */ status) => choose({ status })} />
    </div>
    <${Table} list=${list} columns=${["What", "Kind", "Status", "Who", "Begun", "Took"]} row=${row} />`;
}

/** Calls `onChange` at each event of a job, until it has ended. @param {any} job @param {() => void} onChange */
function useJobEvents(job, onChange) {
  const jobId = job?.jobId;
  const isOpen = job !== undefined && ["queued", "running", "awaiting"].includes(job.status);
  useEffect(() => {
    if (!jobId || !isOpen) return;
    const source = new EventSource(`/jobs/${jobId}/events`);
    for (const type of ["progress", "step", "end"]) source.addEventListener(type, onChange);
    source.addEventListener("end", () => source.close());
    return () => source.close();
  }, [jobId, isOpen, onChange]);
}

/** Where the API shows what a job works on, and what shows it here. @param {any} about */
function detailOf({ runId, workflowId, executionId }) {
  if (workflowId) return { path: `/workflows/${workflowId}/runs/${runId}`, View: WorkflowRunView };
  if (runId) return { path: `/runs/${runId}/trail`, View: AgentRunView };
  return executionId ? { path: `/composite/executions/${executionId}`, View: CompositeView } : undefined;
}

/** Starts the same again. @param {any} about @param {any} detail */
async function runAgain({ agentId, workflowId, executionId }, { input, pattern, profile }) {
  const path = workflowId
    ? `/workflows/${workflowId}/execute`
    : executionId
      ? "/composite/execute"
      : `/agents/${agentId}/run`;
  const body = { ...(input === undefined ? {} : { input }), ...(executionId ? { pattern, profile } : {}) };
  const { jobId } = await post(path, body, { headers: { prefer: "respond-async" } });
  navigate(`/console/runs/${jobId}`);
}

/** @param {{ job: any, detail: any, onChange: () => void }} props */
function Actions({ job, detail, onChange }) {
  const { run, error, isBusy } = useAction();
  const isOpen = ["queued", "running", "awaiting"].includes(job.status);
  const { workflowId, agentId, executionId } = job.about;
  const mayRepeat = !isOpen && detail && (workflowId || agentId || (executionId && detail.input !== undefined));
  const cancel = () =>
    run(
      () => post(`/jobs/${job.jobId}/cancel`, undefined),
      () => onChange(),
    );
  return html`<p class="actions">
      ${isOpen ? html`<button type="button" disabled=${isBusy} onClick=${cancel}>Cancel</button>` : null}
      ${mayRepeat ? html`<button type="button" disabled=${isBusy} onClick=${() => run(() => runAgain(job.about, detail))}>Run again</button>` : null}
    </p><${Problem} error=${error} />`;
}

/** One job, live, with what it works on. @param {{ id: string }} props */
export function Run({ id }) {
  const job = useLoad(`/jobs/${id}`);
  const detailed = job.value && detailOf(job.value.about);
  const detail = useLoad(detailed?.path);
  const reload = useCallback(() => {
    job.reload();
    detail.reload();
  }, [job.reload, detail.reload]);
  useJobEvents(job.value, reload);
  if (!job.value)
    return job.error
      ? html`<h1>Run</h1><${Problem} error=${job.error} />`
      : html`<p class="busy-note" role="status">Loading …</p>`;
  const { kind, title, status, progress, startedBy, createdAt, startedAt, finishedAt } = job.value;
  const { attempts, traceId, error, about, result } = job.value;
  return html`<h1>${title ?? kind} <${Badge} text=${stateOf(job.value)} /></h1>
    <${Facts} facts=${[
      ["Kind", kind],
      ["Job", html`<code>${id}</code>`],
      ["Started by", startedBy],
      ["Accepted", html`<${Time} at=${createdAt} />`],
      ["Waited", between(createdAt, startedAt)],
      ["Took", between(startedAt, finishedAt)],
      ["Stage", status === "running" ? `${progress.stage} ${progress.done} of ${progress.total}` : undefined],
      ["Attempts", attempts > 1 ? attempts : undefined],
      ["Trace", traceId && html`<code>${traceId}</code>`],
      ...Object.entries(about).map(([name, value]) => /** @type {const} */ ([name, html`<${IdLink} id=${value} />`])),
    ]} />
    <${Problem} error=${error} /><${Actions} job=${job.value} detail=${detail.value} onChange=${reload} />
    <${Problem} error=${detail.error} />
    ${detailed && detail.value ? html`<${detailed.View} run=${detail.value} />` : null}
    ${detailed ? null : html`<${Text} value=${result} label="The result" />`}`;
}

/** The job of a run that is known by its own id. @param {{ path: string }} props */
function RunOf({ path }) {
  const run = useLoad(path);
  const jobId = run.value?.jobId;
  if (!jobId) return html`<h1>Run</h1><${Problem} error=${run.error} />`;
  return html`<${Run} id=${jobId} />`;
}

/** An agent's run; one that another run called has that run's job, so it is shown by itself. @param {{ id: string }} props */
export function AgentRun({ id }) {
  const run = useLoad(`/runs/${id}/trail`);
  const [isInner, setIsInner] = useState(false);
  useEffect(() => setIsInner(run.value?.parentRunId !== undefined), [run.value]);
  if (!run.value) return html`<h1>Agent run</h1><${Problem} error=${run.error} />`;
  if (!isInner) return html`<${Run} id=${run.value.jobId} />`;
  return html`<h1>${run.value.agentName} <${Badge} text=${run.value.status} /></h1>
    <${Facts} facts=${[["Called by", html`<${IdLink} id=${run.value.parentRunId} />`]]} /><${AgentRunView} run=${run.value} />`;
}

/** @param {{ id: string }} props */
export function CompositeRun({ id }) {
  return html`<${RunOf} path=${`/composite/executions/${id}`} />`;
}
