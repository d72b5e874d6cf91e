import { toQuery } from "./api.js";
import { Chart } from "./chart.js";
import { Download } from "./export.js";
import { useKeyNames } from "./filters.js";
import { html } from "./html.js";
import { useLoad } from "./load.js";
import { daysOf, nameOfRange, ranges, readRange } from "./ranges.js";
import { navigate } from "./router.js";
import { Choice, duration, Facts, Field, inWords, money, number, Problem, Table } from "./ui.js";

/** What the calls came to: over time, and by what made them. */

const groups = ["model", "key", "surface", "subject"];
const filters = ["model", "surface", "key"];

/** What is charted, with how a value is shown. @type {readonly { label: string, read: (part: any) => number[], show: (value: number) => string }[]} */
const measures = [
  { label: "Spend", read: (part) => part.costUsd, show: money },
  { label: "Calls", read: (part) => part.requests, show: number },
  { label: "Errors", read: (part) => part.errors, show: number },
  { label: "Tokens in", read: (part) => part.inputTokens, show: number },
  { label: "Tokens out", read: (part) => part.outputTokens, show: number },
];
const percentileNames = ["p50", "p95", "p99"];

/** @param {readonly number[]} values */
const sumOf = (values) => values.reduce((sum, value) => sum + value, 0);

/** @param {any} row @param {string} measure */
const percentiles = (row, measure) =>
  row[measure]
    ? `${duration(row[measure].p50)} / ${duration(row[measure].p95)} / ${duration(row[measure].p99)}`
    : undefined;

/** How much a sum has changed since the range before. @param {number} now @param {number | undefined} before */
function changeOf(now, before) {
  if (before === undefined) return "";
  if (before === 0) return now === 0 ? " (as before)" : " (0 before)";
  const percent = Math.round((now / before - 1) * 100);
  return ` (${percent > 0 ? "+" : ""}${percent} %)`;
}

/** @param {{ data: any, before: any, nameOf: (name: string) => string }} props */
function Charts({ data, before, nameOf }) {
  const { step, total, series, isWhole } = data;
  const times = data.times.map((/** @type {string} */ time) => Date.parse(time));
  /** The range before as a line: of its times, as many as there are now. @param {(part: any) => any[]} read */
  const earlier = (read) =>
    before ? [{ name: "all, before", values: read(before.total).slice(0, times.length), isBefore: true }] : [];
  const parts = series.length === 0 ? [{ ...total, name: "all" }] : series;
  const charts = measures.map(({ label, read, show }) => {
    const named = parts.map((/** @type {any} */ part) => ({
      name: part.name === null ? "all others" : nameOf(part.name),
      values: read(part),
    }));
    const sum = sumOf(read(total));
    const change = changeOf(sum, before && sumOf(read(before.total)));
    return html`<${Chart} label=${label} times=${times} step=${step} series=${[...named, ...earlier(read)]} isStacked show=${show} sum=${show(sum) + change} />`;
  });
  /** @param {string} label @param {string} measure */
  const latency = (label, measure) => {
    const lines = percentileNames.map((name) => ({ name, values: total[measure][name] }));
    return html`<${Chart} label=${label} times=${times} step=${step} series=${[...lines, ...earlier((part) => part[measure].p95).map((one) => ({ ...one, name: "p95, before" }))]} show=${duration} sum="p50, p95, p99" />`;
  };
  return html`${isWhole ? null : html`<p class="hint" role="status">There were more than 20,000 calls: the earlier minutes are missing.</p>`}
    <div class="grid charts">${charts}${latency("Latency", "latencyMs")}${latency("First token", "firstTokenMs")}</div>`;
}

/** First and last day of a range of one's own. @param {{ from: string, to: string, onChoose: (days: { from: string, to: string }) => void }} props */
function OwnDays({ from, to, onChoose }) {
  /** @param {string} from @param {string} to */
  const choose = (from, to) => from && to && onChoose({ from, to });
  return html`<${Field} label="First day" type="date" value=${from} max=${to} onInput=${(/** @type {string} */ day) => choose(day, to)} />
    <${Field} label="Last day" type="date" value=${to} min=${from} onInput=${(/** @type {string} */ day) => choose(from, day)} />`;
}

