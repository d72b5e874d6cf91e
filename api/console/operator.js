import { useCallback, useEffect, useState } from "preact/hooks";
import { call, OPERATOR_SIGNED_OUT, put, toQuery } from "./api.js";
import { recover } from "./connection.js";
import { html } from "./html.js";
import { useAction, useListAt, useLoad } from "./load.js";
import { Callbacks, NewTenant, Tenant } from "./operator-tenant.js";
import { forgetPlaces } from "./router.js";
import { OverPage } from "./session.js";
import { Badge, bytes, duration, Facts, Field, inWords, money, number, Problem, Table, Time } from "./ui.js";

/** What the operator of the service sees, by a session beside that of a tenant: no content of any tenant. */

const board = "/admin/queues";

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
  return html`<form onSubmit=${submit}>
      <${Field} label="The operator's password (ADMIN_TOKEN)" type="password" value=${password} onInput=${setPassword} autocomplete="off" spellcheck=${false} required />
      <button type="submit" disabled=${isBusy}>Sign in</button>
      <p class="hint">It is exchanged for a session of 12 hours in this browser, and not kept.</p></form>
    <${Problem} error=${error} />`;
}

/** @param {any[]} items */
const whole = (items) => ({ items, isLoaded: true, next: null });
/** A number that is counted no further than this. @param {number} count */
const upTo = (count) => (count >= 10_000 ? `${number(count)}+` : number(count));

/** @param {{ parts: any }} props */
function Parts({ parts }) {
  const { versions, disk, breakers } = parts;
  const open = breakers.filter((/** @type {any} */ one) => one.open > 0);
  /** @param {[string, any]} entry */
  const part = ([name, { status, detail, ms }]) =>
    html`<li>${inWords(name)} <${Badge} text=${status} /> <span class="meta">${detail ?? duration(ms)}</span></li>`;
  return html`<section class="card"><h2>Parts <${Badge} text=${parts.status} /></h2>
    <ul class="plain">${Object.entries(parts.parts).map(part)}</ul>
    <${Facts} facts=${[
      ["Release", versions.switchyard],
      ["Node", versions.node],
      ["Version of the data", versions.data],
      ["Store, Redis", `${parts.store}, ${parts.redis}`],
      ["Free disk", disk && `${bytes(disk.freeBytes)} of ${bytes(disk.totalBytes)}`],
      [
        "Open breakers",
        open.length === 0 ? "none" : open.map((/** @type {any} */ one) => `${one.provider} (${one.open})`).join(", "),
      ],
    ]} /></section>`;
}

/** @param {{ queues: any[], onChanged: () => void }} props */
function Queues({ queues, onChanged }) {
  const { run, error, isBusy } = useAction();
  /** @param {any} one */
  const turn = ({ queue, isPaused }) => {
    const question = isPaused
      ? `Let the queue ${queue} go on?`
      : `Pause the queue ${queue}? Its jobs wait until it goes on.`;
    if (confirm(question))
      run(() => put(`/operator/queues/${encodeURIComponent(queue)}`, { isPaused: !isPaused }), onChanged);
  };
  /** @param {any} one */
  const row = (
    one,
  ) => html`<tr><td><a href=${`${board}/queue/${encodeURIComponent(one.queue)}`} target="_blank">${one.queue}</a>${one.isPaused ? html` <${Badge} text="paused" />` : null}</td><td>${number(one.waiting)}</td><td>${number(one.active)}</td>
    <td>${number(one.delayed)}</td><td>${number(one.failed)}</td><td>${number(one.workers)}</td><td>${one.oldestWaitingMs === 0 ? "" : duration(one.oldestWaitingMs)}</td>
    <td><button type="button" disabled=${isBusy} aria-label=${`${one.isPaused ? "Resume" : "Pause"} ${one.queue}`} onClick=${() => turn(one)}>${one.isPaused ? "Resume" : "Pause"}</button></td></tr>`;
  return html`<section><h2>Queues</h2><${Problem} error=${error} /><p><a href=${board} target="_blank">Bull Board</a></p>
    <${Table} list=${whole(queues)} columns=${["Queue", "Waiting", "Active", "Delayed", "Failed", "Workers", "Oldest waits", ""]} row=${row} empty="Redis does not respond." /></section>`;
}

/** @param {{ list: any }} props */
function Workers({ list }) {
  /** @param {any} one */
  const row = (
    one,
  ) => html`<tr><td><code>${one.workerId}</code></td><td>${one.version}</td><td>${number(one.runningJobs)}</td>
    <td class="long">${one.queues.map((/** @type {any} */ queue) => `${queue.queue} ${queue.concurrency}`).join(", ")}</td><td><${Time} at=${one.startedAt} /></td><td><${Time} at=${one.seenAt} /></td></tr>`;
  return html`<section><h2>Workers</h2><${Table} list=${list} columns=${["Worker", "Release", "Running jobs", "Queues, jobs at once", "Begun", "Seen"]} row=${row} empty="No worker is alive." /></section>`;
}

