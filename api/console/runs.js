import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { post, toQuery } from "./api.js";
import { DefinitionChoice, Filters, filterOf, Given, timesOf, toListQuery, useKeyNames } from "./filters.js";
import { html } from "./html.js";
import { useAction, useJobChanges, useList, useLoad } from "./load.js";
import { navigate } from "./router.js";
import { detailOf } from "./run-tree.js";
import { AgentRunView } from "./timeline.js";
import { Badge, between, Choice, Facts, Id, IdLink, money, Problem, Table, Text, Time } from "./ui.js";

const kinds = ["ingestion", "agent", "workflow", "composite", "response", "completion"];
const states = ["queued", "running", "awaiting", "completed", "failed", "cancelled"];

const path = "/console/runs";

/** A run that ended early shows how, although its job has completed. @param {any} job */
const stateOf = ({ status, progress }) => (status === "completed" ? progress.stage : status);

/** @param {any} job */
const row = (job) => html`<tr>
  <td class="what"><${IdLink} id=${job.jobId} text=${job.title || job.kind} />${job.input ? html`<br /><span class="meta line">${job.input}</span>` : null}${job.error ? html`<br /><span class="bad line">${job.error.message}</span>` : null}</td>
  <td>${job.kind}</td><td><${Badge} text=${stateOf(job)} />${job.status === "running" && job.progress.total > 0 ? html` <span class="meta">${job.progress.done} of ${job.progress.total}</span>` : null}</td>
  <td class="name">${job.startedBy ? html`<a href=${`${path}?${toQuery({ startedBy: job.startedBy })}`}>${job.startedBy}</a>` : null}</td><td>${money(job.costUsd)}</td><td><${Time} at=${job.createdAt} /></td><td>${between(job.startedAt, job.finishedAt)}</td>
</tr>`;

const fields = ["kind", "status", "agentId", "workflowId", "collection", "documentId", "startedBy", "keyId"];
/** Those that have no choice of their own. */
const labels = {
  collection: "On documents of the collection",
  documentId: "On the document",
  startedBy: "Asked for by",
  keyId: "By the key",
};

/** Whether a job is one of a list, as the API sees it. @param {Record<string, string>} filter */
const fitsOf = (filter) => {
  const { from: after = "", to: before } = timesOf(filter);
  const { q = "", kind, status, agentId, workflowId, collection, documentId, startedBy, keyId } = filter;
  /** @param {any} job */
  return (job) =>
    (!kind || job.kind === kind) &&
    (!status || job.status === status) &&
    (!agentId || job.about.agentId === agentId) &&
    (!workflowId || job.about.workflowId === workflowId) &&
    (!collection || job.about.collection === collection) &&
    (!documentId || job.about.documentId === documentId) &&
    (!startedBy || job.startedBy === startedBy) &&
    (!keyId || job.keyId === keyId) &&
    job.createdAt >= after &&
    (!before || job.createdAt < before) &&
    [job.title, job.input].some((text) => q === "" || text?.toLowerCase().includes(q.trim().toLowerCase()));
};

/** A list of jobs that stays as the jobs are. @param {string} listPath @param {(job: any) => boolean} fits */
export function useJobList(listPath, fits) {
  const list = useList(listPath, { id: "jobId" });
  const { change, reload } = list;
  useJobChanges(useCallback((job) => (job ? change(job, fits) : reload()), [change, reload]));
  return list;
}

/** Stops, or starts again, all jobs of a state that fit the filter of the list. @param {{ filter: Record<string, string>, onDone: () => void }} props */
function Many({ filter, onDone }) {
  const { run, error, isBusy } = useAction();
  const [note, setNote] = useState("");
  const { q = "", range = "", since: _since, until: _until, status = "", ...others } = filter;
  const isRepeated = ["failed", "cancelled"].includes(status);
  if (status === "" || status === "completed" || q !== "") return null; // the API takes no text: it may be of any job
  const given = Object.fromEntries(Object.entries(others).filter(([, value]) => value !== ""));
  const { kind, collection, ...rest } = given;
  const where = collection ? ` on documents of ${collection}` : "";
  const asFiltered = range !== "" || Object.keys(rest).length > 0 ? " that fit the filter" : "";
  const what = `all ${status} ${kind ? `jobs of the kind ${kind}` : "jobs"}${where}${asFiltered}`;
  const act = () => {
    if (!confirm(`${isRepeated ? "Start again" : "Cancel"} ${what}?`)) return;
    run(async () => {
      const times = Object.entries(timesOf(filter)).filter(([, value]) => value !== "");
      const body = { status, ...given, ...Object.fromEntries(times) };
      const { done, skipped, hasMore } = await post(isRepeated ? "/jobs/retry" : "/jobs/cancel", body);
      setNote(
        `${done} ${isRepeated ? "started again" : "cancelled"}, ${skipped} skipped${hasMore ? "; there are more" : ""}.`,
      );
    }, onDone);
  };
  return html`<p class="actions"><button type="button" disabled=${isBusy} onClick=${act}>${isRepeated ? "Retry" : "Cancel"} ${what}</button>
    <span class="meta" role="status">${note}</span></p><${Problem} error=${error} />`;
}