/** @param {{ query: URLSearchParams, me: any }} props */
export function Usage({ query, me }) {
  const span = readRange(query);
  const group = groups.find((name) => name === query.get("group")) ?? "model";
  const isCompared = query.get("compare") === "1";
  const filter = Object.fromEntries(filters.map((name) => [name, query.get(name) ?? ""]));
  const by = group === "subject" ? "" : group;
  /** @param {{ from: number, to: number }} range @param {object} more */
  const seriesPath = ({ from, to }, more) =>
    `/usage/series?${toQuery({ from: new Date(from).toISOString(), to: new Date(to).toISOString(), ...filter, ...more })}`;
  const series = useLoad(seriesPath(span, { by }));
  const before = useLoad(isCompared ? seriesPath(span.before, { step: series.value?.step }) : undefined);
  const days = daysOf(span);
  const rows = useLoad(`/usage?${toQuery({ groupBy: group, ...days, ...(group === "subject" ? {} : filter) })}`);
  const names = useKeyNames(me, group === "key" || filter.key !== "");
  /** @param {object} change */
  const addressOf = (change) => {
    const own = span.range === "own" ? { from: span.firstDay, to: span.lastDay } : {};
    const state = { range: span.range, ...own, group, compare: isCompared ? "1" : "", ...filter, ...change };
    return `/console/usage?${toQuery(state)}`;
  };
  /** @param {object} change */
  const choose = (change) => navigate(addressOf(change));
  /** @param {any} row */
  const nameOf = (row) => {
    const name = row[group];
    if (name === null) return "(none named)";
    if (group === "subject") return name;
    return html`<a href=${addressOf({ [group]: name })}>${names.get(name) ?? name}</a>`;
  };
  /** @param {any} row */
  const toRow = (
    row,
  ) => html`<tr><td class="name">${nameOf(row)}</td><td>${number(row.requests)}</td><td>${number(row.errors)}</td><td><span class="whole">${number(row.inputTokens)} / ${number(row.outputTokens)}</span></td>
    <td>${money(row.costUsd)}</td><td><span class="whole">${percentiles(row, "latencyMs") ?? ""}</span></td><td><span class="whole">${percentiles(row, "firstTokenMs") ?? ""}</span></td></tr>`;
  const list = { items: rows.value?.data ?? [], isLoaded: rows.value !== undefined, next: null, error: rows.error };
  const given = filters.filter((name) => filter[name]);
  return html`<h1>Usage</h1><div class="actions">
      <${Choice} label="Range" value=${span.range} options=${ranges} nameOf=${nameOfRange} onChange=${(/** @type {string} */ range) => choose({ range, from: "", to: "" })} />
      ${span.range === "own" ? html`<${OwnDays} from=${span.firstDay} to=${span.lastDay} onChoose=${choose} />` : null}
      <${Choice} label="Group by" value=${group} options=${groups} onChange=${(/** @type {string} */ value) => choose({ group: value })} />
      <label><input type="checkbox" checked=${isCompared} onChange=${(/** @type {any} */ event) => choose({ compare: event.target.checked ? "1" : "" })} /> Compare with the time before</label></div>
    ${given.map((name) => html`<p class="meta name">Only ${name} <b>${names.get(filter[name] ?? "") ?? filter[name]}</b>. <a href=${addressOf({ [name]: "" })}>All</a></p>`)}
    ${group === "subject" ? html`<p class="hint">Subjects are counted by the day, for all calls.</p>` : null}
    <${Problem} error=${series.error ?? before.error} />
    ${series.value ? html`<${Charts} data=${series.value} before=${before.value} nameOf=${(/** @type {string} */ name) => names.get(name) ?? name} />` : html`<p class="busy-note" role="status">Loading …</p>`}
    <h2>By ${group}</h2>${rows.value ? html`<${Facts} facts=${[["Days", days.from === days.to ? days.from : `${days.from} to ${days.to}`], ["Calls", number(rows.value.total.requests)], ["Failed", number(rows.value.total.errors)], ["Spend", money(rows.value.total.costUsd)], ["Latency p50 / p95 / p99", percentiles(rows.value.total, "latencyMs")]]} />` : null}
    <${Table} list=${list} columns=${[inWords(group), "Calls", "Errors", "Tokens in / out", "Spend", "Latency p50 / p95 / p99", "First token"]} row=${toRow} empty=${html`No calls in these days. Ask a model in the <a href="/console/playground">playground</a>.`} />
    <${Download} name=${`Usage by ${group}`} rows=${list.items} />
    <p class="hint">The table counts whole days; days are in UTC. Percentiles are of calls that a provider completed, within 13 %.</p>`;
}
