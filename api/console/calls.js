import { useState } from "preact/hooks";
import { toQuery } from "./api.js";
import { html } from "./html.js";
import { useList, useLoad } from "./load.js";
import { navigate } from "./router.js";
import { Badge, Choice, duration, Facts, Field, IdLink, money, number, Problem, Table, Text, Time } from "./ui.js";

const outcomes = ["completed", "aborted", "failed"];
const fields = ["status", "kind", "model", "surface", "keyId"];

/** @param {any} one */
const row = (
  one,
) => html`<tr><td><${IdLink} id=${one.logId} text=${html`<${Time} at=${one.createdAt} />`} /></td><td>${one.model}</td><td>${one.surface}</td><td><${Badge} text=${one.status} /></td>
  <td>${number(one.inputTokens)} / ${number(one.outputTokens)}</td><td>${money(one.costUsd)}</td><td>${duration(one.durationMs)}</td></tr>`;

/** The log of model calls. @param {{ query: URLSearchParams }} props */
export function Calls({ query }) {
  const filter = Object.fromEntries(fields.map((name) => [name, query.get(name) ?? ""]));
  const [model, setModel] = useState(filter.model ?? "");
  const [surface, setSurface] = useState(filter.surface ?? "");
  const list = useList(`/ai/logs?${toQuery({ ...filter, limit: 50 })}`);
  /** @param {object} change */
  const choose = (change) => navigate(`/console/calls?${toQuery({ ...filter, ...change })}`);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    choose({ model, surface });
  };
  return html`<h1>Calls</h1><form onSubmit=${submit}>
      <${Choice} label="Outcome" value=${filter.status ?? ""} options=${outcomes} all="all" onChange=${(/** @type {string} */ status) => choose({ status })} />
      <${Choice} label="Kind" value=${filter.kind ?? ""} options=${["chat", "embedding"]} all="all" onChange=${(/** @type {string} */ kind) => choose({ kind })} />
      <${Field} label="Model" value=${model} onInput=${setModel} /><${Field} label="Surface" value=${surface} onInput=${setSurface} />
      <button type="submit">Find</button></form>
    ${filter.keyId ? html`<p class="meta">Of the key <code>${filter.keyId}</code>. <a href="/console/calls">All keys</a></p>` : null}
    <${Table} list=${list} columns=${["When", "Model", "Surface", "Outcome", "Tokens", "Cost", "Took"]} row=${row} empty="No calls were found on this page." />`;
}

/** One call. @param {{ id: string }} props */
export function Call({ id }) {
  const { value, error } = useLoad(`/ai/logs/${id}`);
  if (!value) return html`<h1>Call</h1><${Problem} error=${error} />`;
  const routed = value.requestedModel !== value.model;
  return html`<h1>Call <${Badge} text=${value.status} /></h1>
    <${Facts} facts=${[
      ["Call", html`<code>${id}</code>`],
      ["When", html`<${Time} at=${value.createdAt} />`],
      ["Kind", `${value.kind}${value.stream ? ", streamed" : ""}`],
      ["Asked for", value.requestedModel],
      ["Answered by", `${value.model} (${value.provider})${routed ? ", chosen by routing" : ""}`],
      ["Surface", html`<a href="/console/calls?surface=${encodeURIComponent(value.surface)}">${value.surface}</a>`],
      ["Key", html`<a href="/console/calls?keyId=${value.keyId}"><code>${value.keyId}</code></a>`],
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