/** What an empty list of runs says. */
const firstSteps = html`Nothing here. Run an <a href="/console/agents">agent</a> or a <a href="/console/workflows">workflow</a>, or drop <a href="/console/documents">documents</a>: each is a job, which you follow here.`;

/** The columns of runs, as of `row`. */
const columns = ["What", "Kind", "Status", "Who", "Cost", "Begun", "Took"];

/** Runs of one agent or workflow, the newest ten. @param {{ field: string, id: string }} props `field`: that holds the id */
export function RunsOf({ field, id }) {
  const list = useJobList(
    `/jobs?${toQuery({ [field]: id, limit: 10 })}`,
    useCallback((job) => job.about[field] === id, [field, id]),
  );
  return html`<${Table} list=${{ ...list, next: null }} columns=${columns} row=${row} empty="It has not run yet." />
    ${list.items.length === 0 ? null : html`<p><a href=${`${path}?${toQuery({ [field]: id })}`}>All its runs</a>, <a href=${`/console/calls?${toQuery({ [field]: id })}`}>its model calls</a></p>`}`;
}

/** All work of the tenant, whatever its kind. @param {{ query: URLSearchParams, me: any }} props */
export function Runs({ query, me }) {
  const filter = filterOf(query, fields);
  const names = useKeyNames(me, filter.keyId !== "");
  const list = useJobList(
    `/jobs?${toListQuery(filter)}`,
    useMemo(() => fitsOf(filter), [query]),
  );
  /** @param {object} change */
  const choose = (change) => navigate(`${path}?${toQuery({ ...filter, ...change })}`);
  if (filter.documentId && list.items[0]?.title) names.set(filter.documentId, list.items[0].title); // as each of them has it
  return html`<h1>Runs</h1><${Filters} key=${query.toString()} path=${path} filter=${filter}>
      <${Choice} label="Kind" value=${filter.kind} options=${kinds} all="all" onChange=${(/** @type {string} */ kind) => choose({ kind })} />
      <${Choice} label="Status" value=${filter.status} options=${states} all="all" onChange=${(/** @type {string} */ status) => choose({ status })} />
      <${DefinitionChoice} filter=${filter} onChoose=${choose} />
    </${Filters}><${Given} path=${path} filter=${filter} labels=${labels} names=${names} /><${Many} filter=${filter} onDone=${list.reload} />
    <${Table} list=${list} columns=${columns} row=${row} empty=${firstSteps} />`;
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

/** Whether a job is this one, or one that it has started. @param {any} job @param {string} id */
const isAbout = ({ jobId, parentJobId }, id) => jobId === id || parentJobId === id;

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
  const retry = () =>
    run(async () => {
      const { jobId } = await post(`/jobs/${job.jobId}/retry`, undefined, { headers: { prefer: "respond-async" } });
      navigate(`/console/runs/${jobId}`);
    });
  const mayRetry = ["failed", "cancelled"].includes(job.status);
  return html`<p class="actions">
      ${mayRetry ? html`<button type="button" disabled=${isBusy} onClick=${retry}>Retry</button>` : null}
      ${isOpen ? html`<button type="button" disabled=${isBusy} onClick=${cancel}>Cancel</button>` : null}
      ${mayRepeat ? html`<button type="button" disabled=${isBusy} onClick=${() => run(() => runAgain(job.about, detail))}>Run again</button>` : null}
    </p><${Problem} error=${error} />`;
}

/** What the ids of a job are called. @type {Record<string, string>} */
const aboutLabels = {
  runId: "Run",
  agentId: "Agent",
  workflowId: "Workflow",
  executionId: "Execution",
  documentId: "Document",
  collection: "Collection",
  batchId: "Batch",
  responseId: "Response",
};

/** Ids of a run whose page is this one. */
const own = ["runId", "executionId"];

/** What a job works on: an id with its page, or a collection. @param {string} name @param {string} value @param {string | undefined} title of the job, which a document's is too */
function aboutValue(name, value, title) {
  const itsRuns = html`(<a href=${`${path}?${toQuery({ [name]: value })}`}>its runs</a>)`;
  if (name === "collection")
    return html`<a href=${`/console/documents?${toQuery({ collection: value })}`}>${value}</a> ${itsRuns}`;
  if (name === "documentId") return html`<${IdLink} id=${value} text=${title} /> ${itsRuns}`;
  return own.includes(name) ? html`<${Id} id=${value} />` : html`<${IdLink} id=${value} />`;
}

