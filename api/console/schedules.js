import { useState } from "preact/hooks";
import { post, put, remove } from "./api.js";
import { useDraft } from "./drafts.js";
import { useDefinitionNames } from "./filters.js";
import { html } from "./html.js";
import { useAction, useList, useLoad } from "./load.js";
import { navigate } from "./router.js";
import { Badge, Copy, duration, Facts, Field, IdLink, Problem, Table, Text, Time } from "./ui.js";

/** What starts without a request, and what is told to servers elsewhere. */

/** What a target is, in a few words. @param {any} target @param {Map<string, string>} names of agents and workflows */
const targetText = ({ agentId, workflowId, composite, ingest, refresh }, names) => {
  const id = agentId ?? workflowId;
  if (id) return html`<${IdLink} id=${id} text=${names.get(id)} />`;
  if (composite) return `${composite.pattern} (${composite.profile})`;
  return ingest ? `read ${ingest.url}` : `read ${refresh.collection} again`;
};

/** When a schedule fires, in words. @param {any} one */
const timesText = ({ cron, every, at, timezone }) =>
  cron
    ? html`<code>${cron}</code>, ${timezone}`
    : every
      ? `every ${duration(every)}`
      : html`once, <${Time} at=${at} />`;

/** A time as clocks of a zone show it. @param {string} at @param {string} timeZone */
const inZone = (at, timeZone) =>
  new Date(at).toLocaleString(undefined, { timeZone, dateStyle: "medium", timeStyle: "long" });

/** Whether it may fire, and why not. @param {any} one */
const stateOf = ({ enabled, disabledBecause }) =>
  html`<${Badge} text=${enabled ? "ready" : "disabled"} /> ${disabledBecause ?? ""}`;

/** A form that makes something of JSON. @param {{ label: string, path: string, example: object, onMade: () => void }} props */
function NewByJson({ label, path, example, onMade }) {
  const original = JSON.stringify(example, null, 2);
  const [text, setText, forget] = useDraft(path, original);
  const [isKept] = useState(text !== original); // who comes back sees what was not sent
  const { run, error, isBusy } = useAction();
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(
      () => post(path, JSON.parse(text)),
      () => {
        forget();
        onMade();
      },
    );
  };
  return html`<details open=${isKept}><summary>${label}</summary><form onSubmit=${submit}><${Field} label="As JSON" rows="9" value=${text} onInput=${setText} spellcheck="false" />
    <button type="submit" disabled=${isBusy}>Make it</button></form><${Problem} error=${error} /></details>`;
}

/** @param {any} one */
const firingRow = (one) => html`<tr><td><${Time} at=${one.slotAt} /></td><td><${Badge} text=${one.status} /></td>
  <td>${one.job ? html`<${IdLink} id=${one.job.jobId} text=${one.job.status} />` : one.documents === undefined ? "" : `${one.documents} documents`}</td>
  <td>${one.manual ? "by hand" : ""} ${one.missed ? `${one.missed} more were missed` : ""} ${one.error?.message ?? one.reason ?? ""}</td></tr>`;
const firingColumns = ["For", "Status", "Job", "About"];

/**
 * Lets what a page shows rest, or go on, and deletes it, which leaves the page for the list.
 * @param {{ path: string, what: string, value: any, fields: readonly string[], onChanged: () => void, children?: any }} props `fields`: of a view, those that can be written
 */
function Writes({ path, what, value, fields, onChanged, children }) {
  const { run, error, isBusy } = useAction();
  const body = { ...bodyOf(value, fields), enabled: !value.enabled };
  const drop = async () => {
    if (!confirm(`Delete this ${what}?`)) return;
    await remove(path);
    navigate("/console/schedules");
  };
  return html`<p class="actions">${children}<button type="button" disabled=${isBusy} onClick=${() => run(() => put(path, body), onChanged)}>${value.enabled ? "Disable" : "Enable"}</button>
    <button type="button" class="rejected" disabled=${isBusy} onClick=${() => run(drop)}>Delete</button></p><${Problem} error=${error} />`;
}

/** A body of a replacement: what of a view can be written. @param {any} view @param {readonly string[]} fields */
const bodyOf = (view, fields) =>
  Object.fromEntries(fields.flatMap((name) => (view[name] === undefined ? [] : [[name, view[name]]])));
