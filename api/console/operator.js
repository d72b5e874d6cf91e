import { useEffect, useState } from "preact/hooks";
import { call, toQuery } from "./api.js";
import { html } from "./html.js";
import { useAction, useList, useLoad } from "./load.js";
import { Badge, duration, Facts, Field, money, number, Problem, Table, Time } from "./ui.js";

/** What the operator of the service sees, by a session beside that of a tenant: no content of any tenant. */

const board = "/admin/queues";
/** How often what changes by itself is brought up to date, in ms. */
const REFRESH_MS = 10_000;

/** The password for a header, which takes no other letters. @param {string} password */
function toBasic(password) {
  const bytes = new TextEncoder().encode(`operator:${password}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

/** @param {{ onSignedIn: () => void }} props */
function SignIn({ onSignedIn }) {
  const [password, setPassword] = useState("");
  const { run, error, isBusy } = useAction();
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(async () => {
      await call("POST", "/operator/session", { headers: { authorization: toBasic(password) } });
      setPassword("");
    }, onSignedIn);
  };
  return html`<h1>Operator</h1><form onSubmit=${submit}>
      <${Field} label="The operator's password (ADMIN_TOKEN)" type="password" value=${password} onInput=${setPassword} autocomplete="off" spellcheck=${false} required />
      <button type="submit" disabled=${isBusy}>Sign in</button>
      <p class="hint">It is exchanged for a session of 12 hours in this browser, and not kept.</p></form>
    <${Problem} error=${error} />`;
}

/** @param {any[]} items */
const whole = (items) => ({ items, isLoaded: true, next: null });
/** @param {number} bytes */
const gib = (bytes) => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
/** A number that is counted no further than this. @param {number} count */
const upTo = (count) => (count >= 10_000 ? `${number(count)}+` : number(count));

/** @param {{ parts: any }} props */
function Parts({ parts }) {
  const { versions, disk, breakers } = parts;
  const open = breakers.filter((/** @type {any} */ one) => one.open > 0);
  /** @param {[string, any]} entry */
  const part = ([name, { status, detail, ms }]) =>
    html`<li>${name} <${Badge} text=${status} /> <span class="meta">${detail ?? duration(ms)}</span></li>`;
  return html`<section class="card"><h2>Parts <${Badge} text=${parts.status} /></h2>
    <ul class="plain">${Object.entries(parts.parts).map(part)}</ul>
    <${Facts} facts=${[
      ["Release", versions.switchyard],
      ["Node", versions.node],
      ["Version of the data", versions.data],
      ["Store, Redis", `${parts.store}, ${parts.redis}`],
      ["Free disk", disk && `${gib(disk.freeBytes)} of ${gib(disk.totalBytes)}`],
      [
        "Open breakers",
        open.length === 0 ? "none" : open.map((/** @type {any} */ one) => `${one.provider} (${one.open})`).join(", "),
      ],
    ]} /></section>`;
}

/** @param {{ queues: any[] }} props */
function Queues({ queues }) {
  /** @param {any} one */
  const row = (
    one,
  ) => html`<tr><td><a href=${`${board}/queue/${encodeURIComponent(one.queue)}`} target="_blank">${one.queue}</a>${one.isPaused ? html` <${Badge} text="paused" />` : null}</td><td>${number(one.waiting)}</td><td>${number(one.active)}</td>
    <td>${number(one.delayed)}</td><td>${number(one.failed)}</td><td>${number(one.workers)}</td><td>${one.oldestWaitingMs === 0 ? "" : duration(one.oldestWaitingMs)}</td></tr>`;
  return html`<section><h2>Queues</h2><p><a href=${board} target="_blank">Bull Board</a></p>
    <${Table} list=${whole(queues)} columns=${["Queue", "Waiting", "Active", "Delayed", "Failed", "Workers", "Oldest waits"]} row=${row} empty="Redis does not respond." /></section>`;
}

/** @param {{ list: any }} props */
function Workers({ list }) {
  /** @param {any} one */
  const row = (
    one,
  ) => html`<tr><td><code>${one.workerId}</code></td><td>${one.version}</td><td>${number(one.runningJobs)}</td>
    <td>${one.queues.map((/** @type {any} */ queue) => `${queue.queue} ${queue.concurrency}`).join(", ")}</td><td><${Time} at=${one.startedAt} /></td><td><${Time} at=${one.seenAt} /></td></tr>`;
  return html`<section><h2>Workers</h2><${Table} list=${list} columns=${["Worker", "Release", "Running jobs", "Queues, jobs at once", "Begun", "Seen"]} row=${row} empty="No worker is alive." /></section>`;
}

/** @param {any} tenant */
const tenantRow = ({ tenantId, name, organizations, createdAt, month, documents, openJobs, keys }) => html`<tr>
  <td class="name"><b>${name}</b><br /><code>${tenantId}</code></td><td class="name">${organizations.map((/** @type {any} */ one) => one.name).join(", ")}</td><td><${Time} at=${createdAt} /></td>
  <td>${number(month.requests)}${month.errors > 0 ? html` <span class="meta">${number(month.errors)} failed</span>` : null}</td>
  <td>${money(month.costUsd)}${month.limitUsd === undefined ? null : html` <span class="meta">of ${money(month.limitUsd)}</span>`}</td>
  <td>${upTo(documents)}</td><td>${upTo(openJobs)}</td><td>${upTo(keys)}</td></tr>`;

function Tenants() {
  const [text, setText] = useState("");
  const [name, setName] = useState("");
  const list = useList(`/operator/tenants?${toQuery({ limit: 25, name })}`);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    setName(text);
  };
  return html`<section><h2>Tenants</h2><form onSubmit=${submit}><${Field} label="Name, as it is" value=${text} onInput=${setText} /><button type="submit">Find</button></form>
    <${Table} list=${list} columns=${["Tenant", "Org.", "Made", "Calls this month", "Spend", "Docs", "Open jobs", "Keys"]} row=${tenantRow} empty="There is no such tenant." /></section>`;
}

/** @param {{ parts: any, onSignOut: () => void }} props */
function Signed({ parts, onSignOut }) {
  const workers = useList("/operator/workers");
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.hidden) return;
      parts.reload();
      workers.reload();
    }, REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  return html`<h1>Operator</h1><p class="actions"><button type="button" onClick=${onSignOut}>Sign out</button></p>
    <${Problem} error=${parts.error} /><${Parts} parts=${parts.value} /><${Queues} queues=${parts.value.queues} /><${Workers} list=${workers} /><${Tenants} />`;
}

export function Operator() {
  const parts = useLoad("/operator/parts");
  const signOut = () => call("DELETE", "/operator/session").finally(() => parts.reload());
  if (parts.error && /** @type {any} */ (parts.error).status === 401)
    return html`<${SignIn} onSignedIn=${parts.reload} />`;
  if (!parts.value)
    return parts.error
      ? html`<h1>Operator</h1><${Problem} error=${parts.error} />`
      : html`<p class="busy-note" role="status">Loading …</p>`;
  return html`<${Signed} parts=${parts} onSignOut=${signOut} />`;
}
