import { useState } from "preact/hooks";
import { post, put, remove } from "./api.js";
import { html } from "./html.js";
import { useAction, useList, useLoad } from "./load.js";
import { CustomProviders, ProviderKeys } from "./providers.js";
import { bytes, Choice, Code, Copy, Facts, Field, IdLink, inWords, money, number, Problem, Table, Time } from "./ui.js";

/** A key that was just made, which is shown this once. @param {{ text: string | undefined, label: string, what: string }} props */
function Once({ text, label, what }) {
  if (text === undefined) return null;
  return html`<div class="card" role="status"><p>${label}</p><${Code} text=${text} what=${what} /></div>`;
}

/** `runBytes` is shown as an amount. @param {string} name */
const amountOf = (name) => (/bytes$/i.test(name) ? bytes : number);

/** The end of a day in the reader's zone. @param {string} day */
const endOf = (day) => new Date(`${day}T23:59:59`).toISOString();

/** @param {{ me: any }} props */
function ApiKeys({ me }) {
  const list = useList("/keys?limit=50");
  const usage = useLoad("/usage?groupBy=key");
  const spent = new Map((usage.value?.data ?? []).map((/** @type {any} */ row) => [row.key, row.costUsd]));
  const [given, setGiven] = useState({ name: "", subject: "", role: "member", collections: "", lastDay: "" });
  const known = useList("/rag/collections?limit=100");
  const [made, setMade] = useState(/** @type {string | undefined} */ (undefined));
  const { run, error, isBusy } = useAction();
  /** @param {string} field */
  const set = (field) => (/** @type {string} */ value) => setGiven((before) => ({ ...before, [field]: value }));
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    const { name, subject, role, lastDay } = given;
    const collections = given.collections.split(/[\s,]+/).filter((one) => one !== "");
    const body = {
      role,
      ...(name ? { name } : {}),
      ...(subject ? { subject } : {}),
      ...(collections.length > 0 ? { collections } : {}),
      ...(lastDay ? { expiresAt: endOf(lastDay) } : {}),
    };
    run(async () => {
      setMade((await post("/keys", body)).key);
      list.reload();
    });
  };
  /** @param {any} one */
  const revoke = (one) => () => {
    if (!confirm(`Revoke ${one.name ?? one.keyPreview}? Whoever uses it is refused within 5 seconds.`)) return;
    run(
      () => remove(`/keys/${one.keyId}`),
      () => list.reload(),
    );
  };
  /** @param {any} one */
  const row = (
    one,
  ) => html`<tr><td>${one.name ?? ""} <code>${one.keyPreview}</code></td><td>${one.role}</td><td class="name">${one.subject}</td><td>${one.collections?.join(", ") ?? "all"}</td><td>${one.expiresAt ? html`<${Time} at=${one.expiresAt} />` : "never"}</td><td>${one.lastUsedAt ? html`<${Time} at=${one.lastUsedAt} />` : "never"}</td>
    <td>${usage.value ? money(spent.get(one.keyId) ?? 0) : ""}</td><td><a href="/console/calls?keyId=${one.keyId}">calls</a>, <a href="/console/runs?keyId=${one.keyId}">runs</a></td><td><${Copy} text=${one.keyId} what="the id" /> ${one.keyId === me.keyId ? "yours" : html`<button type="button" onClick=${revoke(one)}>Revoke</button>`}</td></tr>`;
  return html`<section><h2>API keys</h2><${Table} list=${list} columns=${["Key", "Role", "Who", "Collections", "Ends", "Last used", "Spend of 30 days", "Made by it", ""]} row=${row} />
    <form onSubmit=${submit}><${Field} label="Name" value=${given.name} onInput=${set("name")} placeholder="laptop" /><${Field} label="Who" value=${given.subject} onInput=${set("subject")} placeholder=${me.subject} />
      <${Choice} label="Role" value=${given.role} options=${["member", "admin", "owner"]} onChange=${set("role")} />
      <${Field} label="Only these collections (optional)" value=${given.collections} onInput=${set("collections")} list="key-collections" placeholder="manuals, faq" /><datalist id="key-collections">${known.items.map(({ name }) => html`<option value=${name}></option>`)}</datalist>
      <${Field} label="Last day (optional)" type="date" value=${given.lastDay} onInput=${set("lastDay")} /><button type="submit" disabled=${isBusy}>Make a key</button></form>
    <${Problem} error=${error} /><${Once} text=${made} label="The new key. It is shown only now:" what="the key" /></section>`;
}

