import { toQuery } from "./api.js";
import { DefinitionChoice, Filters, filterOf, Given, toListQuery, useDefinitionNames, useKeyNames } from "./filters.js";
import { html } from "./html.js";
import { useList, useLoad } from "./load.js";
import { navigate } from "./router.js";
import { Badge, Choice, duration, Facts, Id, IdLink, money, number, Problem, Table, Text, Time } from "./ui.js";

const outcomes = ["completed", "aborted", "failed", "blocked"];
const kinds = ["chat", "embedding", "rerank"];
const path = "/console/calls";
const fields = [
  "status",
  "kind",
  "model",
  "surface",
  "keyId",
  "jobId",
  "runId",
  "agentId",
  "workflowId",
  "requestId",
  "endUser",
];
/** Those that have no choice of their own. */
const labels = {
  model: "Answered by",
  surface: "By the surface",
  keyId: "Of the key",
  jobId: "Of the job",
  runId: "Of the run",
  requestId: "Of the request",
  endUser: "Made for",
};

/** @param {any} one */
const row = (
  one,
) => html`<tr><td><${IdLink} id=${one.logId} text=${html`<${Time} at=${one.createdAt} />`} /></td><td>${one.model}</td><td>${one.surface}</td><td><${Badge} text=${one.status} />${one.error ? html`<br /><span class="bad line">${one.error.message}</span>` : null}</td>
  <td><span class="whole">${number(one.inputTokens)} / ${number(one.outputTokens)}</span></td><td>${money(one.costUsd)}</td><td>${duration(one.durationMs)}</td></tr>`;

/** The log of model calls. @param {{ query: URLSearchParams, me: any }} props */
export function Calls({ query, me }) {
  const filter = filterOf(query, fields);
  const names = useKeyNames(me, filter.keyId !== "");
  const list = useList(`/ai/logs?${toListQuery(filter)}`, { id: "logId" });
  /** @param {object} change */
  const choose = (change) => navigate(`${path}?${toQuery({ ...filter, ...change })}`);
  const empty = html`No calls were found. Ask a model in the <a href="/console/playground">playground</a>, or by the <a href="/docs">API</a>.`;
  return html`<h1>Calls</h1><${Filters} key=${query.toString()} path=${path} filter=${filter}>
      <${Choice} label="Outcome" value=${filter.status ?? ""} options=${outcomes} all="all" onChange=${(/** @type {string} */ status) => choose({ status })} />
      <${Choice} label="Kind" value=${filter.kind ?? ""} options=${kinds} all="all" onChange=${(/** @type {string} */ kind) => choose({ kind })} />
      <${DefinitionChoice} filter=${filter} onChoose=${choose} />
    </${Filters}><${Given} path=${path} filter=${filter} labels=${labels} names=${names} />
    <${Table} list=${list} columns=${["When", "Model", "Surface", "Outcome", "Tokens", "Cost", "Took"]} row=${row} empty=${empty} />`;
}

/** One call. @param {{ id: string, me: any }} props */
export function Call({ id, me }) {
  const { value, error } = useLoad(`/ai/logs/${id}`);
  const [names, keyNames] = [useDefinitionNames(), useKeyNames(me)];
  if (!value) return html`<h1>Call</h1><${Problem} error=${error} />`;
  const routed = value.requestedModel !== value.model;
  return html`<h1>Call <${Badge} text=${value.status} /></h1>
    <${Facts} facts=${[
      ["Call", html`<${Id} id=${id} />`],
      ["Job", value.jobId && html`<${IdLink} id=${value.jobId} />`],
      ["Run", value.runId && html`<${IdLink} id=${value.runId} />`],
      ["Agent", value.agentId && html`<${IdLink} id=${value.agentId} text=${names.get(value.agentId)} />`],
      ["Workflow", value.workflowId && html`<${IdLink} id=${value.workflowId} text=${names.get(value.workflowId)} />`],
      [
        "Request",
        value.requestId &&
          html`<a href=${`${path}?${toQuery({ requestId: value.requestId })}`}><code>${value.requestId}</code></a>`,
      ],
      ["Made for", value.endUser],
      ["When", html`<${Time} at=${value.createdAt} />`],
      ["Kind", `${value.kind}${value.stream ? ", streamed" : ""}`],
      ["Asked for", value.requestedModel],
      ["Answered by", `${value.model} (${value.provider})${routed ? ", chosen by routing" : ""}`],
      ["Surface", html`<a href="/console/calls?surface=${encodeURIComponent(value.surface)}">${value.surface}</a>`],
      [
        "Key",
        html`<a href="/console/calls?keyId=${value.keyId}">${keyNames.get(value.keyId) ?? html`<code>${value.keyId}</code>`}</a> (<a href="/console/usage?group=model&key=${value.keyId}">its use</a>, <a href="/console/runs?keyId=${value.keyId}">its runs</a>)`,
      ],
      ["Attempts", value.attempts],
      ["First token after", duration(value.firstTokenMs)],
      ["Took", duration(value.durationMs)],
      [
        "Tokens in, out",
        `${number(value.inputTokens)}, ${number(value.outputTokens)} (counted by ${value.usageSource})`,
      ],
      ["Cost", money(value.costUsd)],
      ["From the cache", value.cached ? "yes" : undefined],
      ["Ended by", value.finishReason],
    ]} /><${Problem} error=${value.error} />
    ${value.content ? html`<h2>Texts</h2><${Text} value=${value.content.messages} label="The messages" /><${Text} value=${value.content.text} label="The answer" />` : html`<p class="hint">Texts of calls are not kept, unless the operator has them kept.</p>`}`;
}
