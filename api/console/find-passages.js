import { useState } from "preact/hooks";
import { post } from "./api.js";
import { PassageLink, placeOf } from "./citations.js";
import { html } from "./html.js";
import { useAction } from "./load.js";
import { Choice, duration, Field, money, number, Problem } from "./ui.js";

/** The search of documents, with all that a query may ask for. */

/** @typedef {{ text: string, mode: string, topK: string, filter: string, minCoverage: string, hasRewriting: boolean, hasRerank: boolean }} Asked */

/**
 * Conditions on metadata, one a line, as `year=2026`. A value is read as JSON where it is JSON, else as a text.
 * @param {string} text
 */
export function readFilter(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const fields = lines.map((line) => {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`Write the condition “${line}” as name=value.`);
    const value = line.slice(at + 1).trim();
    try {
      return [line.slice(0, at).trim(), JSON.parse(value)];
    } catch {
      return [line.slice(0, at).trim(), value];
    }
  });
  return Object.fromEntries(fields);
}

/** The body of `/rag/query`. @param {Asked} asked @param {{ documentId?: string, collection?: string }} place */
function toBody({ text, mode, topK, filter, minCoverage, hasRewriting, hasRerank }, { documentId, collection }) {
  const conditions = readFilter(filter);
  return {
    query: text,
    mode,
    topK: Number(topK),
    ...(documentId ? { documentIds: [documentId] } : {}),
    ...(collection ? { collection } : {}),
    ...(Object.keys(conditions).length > 0 ? { filter: conditions } : {}),
    ...(minCoverage === "" ? {} : { minCoverage: Number(minCoverage) }),
    ...(hasRewriting ? { rewrite: true } : {}),
    ...(hasRerank ? { rerank: true } : {}),
  };
}

/** @param {number} share */
const percent = (share) => `${Math.round(share * 100)} %`;

/** What became of rewriting and rerank, if they were asked for. @param {{ outcome: any }} props */
function Reports({ outcome: { coverage, rewrite, rerank, warnings = [] } }) {
  return html`<ul class="plain meta">
    <li>The best passages hold ${percent(coverage)} of the question's words.</li>
    ${rewrite && html`<li>${rewrite.rewritten ? `Searched too: ${rewrite.queries.join("; ")}` : `Not rewritten: ${rewrite.reason}`} (${duration(rewrite.ms)}, ${money(rewrite.usd)})</li>`}
    ${rerank && html`<li>${rerank.reranked ? `Reordered by ${rerank.model}` : `Not reordered: ${rerank.reason}`} (${duration(rerank.ms)}, ${money(rerank.usd)})</li>`}
    ${warnings.map((/** @type {string} */ text) => html`<li class="bad">${text}</li>`)}</ul>`;
}

/** @param {{ outcome: any }} props */
function Found({ outcome }) {
  const { results } = outcome;
  return html`<${Reports} outcome=${outcome} />${
    results.length === 0
      ? html`<p class="hint" role="status">Nothing was found.</p>`
      : html`<ol class="passages">${results.map(
          (/** @type {any} */ one) => html`<li class="card"><h3><${PassageLink} one=${one} /></h3>
        <p class="meta">score ${one.score.toFixed(3)}, similarity of meaning ${one.similarity.toFixed(3)}, coverage ${percent(one.coverage)}${placeOf(one) ? `, ${placeOf(one)}` : ""}, chunk ${number(one.index + 1)}</p>
        <p class="thought">${one.content}</p></li>`,
        )}</ol>`
  }`;
}

/** The passages that a query finds, and why. @param {{ documentId?: string, collection?: string }} props */
export function FindPassages({ documentId, collection }) {
  const [asked, setAsked] = useState(
    /** @type {Asked} */ ({
      text: "",
      mode: "hybrid",
      topK: "5",
      filter: "",
      minCoverage: "",
      hasRewriting: false,
      hasRerank: false,
    }),
  );
  const [outcome, setOutcome] = useState(/** @type {any} */ (undefined));
  const { run, error, isBusy } = useAction();
  /** @param {keyof Asked} name */
  const set = (name) => (/** @type {any} */ value) => setAsked((before) => ({ ...before, [name]: value }));
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(async () =>
      setOutcome(
        await post(
          "/rag/query",
          toBody(asked, { ...(documentId ? { documentId } : {}), ...(collection ? { collection } : {}) }),
        ),
      ),
    );
  };
  /** @param {"hasRewriting" | "hasRerank"} name @param {string} label */
  const check = (name, label) =>
    html`<label class="inline"><input type="checkbox" checked=${asked[name]} onChange=${(/** @type {any} */ event) => set(name)(event.target.checked)} /> ${label}</label>`;
  return html`<section><h2>Try a query</h2><form onSubmit=${submit}>
      <${Field} label="Question" value=${asked.text} onInput=${set("text")} required />
      <${Choice} label="Mode" value=${asked.mode} options=${["hybrid", "vector", "lexical"]} onChange=${set("mode")} />
      <${Field} label="Results" type="number" min="1" max="100" value=${asked.topK} onInput=${set("topK")} required />
      <${Field} label="Least coverage, 0 to 1" type="number" min="0" max="1" step="0.05" value=${asked.minCoverage} onInput=${set("minCoverage")} />
      <details class="wide"><summary>Filter, rewriting and rerank</summary>
        <${Field} label="Conditions on metadata, one a line" rows="2" class="code" placeholder="year=2026" value=${asked.filter} onInput=${set("filter")} />
        ${check("hasRewriting", "Rewriting by a model")}${check("hasRerank", "Rerank by a model")}</details>
      <button type="submit" disabled=${isBusy}>Find passages</button></form><${Problem} error=${error} />
    ${outcome === undefined ? null : html`<${Found} outcome=${outcome} />`}</section>`;
}