function WidgetKeys() {
  const list = useList("/ai/widget/keys?limit=50");
  const agents = useList("/agents?limit=100");
  const [agentId, setAgentId] = useState("");
  const [origin, setOrigin] = useState("");
  const [names, setNames] = useState("");
  const [budget, setBudget] = useState("");
  const [made, setMade] = useState(/** @type {string | undefined} */ (undefined));
  const [leftOut, setLeftOut] = useState("");
  const { run, error, isBusy } = useAction();
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(async () => {
      const collections = names.split(/[\s,]+/).filter(Boolean);
      const { key, toolsLeftOut } = await post("/ai/widget/key", {
        ...(origin ? { allowedOrigins: [origin] } : {}),
        ...(agentId ? { agentId } : {}),
        ...(collections.length > 0 ? { collections } : {}),
        ...(budget ? { monthlyBudgetUsd: Number(budget) } : {}),
      });
      setLeftOut(toolsLeftOut?.join(", ") ?? "");
      setMade(`<script src="${location.origin}/widget.js" data-key="${key}" data-title="Ask us" async></script>`);
      list.reload();
    });
  };
  /** @param {any} one */
  const revoke = (one) => () =>
    run(
      () => remove("/ai/widget/key", { id: one.id }),
      () => list.reload(),
    );
  /** @param {string | undefined} id */
  const nameOf = (id) => agents.items.find((one) => one.agentId === id)?.name ?? id;
  /** @param {any} one */
  const row = (one) =>
    html`<tr><td><code>${one.keyPreview}</code></td><td>${one.agent_id ? html`<${IdLink} id=${one.agent_id} text=${nameOf(one.agent_id)} />` : "none"}</td><td>${one.searches ? (one.collections?.join(", ") ?? "all that its agent finds") : "nothing"}</td><td>${one.allowedOrigins?.join(", ") ?? "any page"}</td><td>${one.monthlyBudgetUsd === undefined ? "no limit" : money(one.monthlyBudgetUsd)}</td><td><${Time} at=${one.createdAt} /></td><td><a href="/console/calls?keyId=${one.id}">calls</a></td><td><button type="button" onClick=${revoke(one)}>Revoke</button></td></tr>`;
  return html`<section><h2>Widget keys</h2><p class="hint">Publishable keys that only chat, or answer from documents: anybody can read them in a page.</p>
    <${Table} list=${list} columns=${["Key", "Agent", "Answers from", "Pages of", "Budget a month", "Made", "Calls", ""]} row=${row} empty="None yet. Make one to put a chat into a page of yours." />
    <form onSubmit=${submit}><${Choice} label="With an agent, and of its tools the search alone" value=${agentId} options=${agents.items.map(({ agentId: id }) => id)} nameOf=${nameOf} all="none" onChange=${setAgentId} /><${Field} label="Only for pages of this origin (optional)" value=${origin} onInput=${setOrigin} placeholder="https://www.example.com" /><${Field} label="Answers from these collections (optional)" value=${names} onInput=${setNames} placeholder="manuals, prices" /><${Field} label="USD a month (optional)" value=${budget} onInput=${setBudget} type="number" min="0" step="any" /><button type="submit" disabled=${isBusy}>Make a widget key</button></form>
    ${leftOut ? html`<p class="hint">It does not use these tools of its agent: ${leftOut}</p>` : null}
    <${Problem} error=${error} /><${Once} text=${made} label="Put this line into your page. The key is shown only now:" what="the line" /></section>`;
}

/** @param {{ me: any }} props */
function Limits({ me }) {
  const usage = useLoad("/usage?groupBy=day");
  const [limit, setLimit] = useState("");
  const { run, error, isBusy } = useAction();
  if (!usage.value) return html`<${Problem} error=${usage.error} />`;
  const { budget, quotas } = usage.value;
  /** @param {number | null} limitUsd */
  const set = (limitUsd) => () =>
    run(
      () => put("/budget", { limitUsd }),
      () => usage.reload(),
    );
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    set(Number(limit))();
  };
  return html`<section><h2>Budget</h2><${Facts} facts=${
    budget
      ? [
          ["Month", budget.month],
          ["Limit", money(budget.limitUsd)],
          ["Left", money(budget.leftUsd)],
          ["Set aside", money(budget.reservedUsd)],
        ]
      : [["Limit", "none is set"]]
  } />
    ${
      me.role === "owner"
        ? html`<form onSubmit=${submit}><${Field} label="Limit of a month, in USD" type="number" min="0" step="any" value=${limit} onInput=${setLimit} required /><button type="submit" disabled=${isBusy}>Set</button>
      <button type="button" disabled=${isBusy} onClick=${set(null)}>Remove your own</button></form><p class="hint">The operator's limit, if there is one, holds beside yours.</p>`
        : null
    }<${Problem} error=${error} />
    <h2>Quotas</h2><div class="scroll" tabindex="0" role="region" aria-label="Quotas"><table><thead><tr><th scope="col">What</th><th scope="col">Used</th><th scope="col">Of</th></tr></thead><tbody>${Object.entries(
      quotas,
    ).map(
      ([name, quota]) =>
        html`<tr><td>${inWords(name)}</td><td>${amountOf(name)(/** @type {any} */ (quota).used)}</td><td>${amountOf(name)(/** @type {any} */ (quota).limit)}</td></tr>`,
    )}</tbody></table></div></section>`;
}

/** What the tenant may use, and by which keys. @param {{ me: any }} props */
export function Keys({ me }) {
  const isAdmin = me.role !== "member";
  return html`<h1>Keys and limits</h1><${Limits} me=${me} />
    ${me.role === "owner" ? html`<${ApiKeys} me=${me} />` : html`<p class="hint">Owners make and revoke API keys.</p>`}
    ${isAdmin ? html`<${WidgetKeys} /><${ProviderKeys} /><${CustomProviders} />` : html`<p class="hint">Admins manage widget keys and provider keys.</p>`}`;
}
