import { useState } from "preact/hooks";
import { call } from "./api.js";
import { html } from "./html.js";

/** Lists and charts as files, in CSV and JSON. */

/** Rows of a list that are exported at most. */
const MAX_ROWS = 10_000;
/** How long the browser may take to read what it saves, in ms. */
const SAVE_MS = 60_000;

/** Gives the browser a file to save. @param {string} name @param {string} text @param {string} type */
export function save(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), SAVE_MS);
}

/** The fields of a row, those of objects in it by dotted names. @param {any} row @param {string} [prefix] @returns {[string, any][]} */
function flatten(row, prefix = "") {
  return Object.entries(row).flatMap(([name, value]) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? flatten(value, `${prefix}${name}.`)
      : [[prefix + name, value]],
  );
}

/** A text that a spreadsheet would compute is quoted by an apostrophe. @param {any} value */
function toCell(value) {
  if (value === null || value === undefined) return "";
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** @param {readonly any[]} rows */
export function toCsv(rows) {
  const flat = rows.map((row) => new Map(flatten(row)));
  const names = [...new Set(flat.flatMap((row) => [...row.keys()]))];
  return `${[names.map(toCell), ...flat.map((row) => names.map((name) => toCell(row.get(name))))].map((cells) => cells.join(",")).join("\r\n")}\r\n`;
}

/** @param {string} name @param {readonly any[]} rows @param {"csv" | "json"} format */
function saveRows(name, rows, format) {
  const file = `${name.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.${format}`;
  if (format === "csv") save(file, toCsv(rows), "text/csv");
  else save(file, JSON.stringify(rows, null, 2), "application/json");
}

/** Each page of a list, up to a bound. @param {string} path */
async function readAll(path) {
  /** @type {any[]} */
  const rows = [];
  const [place = "", query = ""] = path.split("?");
  const fields = new URLSearchParams(query);
  for (;;) {
    const response = await call("GET", `${place}?${fields}`);
    const body = await response.json();
    rows.push(...(Array.isArray(body) ? body : body.data));
    const link = /<([^>]*)>/.exec(response.headers.get("link") ?? "")?.[1];
    const next = Array.isArray(body)
      ? link && new URL(link, location.origin).searchParams.get("cursor")
      : body.nextCursor;
    if (!next || rows.length >= MAX_ROWS) return rows.slice(0, MAX_ROWS);
    fields.set("cursor", next);
  }
}

/** Saves rows that are there, or all of the list at a path. @param {{ name: string, rows?: readonly any[], path?: string }} props */
export function Download({ name, rows = [], path }) {
  const [state, setState] = useState({ isBusy: false, problem: "" });
  /** @param {"csv" | "json"} format */
  const start = (format) => async () => {
    if (path === undefined) return saveRows(name, rows, format);
    setState({ isBusy: true, problem: "" });
    try {
      saveRows(name, await readAll(path), format);
      setState({ isBusy: false, problem: "" });
    } catch (error) {
      setState({ isBusy: false, problem: /** @type {Error} */ (error).message });
    }
  };
  return html`<p class="download"><button type="button" class="quiet" disabled=${state.isBusy} aria-label="${name} as CSV" onClick=${start("csv")}>CSV</button>
    <button type="button" class="quiet" disabled=${state.isBusy} aria-label="${name} as JSON" onClick=${start("json")}>JSON</button>
    ${state.isBusy ? html`<span class="busy-note" role="status">Reading …</span>` : null}${state.problem ? html`<span class="problem" role="alert">${state.problem}</span>` : null}</p>`;
}
