import { useState } from "preact/hooks";
import { call, post, toQuery } from "./api.js";
import { Citations } from "./citations.js";
import { save } from "./export.js";
import { html } from "./html.js";
import { useAction, useList } from "./load.js";
import { navigate } from "./router.js";
import { Badge, Choice, Field, IdLink, Problem, Table, Text, Time } from "./ui.js";

/** What people say of answers from documents: each is rated here, listed, and taken along as a file to measure by. */

/** How many rated answers a page has. */
const PAGE = 50;
const words = { up: "right", down: "wrong" };

/** Rates an answer from documents. @param {{ logId: string, question: string }} props */
export function Rate({ logId, question }) {
  const [comment, setComment] = useState("");
  const [isKept, setIsKept] = useState(true);
  const [rated, setRated] = useState("");
  const { run, error, isBusy } = useAction();
  /** @param {"up" | "down"} thumb */
  const rate = (thumb) => () =>
    run(
      () =>
        post("/rag/feedback", {
          logId,
          thumb,
          ...(comment.trim() ? { comment } : {}),
          ...(isKept ? { question } : {}),
        }),
      () => setRated(words[thumb]),
    );
  return html`<details><summary>Was it right?</summary><div class="actions"><${Field} label="Why (optional)" value=${comment} onInput=${setComment} maxlength="2000" />
      <button type="button" disabled=${isBusy} onClick=${rate("up")}>Right</button> <button type="button" disabled=${isBusy} onClick=${rate("down")}>Wrong</button>
      <label><input type="checkbox" checked=${isKept} onChange=${(/** @type {any} */ event) => setIsKept(event.target.checked)} /> Keep the question with it</label></div>
    <p class="meta" role="status">${rated === "" ? "" : html`Rated as ${rated}: see <a href="/console/feedback">feedback</a>.`}</p><${Problem} error=${error} /></details>`;
}

/** The answers that were rated as right, for `retrieval-check`. */
function TakeAlong() {
  const { run, error, isBusy } = useAction();
  const start = () =>
    run(async () =>
      save("questions.jsonl", await (await call("GET", "/rag/feedback/export")).text(), "application/x-jsonl"),
    );
  return html`<p class="actions"><button type="button" disabled=${isBusy} onClick=${start}>Save the right ones as questions.jsonl</button>
    <span class="meta">for <code>npm run retrieval-check -- questions.jsonl</code></span></p><${Problem} error=${error} />`;
}

/** @param {any} one */
const row = (
  one,
) => html`<tr><td class="what"><${IdLink} id=${one.logId} text=${one.question ?? "a question that was not kept"} />${one.comment ? html`<br /><span class="meta">${one.comment}</span>` : null}</td>
  <td><${Badge} text=${one.thumb === "up" ? "right" : "wrong"} /></td>
  <td>${one.found ? "" : "not found"}<${Text} value=${one.answer} label="The answer" /><${Citations} citations=${one.citations} /></td>
  <td>${one.model ?? "none"}</td><td>${Math.round(one.coverage * 100)} %</td><td class="name">${one.ratedBy}</td><td><${Time} at=${one.ratedAt} /></td></tr>`;

const empty = html`None has been rated. Ask the documents in the <a href="/console/playground">playground</a>, and say there whether the answer is right; programs do so by <a href="/docs#postRagFeedback">the API</a>.`;

/** Rated answers. @param {{ query: URLSearchParams }} props */
export function Feedback({ query }) {
  const filter = { thumb: query.get("thumb") ?? "", found: query.get("found") ?? "" };
  const list = useList(`/rag/feedback?${toQuery({ ...filter, limit: PAGE })}`, { id: "logId" });
  /** @param {object} change */
  const choose = (change) => navigate(`/console/feedback?${toQuery({ ...filter, ...change })}`);
  return html`<h1>Feedback</h1><p class="hint">What was said of answers from <a href="/console/documents">documents</a>.</p><div class="actions">
      <${Choice} label="Rated as" value=${filter.thumb} options=${["up", "down"]} nameOf=${(/** @type {"up" | "down"} */ thumb) => words[thumb]} all="all" onChange=${(/** @type {string} */ thumb) => choose({ thumb })} />
      <${Choice} label="The documents" value=${filter.found} options=${["true", "false"]} nameOf=${(/** @type {string} */ found) => (found === "true" ? "held an answer" : "held none")} all="all" onChange=${(/** @type {string} */ found) => choose({ found })} /></div>
    <${Table} list=${list} columns=${["Question", "Rated as", "Answer", "Model", "Coverage", "By", "When"]} row=${row} empty=${empty} /><${TakeAlong} />`;
}