const scheduleFields = [
  "name",
  "cron",
  "every",
  "at",
  "timezone",
  "target",
  "input",
  "overlap",
  "catchUp",
  "jitterMs",
  "version",
];
const triggerFields = ["event", "when", "target", "inputFrom", "version"];
const webhookFields = ["url", "events", "description", "version"];

/** @param {{ id: string }} props */
function Schedule({ id }) {
  const { value, error, reload } = useLoad(`/schedules/${id}`);
  const firings = useList(`/schedules/${id}/firings?limit=50`);
  const names = useDefinitionNames();
  const { run, error: failure, isBusy } = useAction();
  if (!value) return html`<h1>Schedule</h1><${Problem} error=${error} />`;
  const again = () => {
    reload();
    firings.reload();
  };
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return html`<h1>${value.name} ${stateOf(value)}</h1>
    <${Facts} facts=${[["Times", timesText(value)], ["Starts", targetText(value.target, names)], ["When the job before has not ended", value.overlap === "queue" ? "a firing waits for it" : "a firing is left out"], ["Firings that were missed", value.catchUp === "one" ? "one is made for all of them" : "are left out"], ["Jitter", value.jitterMs ? duration(value.jitterMs) : ""], ["Made by", value.createdBy], ["Changed", html`<${Time} at=${value.updatedAt} />`]]} />
    <${Text} value=${value.input} label="The input" />
    <${Writes} path=${`/schedules/${id}`} what="schedule" value=${value} fields=${scheduleFields} onChanged=${again}><button type="button" disabled=${isBusy} onClick=${() => run(() => post(`/schedules/${id}/run`, undefined), again)}>Start it now</button></${Writes}><${Problem} error=${failure} />
    <h2>Next times</h2>${
      value.nextTimes.length === 0
        ? html`<p class="hint">There are none.</p>`
        : html`<div class="scroll" tabindex="0" role="region" aria-label="Next times"><table><thead><tr><th scope="col">Your time, ${own}</th><th scope="col">${value.timezone}</th></tr></thead>
      <tbody>${value.nextTimes.map((/** @type {string} */ at) => html`<tr><td><time dateTime=${at}>${inZone(at, own)}</time></td><td><time dateTime=${at}>${inZone(at, value.timezone)}</time></td></tr>`)}</tbody></table></div>`
    }
    <h2>Firings</h2><${Table} list=${firings} columns=${firingColumns} row=${firingRow} empty="It has not fired yet." />`;
}

/** @param {{ id: string }} props */
export function Trigger({ id }) {
  const { value, error, reload } = useLoad(`/triggers/${id}`);
  const firings = useList(`/triggers/${id}/firings?limit=50`);
  const names = useDefinitionNames();
  if (!value) return html`<h1>Trigger</h1><${Problem} error=${error} />`;
  return html`<h1>On ${value.event} ${stateOf(value)}</h1>
    <${Facts} facts=${[["If", value.when && html`<code>${value.when}</code>`], ["Starts", targetText(value.target, names)], ["With", value.inputFrom && html`<code>${value.inputFrom}</code>`], ["Made by", value.createdBy], ["Changed", html`<${Time} at=${value.updatedAt} />`]]} />
    <${Writes} path=${`/triggers/${id}`} what="trigger" value=${value} fields=${triggerFields} onChanged=${reload} />
    <h2>Firings</h2><${Table} list=${firings} columns=${firingColumns} row=${firingRow} empty="It has not started anything yet." />`;
}

/** @param {{ id: string }} props */
export function Webhook({ id }) {
  const { value, error, reload } = useLoad(`/webhooks/${id}`);
  const deliveries = useList(`/webhooks/${id}/deliveries?limit=50`);
  const { run, error: failure, isBusy } = useAction();
  if (!value) return html`<h1>Webhook</h1><${Problem} error=${error} />`;
  /** @param {any} one */
  const row = (one) => {
    const last = one.log.at(-1);
    const replay = () =>
      run(() => post(`/webhooks/${id}/deliveries/${one.deliveryId}/replay`, undefined), deliveries.reload);
    return html`<tr><td><${Time} at=${one.createdAt} /></td><td class="long"><code>${one.type}</code><details><summary>The message</summary><pre tabindex="0">${JSON.stringify(one.message, null, 2)}</pre></details></td><td><${Badge} text=${one.status} /></td>
      <td>${one.attempts}</td><td class="name">${last?.error?.message ?? last?.status ?? ""}</td>
      <td>${one.status === "pending" ? html`next <${Time} at=${one.nextAt} />` : html`<button type="button" disabled=${isBusy} onClick=${replay}>Send again</button>`}</td></tr>`;
  };
  return html`<h1>Webhook <${Badge} text=${value.enabled ? "ready" : "disabled"} /></h1>
    <${Facts} facts=${[["To", html`<code>${value.url}</code>`], ["Told of", value.events.join(", ")], ["About", value.description], ["Ends", value.endsAt && html`<${Time} at=${value.endsAt} />`], ["Made by", value.createdBy], ["Changed", html`<${Time} at=${value.updatedAt} />`]]} />
    <${Writes} path=${`/webhooks/${id}`} what="webhook" value=${value} fields=${webhookFields} onChanged=${reload} /><${Problem} error=${failure} />
    <h2>Deliveries</h2><${Table} list=${deliveries} columns=${["Made", "Message", "Status", "Attempts", "Last answer", ""]} row=${row} empty="Nothing was told yet." />`;
}

