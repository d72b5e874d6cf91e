import { html } from "./html.js";

/** Lines of a text at most for which what is common is looked for. */
const MAX_LINES = 1_500;

/** A definition as lines; texts in it stand on lines of their own where they have several. @param {any} definition */
const toLines = (definition) =>
  JSON.stringify(definition, null, 2)
    .split("\n")
    .flatMap((line) => line.split("\\n"));

/**
 * The lines of two texts in one order, each with what became of it.
 * @param {readonly string[]} before @param {readonly string[]} after
 * @returns {{ text: string, kind: "same" | "added" | "removed" }[]}
 */
function compare(before, after) {
  if (Math.max(before.length, after.length) > MAX_LINES) {
    return [
      ...before.map((text) => ({ text, kind: /** @type {const} */ ("removed") })),
      ...after.map((text) => ({ text, kind: /** @type {const} */ ("added") })),
    ];
  }
  // common[i][j]: how many lines are common to what follows line i of one and line j of the other.
  const common = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  /** @param {number} i @param {number} j */
  const of = (i, j) => common[i]?.[j] ?? 0;
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      const row = /** @type {Uint16Array} */ (common[i]);
      row[j] = before[i] === after[j] ? of(i + 1, j + 1) + 1 : Math.max(of(i + 1, j), of(i, j + 1));
    }
  }
  /** @type {{ text: string, kind: "same" | "added" | "removed" }[]} */
  const lines = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      lines.push({ text: before[i] ?? "", kind: "same" });
      i += 1;
      j += 1;
    } else if (j >= after.length || (i < before.length && of(i + 1, j) >= of(i, j + 1))) {
      lines.push({ text: before[i] ?? "", kind: "removed" });
      i += 1;
    } else {
      lines.push({ text: after[j] ?? "", kind: "added" });
      j += 1;
    }
  }
  return lines;
}

const marks = { same: " ", added: "+", removed: "−" };

/** What has changed between two definitions. @param {{ before: any, after: any, label: string }} props */
export function Diff({ before, after, label }) {
  const lines = compare(toLines(before), toLines(after));
  if (lines.every(({ kind }) => kind === "same"))
    return html`<p class="hint" role="status">There is no difference.</p>`;
  return html`<pre class="diff" tabindex="0" aria-label=${label}>${lines.map(({ text, kind }) => html`<span class=${kind}>${`${marks[kind]} ${text}\n`}</span>`)}</pre>`;
}
