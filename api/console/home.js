import { useCallback } from "preact/hooks";
import { nameOf } from "./approvals.js";
import { Bars } from "./bars.js";
import { html } from "./html.js";
import { useJobChanges, useList, useLoad } from "./load.js";
import { useJobList } from "./runs.js";
import { Badge, Facts, IdLink, inWords, money, number, Problem, Time } from "./ui.js";

/** Sums and health are read again at most so often while jobs end, in ms. */
const EVERY_MS = 15_000;

/** @param {any} job */
const isRunning = ({ status }) => status === "running";
/** @param {any} job */
const isFailed = ({ status }) => status === "failed";

/** @param {{ title: string, list: any, href: string, row: (item: any) => any, none: string }} props */
function Short({ title, list, href, row, none }) {
  const { items, isLoaded, next, error } = list;
  return html`<section class="card"><h2><a href=${href}>${title}</a> ${isLoaded ? html`<span class="meta">${items.length}${next === null ? "" : "+"}</span>` : null}</h2>
    <${Problem} error=${error} />
    ${isLoaded && items.length === 0 ? html`<p class="hint">${none}</p>` : html`<ul class="plain">${items.map(row)}</ul>`}</section>`;
}

/** @param {any} job */
const jobRow = (job) =>
  html`<li><${IdLink} id=${job.jobId} text=${job.title ?? job.kind} /> <span class="meta">${job.input ?? job.kind} <${Time} at=${job.createdAt} /></span>
    ${job.error ? html`<br /><span class="meta">${job.error.message}</span>` : null}</li>`;

/** Each day from one to another, both included. @param {string} from @param {string} to */
function daysOf(from, to) {
  const count = Math.round((Date.parse(to) - Date.parse(from)) / 86_400_000) + 1;
  return Array.from({ length: count }, (_, at) =>
    new Date(Date.parse(from) + at * 86_400_000).toISOString().slice(0, 10),
  );
}

/** @param {{ usage: any }} props */
function Spend({ usage }) {
  const { data, total, budget, from, to } = usage;
  const byDay = new Map(data.map((/** @type {any} */ row) => [row.day, row]));
  /** @param {string} field */
  const points = (field) => daysOf(from, to).map((day) => ({ name: day, value: byDay.get(day)?.[field] ?? 0 }));
  const { leftUsd = 0, limitUsd = 0, month = "" } = budget ?? {};
  const over = `${money(-leftUsd)} over the limit of ${money(limitUsd)} in ${month}`;
  const left = budget && (leftUsd < 0 ? over : `${money(leftUsd)} of ${money(limitUsd)} left in ${month}`);
  return html`<section><h2>The last 30 days</h2>
    <${Facts} facts=${[["Calls", number(total.requests)], ["Failed", number(total.errors)], ["Spend", money(total.costUsd)], ["Budget", left ?? "none is set"], ["Tokens in, out", `${number(total.inputTokens)}, ${number(total.outputTokens)}`]]} />
    ${
      data.length === 0
        ? html`<p class="hint">No model calls yet: try the <a href="/console/playground">playground</a>.</p>`
        : html`<div class="grid four">
      <${Bars} label="Calls" points=${points("requests")} show=${number} />
      <${Bars} label="Errors" points=${points("errors")} show=${number} />
      <${Bars} label="Tokens out" points=${points("outputTokens")} show=${number} />
      <${Bars} label="Spend" points=${points("costUsd")} show=${money} />
    </div>`
    }</section>`;
}

/** @param {{ health: any }} props */
function Health({ health }) {
  if (!health) return null;
  const parts = Object.entries(health.parts);
  return html`<section class="card"><h2><a href="/readyz">Health</a> <${Badge} text=${health.status} /></h2>
    <ul class="plain">${parts.map(([name, part]) => html`<li>${inWords(name)} <${Badge} text=${/** @type {any} */ (part).status} /> <span class="meta">${/** @type {any} */ (part).detail ?? ""}</span></li>`)}</ul></section>`;
}

/** The present state, at a glance. */
export function Home() {
  const usage = useLoad("/usage?groupBy=day", { everyMs: EVERY_MS });
  const byModel = useLoad("/usage?groupBy=model");
  const health = useLoad("/readyz", { everyMs: EVERY_MS });
  const running = useJobList("/jobs?status=running&limit=5", isRunning);
  const failed = useJobList("/jobs?status=failed&limit=5", isFailed);
  const waiting = useList("/workflows/approvals?status=pending&limit=5", { id: "approvalId" });
  useJobChanges(
    useCallback(
      (job) => {
        if (!job || job.finishedAt) for (const each of [usage, health]) each.reload();
        if (!job || job.status === "awaiting" || job.finishedAt) waiting.reload();
      },
      [usage.reload, health.reload, waiting.reload],
    ),
  );
  const models = byModel.value?.data ?? [];
  return html`<h1>Home</h1><${Problem} error=${usage.error} />
    ${usage.value ? html`<${Spend} usage=${usage.value} />` : html`<p class="busy-note" role="status">Loading …</p>`}
    <div class="grid four">
      <${Short} title="Running" list=${running} href="/console/runs?status=running" row=${jobRow} none="Nothing runs." />
      <${Short} title="Failed" list=${failed} href="/console/runs?status=failed" row=${jobRow} none="Nothing has failed." />
      <${Short} title="Approvals waiting" list=${waiting} href="/console/approvals" none="Nothing waits for a decision."
        row=${(/** @type {any} */ one) => html`<li><${IdLink} id=${one.approvalId} text=${html`<span class="line">${one.message?.trim().split("\n", 1)[0] || nameOf(one)}</span>`} /> <br /><span class="meta">${nameOf(one)}, until <${Time} at=${one.expiresAt} /></span></li>`} />
      <${Health} health=${health.value} />
    </div>
    ${
      models.length === 0
        ? null
        : html`<h2>Spend by model</h2><div class="scroll" tabindex="0" role="region" aria-label="Spend by model"><table><thead><tr><th scope="col">Model</th><th scope="col">Calls</th><th scope="col">Errors</th><th scope="col">Tokens</th><th scope="col">Spend</th></tr></thead>
      <tbody>${models.map((/** @type {any} */ row) => html`<tr><td><a href="/console/calls?model=${encodeURIComponent(row.model)}">${row.model}</a></td><td>${number(row.requests)}</td><td>${number(row.errors)}</td><td>${number(row.inputTokens + row.outputTokens)}</td><td>${money(row.costUsd)}</td></tr>`)}</tbody></table></div>`
    }`;
}
