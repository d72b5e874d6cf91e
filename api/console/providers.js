import { useState } from "preact/hooks";
import { put, remove } from "./api.js";
import { html } from "./html.js";
import { useAction, useList } from "./load.js";
import { Choice, Field, Problem, Table, Time } from "./ui.js";

/** Keys of the tenant's own for providers of the platform. */
export function ProviderKeys() {
  const list = useList("/ai/providers");
  const [given, setGiven] = useState({ provider: "openai", key: "" });
  const { run, error, isBusy } = useAction();
  const providers = list.items.map(({ provider }) => provider);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(async () => {
      await put(`/ai/providers/${given.provider}/key`, { key: given.key });
      setGiven((before) => ({ ...before, key: "" }));
      list.reload();
    });
  };
  /** @param {any} one */
  const drop = (one) => () =>
    run(
      () => remove(`/ai/providers/${one.provider}/key`),
      () => list.reload(),
    );
  /** @param {any} one */
  const row = (one) =>
    html`<tr><td>${one.provider}</td><td>${one.configured ? html`<code>${one.keyPreview ?? "set"}</code>` : "none of your own"}</td><td>${one.updatedAt ? html`<${Time} at=${one.updatedAt} />` : "never"}</td><td>${one.configured ? html`<button type="button" onClick=${drop(one)}>Remove</button>` : null}</td></tr>`;
  return html`<section><h2>Provider keys</h2><${Table} list=${list} columns=${["Provider", "Your key", "Set", ""]} row=${row} />
    <form onSubmit=${submit}><${Choice} label="Provider" value=${given.provider} options=${providers} onChange=${(/** @type {string} */ provider) => setGiven((before) => ({ ...before, provider }))} />
      <${Field} label="Key" type="password" autocomplete="off" value=${given.key} onInput=${(/** @type {string} */ key) => setGiven((before) => ({ ...before, key }))} required /><button type="submit" disabled=${isBusy}>Set</button></form><${Problem} error=${error} /></section>`;
}

/** What a new custom provider is made from; its key has a field of its own. */
const example = {
  baseUrl: "https://desk.example.com/v1",
  wire: "openai-chat",
  models: [{ id: "large", type: "chat", contextWindow: 128_000, inputUsdPerMTok: 2, outputUsdPerMTok: 6 }],
};

/** Providers that the tenant brings itself, with their models and prices. */
export function CustomProviders() {
  const list = useList("/ai/providers/custom");
  const [given, setGiven] = useState({ name: "", key: "", settings: JSON.stringify(example, null, 2) });
  const { run, error, isBusy } = useAction();
  /** @param {string} field */
  const set = (field) => (/** @type {string} */ value) => setGiven((before) => ({ ...before, [field]: value }));
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(async () => {
      const body = { ...JSON.parse(given.settings), key: given.key };
      await put(`/ai/providers/custom/${encodeURIComponent(given.name)}`, body);
      setGiven((before) => ({ ...before, name: "", key: "" }));
      list.reload();
    });
  };
  /** @param {any} one */
  const edit =
    ({ name, baseUrl, wire, models }) =>
    () =>
      setGiven({ name, key: "", settings: JSON.stringify({ baseUrl, wire, models }, null, 2) });
  /** @param {any} one */
  const drop = (one) => () => {
    if (!confirm(`Remove ${one.name} with its key?`)) return;
    run(
      () => remove(`/ai/providers/custom/${one.name}`),
      () => list.reload(),
    );
  };
  /** @param {any} one */
  const row = (one) =>
    html`<tr><td>${one.name}</td><td>${one.baseUrl}</td><td>${one.models.map((/** @type {any} */ { id }) => `${one.name}/${id}`).join(", ")}</td><td><code>${one.keyPreview}</code></td>
      <td><button type="button" onClick=${edit(one)}>Edit</button> <button type="button" onClick=${drop(one)}>Remove</button></td></tr>`;
  return html`<section><h2>Custom providers</h2><p class="hint">Any server of one of the <a href="/docs#putAiProvidersCustomByName">wire formats</a>, at your own prices. Only your tenant sees it.</p>
    <${Table} list=${list} columns=${["Name", "Server", "Models", "Key", ""]} row=${row} empty="None yet. Set one to use models of a server of your own." />
    <form onSubmit=${submit}><${Field} label="Name of the provider" value=${given.name} onInput=${set("name")} placeholder="desk" required /><${Field} label="Its key" type="password" autocomplete="off" value=${given.key} onInput=${set("key")} required />
      <${Field} label="Server and models" rows="8" class="code" spellcheck=${false} value=${given.settings} onInput=${set("settings")} /><button type="submit" disabled=${isBusy}>Set the provider</button></form><${Problem} error=${error} /></section>`;
}