/** One job, live, with what it works on. @param {{ id: string, me: any }} props */
export function Run({ id, me }) {
  const job = useLoad(`/jobs/${id}`);
  const names = useKeyNames(me);
  const detailed = job.value && detailOf(job.value.about);
  const detail = useLoad(detailed?.path);
  const reload = useCallback(() => {
    job.reload();
    detail.reload();
  }, [job.reload, detail.reload]);
  useJobChanges(useCallback((changed) => (!changed || isAbout(changed, id) ? reload() : undefined), [id, reload]));
  if (!job.value)
    return job.error
      ? html`<h1>Run</h1><${Problem} error=${job.error} />`
      : html`<p class="busy-note" role="status">Loading …</p>`;
  const { kind, title, status, progress, startedBy, createdAt, startedAt, finishedAt } = job.value;
  const { attempts, traceId, error, about, result, keyId, parentJobId, costUsd } = job.value;
  return html`<h1>${title ?? kind} <${Badge} text=${stateOf(job.value)} /></h1>
    <${Facts} facts=${[
      ["Kind", kind],
      ["Job", html`<${Id} id=${id} />`],
      ["Started by", startedBy && html`<a href=${`/console/runs?${toQuery({ startedBy })}`}>${startedBy}</a>`],
      [
        "Key",
        keyId &&
          html`<${IdLink} id=${keyId} text=${names.get(keyId)} /> (<a href=${`/console/runs?${toQuery({ keyId })}`}>its runs</a>)`,
      ],
      ["Started by the job", parentJobId && html`<${IdLink} id=${parentJobId} />`],
      ["Model calls", html`<a href=${`/console/calls?${toQuery({ jobId: id })}`}>those of this job</a>`],
      ["Cost", money(costUsd)],
      ["Accepted", html`<${Time} at=${createdAt} />`],
      ["Waited", between(createdAt, startedAt)],
      ["Took", between(startedAt, finishedAt)],
      ["Stage", status === "running" ? `${progress.stage} ${progress.done} of ${progress.total}` : undefined],
      ["Attempts", attempts > 1 ? attempts : undefined],
      ["Trace", traceId && html`<code>${traceId}</code>`],
      ...Object.entries(about)
        .filter(([name]) => !detail.value || !["agentId", "workflowId"].includes(name)) // which the run's own part shows
        .map(([name, value]) => /** @type {const} */ ([aboutLabels[name] ?? name, aboutValue(name, value, title)])),
    ]} />
    <${Problem} error=${error} /><${Actions} job=${job.value} detail=${detail.value} onChange=${reload} />
    <${Problem} error=${detail.error} />
    ${detailed && detail.value ? html`<${detailed.View} run=${detail.value} />` : null}
    ${detailed || result === undefined ? null : html`<h2>Result</h2><${Text} value=${result} label="The result" />`}`;
}

/** The job of a run that is known by its own id. @param {{ path: string, me: any }} props */
export function RunOf({ path, me }) {
  const run = useLoad(path);
  const jobId = run.value?.jobId;
  if (!jobId) return html`<h1>Run</h1><${Problem} error=${run.error} />`;
  return html`<${Run} id=${jobId} me=${me} />`;
}

/** An agent's run; one that another run called has that run's job, so it is shown by itself. @param {{ id: string, me: any }} props */
export function AgentRun({ id, me }) {
  const run = useLoad(`/runs/${id}/trail`);
  const [isInner, setIsInner] = useState(false);
  useEffect(() => setIsInner(run.value?.parentRunId !== undefined), [run.value]);
  const jobId = run.value?.jobId;
  useJobChanges(useCallback((job) => (!job || job.jobId === jobId ? run.reload() : undefined), [jobId, run.reload]));
  if (!run.value) return html`<h1>Agent run</h1><${Problem} error=${run.error} />`;
  if (!isInner) return html`<${Run} id=${run.value.jobId} me=${me} />`;
  return html`<h1>${run.value.agentName} <${Badge} text=${run.value.status} /></h1>
    <${Facts} facts=${[["Called by", html`<${IdLink} id=${run.value.parentRunId} />`]]} /><${AgentRunView} run=${run.value} />`;
}

/** @param {{ id: string, me: any }} props */
export function CompositeRun({ id, me }) {
  return html`<${RunOf} path=${`/composite/executions/${id}`} me=${me} />`;
}
