import { useState } from "preact/hooks";
import { isPassing } from "./api.js";
import { Download } from "./export.js";
import { html } from "./html.js";
import { addressOf } from "./router.js";
import { MAX_FRESH } from "./rows.js";

/** Parts of every screen. */

const ended = new Map(Object.entries({ expired: "stale", cancelled: "stale", rejected: "refused", paused: "stale" }));
const good = ["completed", "delivered", "started", "approved", "indexed", "ready", "up", "intact", "right"];
const busy = [
  "starting",
  "waiting",
  "skipped",
  "queued",
  "running",
  "awaiting",
  "awaiting_approval",
  "pending",
  "retrying",
  "processing",
  "stopped",
];

/** @param {{ text: string }} props */
export function Badge({ text }) {
  const kind = ended.get(text) ?? (good.includes(text) ? "good" : busy.includes(text) ? "busy" : "bad");
  return html`<span class="badge ${kind}">${text.replace("_", " ")}</span>`;
}

/** A time in the reader's time zone. @param {{ at: string | undefined }} props */
export function Time({ at }) {
  if (at === undefined) return null;
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  return html`<time dateTime=${at} title=${date.toLocaleString()}>${isToday ? date.toLocaleTimeString() : date.toLocaleString()}</time>`;
}

/** An id, with a link to its page where it has one. @param {{ id: string | undefined, text?: string }} props */
export function IdLink({ id, text }) {
  if (id === undefined) return null;
  const address = addressOf(id);
  const shown = text ?? html`<code>${id}</code>`;
  return address === undefined ? shown : html`<a href=${address}>${shown}</a>`;
}

/** @param {number | undefined} usd @param {number} [step] the least difference that must show */
export const money = (usd, step = usd) =>
  usd === undefined
    ? ""
    : usd === 0
      ? "$0"
      : usd < 0.0001
        ? "< $0.0001"
        : `$${usd.toFixed(Number(step) < 0.01 ? 4 : 2)}`;

/** A name of the API as a label: `maxIterations` is Max iterations, `ip_address` is IP address. @param {string} name */
export const inWords = (name) =>
  name
    .replaceAll("_", " ")
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .replace(/ (ms|usd)$/, (_, unit) => (unit === "ms" ? ", in ms" : ", in USD"))
    .replace(/^ms$/, "milliseconds")
    .replace(/^(?:(?:ssn|iban|ip)\b|.)/, (first) => first.toUpperCase());

/** A number stays on the line of its unit. */
const NBSP = "\u00a0";

/** @param {number | undefined} ms */
export const duration = (ms) =>
  ms === undefined
    ? ""
    : ms < 1000
      ? `${Math.round(ms)}${NBSP}ms`
      : ms < 10_000
        ? `${(ms / 1000).toFixed(1)}${NBSP}s`
        : ms < 120_000
          ? `${Math.round(ms / 1000)}${NBSP}s`
          : ms < 2 * 3_600_000
            ? `${Math.round(ms / 60_000)}${NBSP}min`
            : ms < 48 * 3_600_000
              ? `${Math.round(ms / 3_600_000)}${NBSP}h`
              : `${Math.round(ms / 86_400_000)}${NBSP}days`;

/** Time between two moments, in ms; 0 where one is not known. @param {string | undefined} from @param {string | undefined} to */
export const span = (from, to) => (from && to ? Math.max(Date.parse(to) - Date.parse(from), 0) : 0);

/** @param {string | undefined} from @param {string | undefined} to */
export const between = (from, to) => (from && to ? duration(span(from, to)) : "");

/** @param {number | undefined} count */
export const number = (count) => (count ?? 0).toLocaleString();

const units = ["bytes", "kB", "MB", "GB", "TB"];

/** @param {number} count */
export function bytes(count) {
  const at = Math.min(Math.floor(Math.log10(Math.max(count, 1)) / 3), units.length - 1);
  const value = count / 1_000 ** at;
  return `${at === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)}${NBSP}${units[at]}`;
}