/** Servers that post events, and addresses that are told: for admins. */
function Servers() {
  const sources = useList("/event-sources?limit=50");
  const webhooks = useList("/webhooks?limit=50");
  return html`<h2>Event sources</h2><${Table} list=${sources} columns=${["Source", "Signs as", "Event", "Posts to"]} row=${(/** @type {any} */ one) => html`<tr><td>${one.name}</td><td>${one.kind}</td><td>${one.event}</td><td><code>${one.path}</code> <${Copy} text=${location.origin + one.path} what="the address" /></td></tr>`} empty=${html`None yet. <a href="/docs#postEventSources">Make one by the API</a>: a server then posts events here, which triggers wait for.`} />
    <h2>Webhooks</h2><${Table} list=${webhooks} columns=${["To", "Told of", "State"]} row=${(/** @type {any} */ one) => html`<tr><td><${IdLink} id=${one.webhookId} text=${one.url} /></td><td>${one.events.join(", ")}</td><td>${stateOf(one)}</td></tr>`} empty="No server is told. Make a webhook: it is told of ends of jobs and of approvals." />
    <${NewByJson} label="Make a webhook" path="/webhooks" onMade=${webhooks.reload} example=${{ url: "https://desk.example.com/told", events: ["job.failed", "approval.requested"] }} />`;
}

/** @param {{ id: string, me: any }} props */
export function Schedules({ id, me }) {
  if (id) return html`<${Schedule} id=${id} />`;
  return html`<${All} me=${me} />`;
}

/** @param {{ me: any }} props */
function All({ me }) {
  const schedules = useList("/schedules?limit=50");
  const triggers = useList("/triggers?limit=50");
  const names = useDefinitionNames();
  return html`<h1>Schedules and events</h1><h2>Schedules</h2>
    <${Table} list=${schedules} columns=${["Schedule", "Times", "Next", "Starts", "State"]} row=${(/** @type {any} */ one) => html`<tr><td><${IdLink} id=${one.scheduleId} text=${one.name} /></td><td>${timesText(one)}</td><td><${Time} at=${one.nextAt} /></td><td>${targetText(one.target, names)}</td><td>${stateOf(one)}</td></tr>`} empty="Nothing is scheduled. Make a schedule: it starts an agent, a workflow or a reading of documents at its times." />
    <${NewByJson} label="Make a schedule" path="/schedules" onMade=${schedules.reload} example=${{ name: "Morning report", cron: "0 9 * * 1-5", timezone: Intl.DateTimeFormat().resolvedOptions().timeZone, target: { agentId: "agt_…" }, input: "What came in yesterday?" }} />
    <h2>Triggers</h2><${Table} list=${triggers} columns=${["Event", "If", "Starts", "State"]} row=${(/** @type {any} */ one) => html`<tr><td><${IdLink} id=${one.triggerId} text=${one.event} /></td><td>${one.when ? html`<code>${one.when}</code>` : "always"}</td><td>${targetText(one.target, names)}</td><td>${stateOf(one)}</td></tr>`} empty="Nothing is triggered. Make a trigger: it starts a workflow or an agent when an event comes in." />
    <${NewByJson} label="Make a trigger" path="/triggers" onMade=${triggers.reload} example=${{ event: "ticket.opened", when: "event.data.priority == 'high'", target: { workflowId: "wf_…" } }} />
    ${me.role === "member" ? html`<p class="hint">Admins manage event sources and webhooks.</p>` : html`<${Servers} />`}`;
}
