import { useState } from "preact/hooks";
import { post, put, remove } from "./api.js";
import { Chart } from "./chart.js";
import { html } from "./html.js";
import { useAction, useListAt, useLoad } from "./load.js";
import { Choice, Code, Field, money, number, Problem, Table, Time } from "./ui.js";

/** What the operator does with tenants. Every write is confirmed. */

/** A key that was just made, which is shown this once. @param {{ text: string | undefined }} props */
export function NewKey({ text }) {
  if (text === undefined) return null;
  return html`<div class="card" role="status"><p>The new key. It is shown only now:</p><${Code} text=${text} what="the key" /></div>`;
}

/** @param {{ onMade: () => void }} props */
export function NewTenant({ onMade }) {
  const [given, setGiven] = useState({ name: "", subject: "" });
  const [made, setMade] = useState(/** @type {string | undefined} */ (undefined));
  const { run, error, isBusy } = useAction();
  /** @param {string} field */
  const set = (field) => (/** @type {string} */ value) => setGiven((before) => ({ ...before, [field]: value }));
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    if (!confirm(`Make the tenant ${given.name}, with a key for ${given.subject}?`)) return;
    run(async () => {
      setMade((await post("/operator/tenants", given)).key);
      onMade();
    });
  };
  return html`<details><summary>Make a tenant</summary><form onSubmit=${submit}><${Field} label="Name of the tenant" value=${given.name} onInput=${set("name")} required />
      <${Field} label="Its first owner" value=${given.subject} onInput=${set("subject")} placeholder="ana@acme.io" required /><button type="submit" disabled=${isBusy}>Make the tenant</button></form>
    <${Problem} error=${error} /><${NewKey} text=${made} /></details>`;
}

/** @param {{ tenant: any, path: string, onChanged: () => void }} props */
function Budget({ tenant, path, onChanged }) {
  const { limitUsd } = tenant.month;
  const [limit, setLimit] = useState(limitUsd === undefined ? "" : String(limitUsd));
  const { run, error, isBusy } = useAction();
  /** @param {number | null} wanted */
  const set = (wanted) => {
    if (
      !confirm(
        wanted === null
          ? `Remove the budget of ${tenant.name}?`
          : `Set the budget of ${tenant.name} to ${money(wanted)} a month?`,
      )
    )
      return;
    run(() => put(`${path}/budget`, { limitUsd: wanted }), onChanged);
  };
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    set(Number(limit));
  };
  return html`<h3>Budget</h3><form onSubmit=${submit}><${Field} label="Limit of a month, in USD" type="number" min="0" step="any" value=${limit} onInput=${setLimit} required />
      <button type="submit" disabled=${isBusy}>Set the budget</button> <button type="button" disabled=${isBusy || limitUsd === undefined} onClick=${() => set(null)}>Remove the budget</button></form><${Problem} error=${error} />`;
}

/** @param {{ tenant: any, path: string, at: string }} props */
function TenantKeys({ tenant, path, at }) {
  const list = useListAt(`${path}/keys?limit=50`, at);
  const [given, setGiven] = useState({ subject: "", role: "owner" });
  const [made, setMade] = useState(/** @type {string | undefined} */ (undefined));
  const { run, error, isBusy } = useAction();
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    if (!confirm(`Make a key of ${tenant.name} for ${given.subject} as ${given.role}?`)) return;
    run(async () => {
      setMade((await post(`${path}/keys`, given)).key);
      list.reload();
    });
  };
  /** @param {any} one */
  const revoke = (one) => () => {
    if (
      !confirm(`Revoke ${one.name ?? one.keyPreview} of ${tenant.name}? Whoever uses it is refused within 5 seconds.`)
    )
      return;
    run(
      () => remove(`${path}/keys/${one.keyId}`),
      () => list.reload(),
    );
  };
  /** @param {any} one */
  const row = (one) =>
    html`<tr><td>${one.name ?? ""} <code>${one.keyPreview}</code></td><td>${one.role}</td><td class="name">${one.subject}</td><td>${one.expiresAt ? html`<${Time} at=${one.expiresAt} />` : "never"}</td><td>${one.lastUsedAt ? html`<${Time} at=${one.lastUsedAt} />` : "never"}</td><td><button type="button" disabled=${isBusy} onClick=${revoke(one)}>Revoke</button></td></tr>`;
  return html`<h3>Keys</h3><${Table} list=${list} columns=${["Key", "Role", "Who", "Ends", "Last used", ""]} row=${row} />
    <form onSubmit=${submit}><${Field} label="Who" value=${given.subject} onInput=${(/** @type {string} */ subject) => setGiven((before) => ({ ...before, subject }))} placeholder="ana@acme.io" required />
      <${Choice} label="Role" value=${given.role} options=${["member", "admin", "owner"]} onChange=${(/** @type {string} */ role) => setGiven((before) => ({ ...before, role }))} /><button type="submit" disabled=${isBusy}>Make a key</button></form>
    <${Problem} error=${error} /><${NewKey} text=${made} />`;
}

/** @param {{ path: string }} props */
function TenantUsage({ path }) {
  const { value, error } = useLoad(`${path}/usage`);
  if (!value) return html`<${Problem} error=${error} />`;
  const times = value.times.map((/** @type {string} */ time) => Date.parse(time));
  /** @param {string} label @param {string} field @param {(value: number) => string} show */
  const chart = (label, field, show) =>
    html`<${Chart} label=${label} times=${times} step="day" series=${[{ name: label, values: value.total[field] }]} isStacked show=${show} />`;
  return html`<h3>30 days</h3><div class="grid charts">${chart("Spend", "costUsd", money)}${chart("Calls", "requests", number)}</div>`;
}

/** One tenant, with what the operator may change; `at`: when it is to be read again. @param {{ tenant: any, at: string, onChanged: () => void }} props */
export function Tenant({ tenant, at, onChanged }) {
  const path = `/operator/tenants/${tenant.tenantId}`;
  return html`<section class="card"><h2 class="name">${tenant.name}</h2><${Budget} key=${tenant.month.limitUsd} tenant=${tenant} path=${path} onChanged=${onChanged} />
    <${TenantKeys} tenant=${tenant} path=${path} at=${at} /><${TenantUsage} key=${at} path=${path} /></section>`;
}

/** Callbacks that have failed, which are tried again. @param {{ at: string }} props */
export function Callbacks({ at }) {
  const list = useListAt("/operator/callbacks", at);
  /** @param {any} one */
  const row = (one) =>
    html`<tr><td><code>${one.callbackId}</code></td><td><code>${one.tenantId}</code></td><td class="name">${one.host}</td><td>${number(one.attempts)}</td><td><${Time} at=${one.createdAt} /></td><td><${Time} at=${one.nextAt} /></td></tr>`;
  return html`<section><h2>Failed callbacks</h2><${Table} list=${list} columns=${["Job or approval", "Tenant", "Host", "Attempts", "Made", "Next attempt"]} row=${row} empty="None has failed." /></section>`;
}