/** Names with values; what has no value is left out. @param {{ facts: readonly (readonly [string, any])[] }} props */
export function Facts({ facts }) {
  const known = facts.filter(([, value]) => value !== undefined && value !== "" && value !== null && value !== false);
  return html`<dl class="facts">${known.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/** @param {{ error: any }} props */
export function Problem({ error }) {
  if (!error) return null;
  const where = error.param ? html` <code>${error.param}</code>` : null;
  return html`<p class="problem" role="alert">${error.message}${where}</p>`;
}

/** How long a button says that it has copied, in ms. */
const COPIED_MS = 2_000;

/** A button that copies a text. @param {{ text: string, what: string }} props */
export function Copy({ text, what }) {
  const [note, setNote] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setNote("copied");
    } catch {
      setNote("select and copy it by hand"); // the browser allows it to pages of https and of this machine alone
    }
    setTimeout(() => setNote(""), COPIED_MS);
  };
  return html`<button type="button" class="copy" aria-label="Copy ${what}" onClick=${copy}>copy</button><span class="meta" role="status">${note === "" ? "" : ` ${note}`}</span>`;
}

/** A command, or a key, that can be copied. @param {{ text: string, what: string }} props */
export const Code = ({ text, what }) =>
  html`<div class="block"><pre tabindex="0">${text}</pre><${Copy} text=${text} what=${what} /></div>`;

/** An id that can be copied. @param {{ id: string }} props */
export const Id = ({ id }) => html`<code>${id}</code> <${Copy} text=${id} what="the id" />`;

/** A text, or a value as JSON; a long one is collapsed. @param {{ value: any, label: string }} props */
export function Text({ value, label }) {
  if (value === undefined || value === "") return null;
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const block = html`<pre tabindex="0">${text}</pre>`;
  if (text.length <= 600) return block;
  return html`<details><summary>${label}, ${number(text.length)} characters</summary>${block}</details>`;
}

/** A list's path as a name for what is exported of it, as `rag documents`. @param {string} path */
const nameOfList = (path) => path.replace(/\?.*/, "").replaceAll("/", " ").trim();
/** Why what is shown may be old, with a button that tries again; it is tried by itself too. @param {{ list: any }} props */
function Stale({ list }) {
  const { error, retry } = list;
  if (!error) return null;
  const button = retry && html`<button type="button" onClick=${retry}>Try again</button>`;
  if (!list.isLoaded || !isPassing(error))
    return html`<${Problem} error=${error} />${isPassing(error) ? button : null}`;
  return html`<p class="actions stale" role="status">This may be old: ${error.message} It is tried again. ${button}</p>`;
}

/** A row with its key, so that it stays the same element while others come and go. @param {any} element @param {unknown} key */
function keyed(element, key) {
  element.key = key;
  return element;
}

/**
 * A list as a table, with a button for what follows.
 * @param {{ list: any, columns: readonly string[], row: (item: any) => any, empty?: any }} props
 */
export function Table({ list, columns, row, empty = "There are none." }) {
  if (list.error && !list.isLoaded) return html`<${Stale} list=${list} />`;
  if (!list.isLoaded) return html`<p class="busy-note" role="status">Loading …</p>`;
  const isEmpty = list.items.length === 0;
  const count = list.fresh?.length ?? 0;
  return html`<${Stale} list=${list} />
    ${count > 0 ? html`<p class="fresh" role="status"><button type="button" onClick=${list.showNew}>${count}${count >= MAX_FRESH ? "+" : ""} new</button></p>` : null}
    ${isEmpty && list.next === null ? html`<p class="hint" role="status">${empty}</p>` : null}
    ${
      isEmpty
        ? null
        : html`<div class="scroll" tabindex="0" role="region" aria-label="List"><table>
      <thead><tr>${columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${list.items.map((/** @type {any} */ item) => keyed(row(item), list.id && item[list.id]))}</tbody>
    </table></div>`
    }
    ${list.next === null ? null : html`<p class="actions">${isEmpty ? html`<span class="hint" role="status">Nothing among the newest.</span>` : null}<button type="button" onClick=${list.more}>${isEmpty ? "Look further back" : "Older"}</button></p>`}
    ${list.path === undefined || isEmpty ? null : html`<${Download} name=${nameOfList(list.path)} path=${list.path} />`}`;
}

/**
 * A choice among values. `all`: what no choice is called; `nameOf`: what a value is called.
 * @param {{ label: string, value: string, options: readonly string[], all?: string, nameOf?: (option: string) => string, onChange: (value: string) => void }} props
 */
export function Choice({ label, value, options, all, nameOf = (option) => option.replace("_", " "), onChange }) {
  /** @param {any} event */
  const choose = (event) => onChange(event.target.value);
  return html`<label class="field">${label}
    <select value=${value} onChange=${choose}>
      ${all === undefined ? null : html`<option value="">${all}</option>`}
      ${options.map((option) => html`<option value=${option} selected=${option === value}>${nameOf(option)}</option>`)}
    </select></label>`;
}

/**
 * @param {{ label: string, value: string, onInput: (value: string) => void, [attribute: string]: any }} props
 */
export function Field({ label, value, onInput, ...attributes }) {
  /** @param {any} event */
  const change = (event) => onInput(event.target.value);
  const Element = attributes.rows === undefined ? "input" : "textarea";
  return html`<label class="field">${label}<${Element} value=${value} onInput=${change} ...${attributes} /></label>`;
}