/** @param {any} tenant @param {boolean} isOpen @param {() => void} onOpen */
const tenantRow = (
  { tenantId, name, organizations, createdAt, month, documents, openJobs, keys },
  isOpen,
  onOpen,
) => html`<tr>
  <td class="name"><b>${name}</b><br /><code>${tenantId}</code></td><td class="name">${organizations.map((/** @type {any} */ one) => one.name).join(", ") || "none"}</td><td><${Time} at=${createdAt} /></td>
  <td>${number(month.requests)}${month.errors > 0 ? html` <span class="meta">${number(month.errors)} failed</span>` : null}</td>
  <td>${money(month.costUsd)}${month.limitUsd === undefined ? null : html` <span class="meta">of ${money(month.limitUsd)}</span>`}</td>
  <td>${upTo(documents)}</td><td>${upTo(openJobs)}</td><td>${upTo(keys)}</td>
  <td><button type="button" aria-expanded=${isOpen ? "true" : "false"} aria-label=${`${isOpen ? "Close" : "Manage"} ${name}`} onClick=${onOpen}>${isOpen ? "Close" : "Manage"}</button></td></tr>`;

/** @param {{ at: string }} props `at`: when it is to be read again */
function Tenants({ at }) {
  const [text, setText] = useState("");
  const [name, setName] = useState("");
  const list = useListAt(`/operator/tenants?${toQuery({ limit: 25, name })}`, at);
  const [opened, setOpened] = useState("");
  const tenant = list.items.find(({ tenantId }) => tenantId === opened);
  /** @param {any} one */
  const row = (one) =>
    tenantRow(one, one.tenantId === opened, () => setOpened(one.tenantId === opened ? "" : one.tenantId));
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    setName(text);
  };
  return html`<section><h2>Tenants</h2><form onSubmit=${submit}><${Field} label="Name, as it is" value=${text} onInput=${setText} /><button type="submit">Find</button></form>
    <${Table} list=${list} columns=${["Tenant", "Org.", "Made", "Calls this month", "Spend", "Docs", "Open jobs", "Keys", ""]} row=${row} empty="There is no such tenant." />
    ${tenant ? html`<${Tenant} key=${opened} tenant=${tenant} at=${at} onChanged=${list.reload} />` : null}<${NewTenant} onMade=${list.reload} /></section>`;
}

/** @param {{ parts: any, onSignOut: () => void }} props */
function Signed({ parts, onSignOut }) {
  const [at, setAt] = useState(() => new Date().toISOString());
  const workers = useListAt("/operator/workers", at);
  const refresh = useCallback(() => {
    if (document.hidden) return;
    parts.reload();
    setAt(new Date().toISOString());
  }, [parts.reload]);
  useEffect(() => {
    document.addEventListener("visibilitychange", refresh); // who comes back to the tab sees what is there now
    return () => document.removeEventListener("visibilitychange", refresh);
  }, [refresh]);
  return html`<h1>Operator</h1><p class="actions"><button type="button" onClick=${refresh}>Refresh</button> <span class="meta" role="status">As of <${Time} at=${at} /></span> <button type="button" onClick=${onSignOut}>Sign out</button></p>
    <${Problem} error=${parts.error} /><${Parts} parts=${parts.value} /><${Queues} queues=${parts.value.queues} onChanged=${parts.reload} /><${Workers} list=${workers} /><${Callbacks} at=${at} /><${Tenants} at=${at} />`;
}

export function Operator() {
  const parts = useLoad("/operator/parts");
  const [reason, setReason] = useState("");
  useEffect(() => {
    /** @param {any} event */
    const end = ({ detail }) => setReason(detail ?? "The session has ended.");
    window.addEventListener(OPERATOR_SIGNED_OUT, end);
    return () => window.removeEventListener(OPERATOR_SIGNED_OUT, end);
  }, []);
  const signOut = () =>
    call("DELETE", "/operator/session").finally(() => {
      forgetPlaces();
      parts.set(undefined);
      parts.reload();
    });
  const signIn = () => {
    setReason("");
    parts.reload();
    recover();
  };
  const form = html`<${SignIn} onSignedIn=${signIn} />`;
  if (parts.value)
    return html`<${Signed} parts=${parts} onSignOut=${signOut} />${reason === "" ? null : html`<${OverPage} reason=${reason}>${form}</${OverPage}>`}`;
  if (!parts.error) return html`<p class="busy-note" role="status">Loading …</p>`;
  return html`<h1>Operator</h1>${parts.error.status === 401 ? form : html`<${Problem} error=${parts.error} />`}`;
}
