import { toQuery } from "./api.js";
import { Bars } from "./bars.js";
import { html } from "./html.js";
import { useLoad } from "./load.js";
import { navigate } from "./router.js";
import { Choice, duration, Facts, IdLink, money, number, Problem, Table } from "./ui.js";

/** What the calls came to: over time, and by what made them. */

const hourMs = 3_600_000;
const groups = ["model", "key", "surface", "subject"];
const filters = ["model", "surface", "key"];

/** Each day or hour of a report, those that nothing happened in too. @param {any} report */
function timesOf({ from, to, groupBy }) {
  const step = groupBy === "hour" ? hourMs : 24 * hourMs;
  const end = Math.min(Date.parse(to) + 24 * hourMs, Date.now());
  const count = Math.ceil((end - Date.parse(from)) / step);
  const length = groupBy === "hour" ? 13 : 10;
  return Array.from({ length: count }, (_, at) =>
    new Date(Date.parse(from) + at * step).toISOString().slice(0, length),
  );
}

/** @param {any} row @param {string} measure */
const percentiles = (row, measure) =>
  row[measure]
    ? `${duration(row[measure].p50)} / ${duration(row[measure].p95)} / ${duration(row[measure].p99)}`
    : undefined;

/** @param {{ report: any }} props */
function OverTime({ report }) {
  const { data, total, groupBy } = report;
  const byTime = new Map(data.map((/** @type {any} */ row) => [row[groupBy], row]));
  /** @param {(row: any) => number | undefined} read */
  const points = (read) => timesOf(report).map((name) => ({ name, value: read(byTime.get(name) ?? {}) ?? 0 }));
  /** @param {string} label @param {(row: any) => number | undefined} read @param {(value: number) => string} show */
  const bars = (label, read, show) =>
    html`<${Bars} label=${label} unit=${groupBy} points=${points(read)} show=${show} />`;
  return html`<${Facts} facts=${[["Calls", number(total.requests)], ["Failed", number(total.errors)], ["Tokens in, out", `${number(total.inputTokens)}, ${number(total.outputTokens)}`], ["Spend", money(total.costUsd)], ["Latency p50 / p95 / p99", percentiles(total, "latencyMs")], ["First token p50 / p95 / p99", percentiles(total, "firstTokenMs")]]} />
    <div class="grid">${bars("Calls", (row) => row.requests, number)}${bars("Errors", (row) => row.errors, number)}
      ${bars("Tokens out", (row) => row.outputTokens, number)}${bars("Spend", (row) => row.costUsd, money)}</div>`;
}

/** The names that owners gave their keys. @param {any} keys */
const namesOf = (keys) =>
  new Map(
    (keys?.data ?? []).map((/** @type {any} */ key) => [key.keyId, key.name ?? `${key.keyPreview} ${key.subject}`]),
  );

/** @param {{ query: URLSearchParams, me: any }} props */
export function Usage({ query, me }) {
  const by = query.get("by") === "hour" ? "hour" : "day";
  const group = groups.find((name) => name === query.get("group")) ?? "model";
  const filter = Object.fromEntries(filters.map((name) => [name, query.get(name) ?? ""]));
  const report = useLoad(`/usage?${toQuery({ groupBy: by, ...filter })}`);
  const from = report.value?.from;
  const rows = useLoad(from && `/usage?${toQuery({ groupBy: group, from, ...(group === "subject" ? {} : filter) })}`);
  const names = namesOf(useLoad(me.role === "owner" && group === "key" ? "/keys?limit=200" : undefined).value);
  /** @param {object} change */
  const choose = (change) => navigate(`/console/usage?${toQuery({ by, group, ...filter, ...change })}`);
  /** @param {any} row */
  const nameOf = (row) => {
    const name = row[group];
    if (name === null) return "(none named)";
    if (group === "subject") return name;
    const shown = names.get(name) ?? name;
    return html`<a href=${`/console/usage?${toQuery({ by, group, ...filter, [group]: name })}`}>${shown}</a>`;
  };
  /** @param {any} row */
  const toRow = (
    row,
  ) => html`<tr><td class="name">${nameOf(row)}</td><td>${number(row.requests)}</td><td>${number(row.errors)}</td><td>${number(row.inputTokens)} / ${number(row.outputTokens)}</td>
    <td>${money(row.costUsd)}</td><td>${percentiles(row, "latencyMs") ?? ""}</td><td>${percentiles(row, "firstTokenMs") ?? ""}</td></tr>`;
  const list = { items: rows.value?.data ?? [], isLoaded: rows.value !== undefined, next: null, error: rows.error };
  const given = filters.filter((name) => filter[name]);
  return html`<h1>Usage</h1><div class="actions">
      <${Choice} label="Over time" value=${by} options=${["day", "hour"]} onChange=${(/** @type {string} */ value) => choose({ by: value })} />
      <${Choice} label="Group by" value=${group} options=${groups} onChange=${(/** @type {string} */ value) => choose({ group: value })} /></div>
    ${given.map((name) => html`<p class="meta name">Only ${name} <${IdLink} id=${filter[name]} />. <a href=${`/console/usage?${toQuery({ by, group, ...filter, [name]: "" })}`}>All</a></p>`)}
    ${group === "subject" && given.length > 0 ? html`<p class="hint">Subjects are counted for all calls.</p>` : null}
    <${Problem} error=${report.error} />${report.value ? html`<${OverTime} report=${report.value} />` : null}
    <h2>By ${group}</h2><${Table} list=${list} columns=${[group, "Calls", "Errors", "Tokens in / out", "Spend", "Latency p50 / p95 / p99", "First token"]} row=${toRow} empty="No calls." />
    <p class="hint">Days and hours are in UTC. Percentiles are of calls that a provider completed, within 13 %.</p>`;
}
