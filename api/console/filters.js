import { useState } from "preact/hooks";
import { toQuery } from "./api.js";
import { html } from "./html.js";
import { useList, useLoad } from "./load.js";
import { navigate } from "./router.js";
import { Choice, Field, IdLink } from "./ui.js";

/** Search, time range and filters of a list, all in the address. */

const HOUR_MS = 3_600_000;
/** Ranges by name, and how long each is, in ms. @type {Record<string, number>} */
const ranges = { hour: HOUR_MS, day: 24 * HOUR_MS, week: 168 * HOUR_MS, month: 720 * HOUR_MS };
const names = {
  hour: "last hour",
  day: "last 24 hours",
  week: "last 7 days",
  month: "last 30 days",
  own: "from … to …",
};

/** What a list is asked for: the fields of the address that are filters of it. @param {URLSearchParams} query @param {readonly string[]} fields */
export function filterOf(query, fields) {
  return Object.fromEntries([...fields, "q", "range", "since", "until"].map((name) => [name, query.get(name) ?? ""]));
}

/** The start of a range, on a full minute, so that the same address is the same list for a while. @param {string} range */
const startOf = (range) => new Date(Math.floor((Date.now() - (ranges[range] ?? 0)) / 60_000) * 60_000).toISOString();

/** A time of the address, which is local, for the API. @param {string} text */
const toIso = (text) => (Number.isNaN(Date.parse(text)) ? "" : new Date(text).toISOString());

/** When what the list has began: the times of the API. @param {Record<string, string>} filter @returns {{ from?: string, to?: string }} */
export function timesOf({ range = "", since = "", until = "" }) {
  if (range in ranges) return { from: startOf(range) };
  return range === "own" ? { from: toIso(since), to: toIso(until) } : {};
}

/** The query of the API. @param {Record<string, string>} filter */
export function toListQuery(filter) {
  const { range: _range, since: _since, until: _until, ...fields } = filter;
  return toQuery({ ...fields, ...timesOf(filter), limit: 50 });
}

/**
 * @param {{ path: string, filter: Record<string, string>, children?: any }} props `children`: further choices; `path`: of the page
 */
export function Filters({ path, filter, children }) {
  const [q, setQ] = useState(filter.q ?? "");
  const [since, setSince] = useState(filter.since ?? "");
  const [until, setUntil] = useState(filter.until ?? "");
  /** @param {object} change */
  const choose = (change) => navigate(`${path}?${toQuery({ ...filter, ...change })}`);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    choose(filter.range === "own" ? { q, since, until } : { q });
  };
  /** @param {any} event */
  const pick = ({ target: { value } }) =>
    choose({ q, range: value, ...(value === "own" ? {} : { since: "", until: "" }) });
  const isFiltered = location.search !== ""; // what the page filters by itself is no choice of the reader
  return html`<form class="filters" onSubmit=${submit}>
    <${Field} label="Search" type="search" maxlength="200" value=${q} onInput=${setQ} />
    <label class="field">Time <select onChange=${pick} value=${filter.range}><option value="">all</option>
      ${Object.entries(names).map(([name, shown]) => html`<option value=${name} selected=${name === filter.range}>${shown}</option>`)}</select></label>
    ${filter.range === "own" ? html`<${Field} label="From" type="datetime-local" value=${since} onInput=${setSince} /><${Field} label="To" type="datetime-local" value=${until} onInput=${setUntil} />` : null}
    ${children}<button type="submit">Find</button>${isFiltered ? html`<a href=${path}>All</a>` : null}</form>`;
}

/** The names of agents and workflows by their ids. @returns {Map<string, string>} */
export function useDefinitionNames() {
  const agents = useList("/agents?limit=100").items;
  const workflows = useList("/workflows?limit=100").items;
  return new Map([...agents, ...workflows].map(({ agentId, workflowId, name }) => [agentId ?? workflowId, name]));
}

/** The names of the tenant's keys by their ids, for who may see them. @param {any} me @param {boolean} [isWanted] @returns {Map<string, string>} */
export function useKeyNames(me, isWanted = true) {
  const keys = useLoad(me?.role === "owner" && isWanted ? "/keys?limit=200" : undefined).value?.data ?? [];
  return new Map(keys.map((/** @type {any} */ key) => [key.keyId, key.name ?? `${key.keyPreview} ${key.subject}`]));
}

/** Whose runs and calls a list has: those of an agent or of a workflow. @param {{ filter: Record<string, string>, onChoose: (change: object) => void }} props */
export function DefinitionChoice({ filter, onChoose }) {
  const nameOf = useDefinitionNames();
  const value = filter.agentId || filter.workflowId || "";
  const options = [...new Set([...nameOf.keys(), ...(value ? [value] : [])])];
  /** @param {string} id */
  const choose = (id) =>
    onChoose({ agentId: id.startsWith("agt_") ? id : "", workflowId: id.startsWith("wf_") ? id : "" });
  return html`<${Choice} label="Agent or workflow" value=${value} options=${options} nameOf=${(/** @type {string} */ id) => nameOf.get(id) ?? id} all="all" onChange=${choose} />`;
}

/** The filters of the address that have no choice of their own, each with a link that takes it away. @param {{ path: string, filter: Record<string, string>, labels: Record<string, string>, names?: Map<string, string> }} props */
export function Given({ path, filter, labels, names: nameOf = new Map() }) {
  const given = Object.entries(labels).filter(([name]) => filter[name]);
  return given.map(([name, label]) => {
    const value = filter[name] ?? "";
    return html`<p class="meta name">${label} <b><${IdLink} id=${value} text=${nameOf.get(value) ?? value} /></b>. <a href=${`${path}?${toQuery({ ...filter, [name]: "" })}`}>Any</a></p>`;
  });
}
