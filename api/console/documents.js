import { useCallback, useState } from "preact/hooks";
import { AddDocuments } from "./add-documents.js";
import { call, post, remove, toQuery } from "./api.js";
import { placeOf } from "./citations.js";
import { FindPassages } from "./find-passages.js";
import { html } from "./html.js";
import { useAction, useJobChanges, useList, useLoad } from "./load.js";
import { navigate } from "./router.js";
import { Badge, Choice, Facts, Field, Id, IdLink, number, Problem, Table, Text, Time } from "./ui.js";

const states = ["indexed", "queued", "processing", "failed"];

/** Where a document is from. @param {{ name?: string, url?: string }} source */
const nameOf = ({ name, url }) => name ?? url ?? "a text";

/** What the document does not hold of its source. @param {{ warnings: any[] | undefined }} props */
function Warnings({ warnings = [] }) {
  if (warnings.length === 0) return null;
  return html`<section><h2>Warnings: ${number(warnings.length)}</h2><ul>${warnings.map(
    ({ code, message, pages }) =>
      html`<li><${Badge} text=${code.replaceAll("_", " ")} /> ${message}${pages ? html` <span class="meta">${pages.length === 1 ? "page" : "pages"} ${pages.join(", ")}</span>` : null}</li>`,
  )}</ul></section>`;
}

/** The collections, each with what is in it, as places to look at. @param {{ collections: readonly any[], chosen: string, addressOf: (name: string) => string }} props */
function Collections({ collections, chosen, addressOf }) {
  if (collections.length < 2) return null;
  /** @param {any} one */
  const item = ({ name, documents, unfinished }) =>
    html`<a href=${addressOf(name)} aria-current=${chosen === name ? "true" : undefined}>${name} <span class="meta">${number(documents)}${unfinished > 0 ? `, ${number(unfinished)} not indexed` : ""}</span></a>`;
  return html`<nav class="tabs" aria-label="Collections"><a href=${addressOf("")} aria-current=${chosen === "" ? "true" : undefined}>All collections</a>${collections.map(item)}</nav>`;
}

/** The address of the runs on documents of a collection; of all if there is none. @param {string} collection @param {object} [more] */
const runsOf = (collection, more = {}) => `/console/runs?${toQuery({ kind: "ingestion", ...more, collection })}`;

/** Documents that could not be indexed, wherever the reader looks. @param {{ failed: any, href: string, collection: string }} props */
function Failed({ failed, href, collection }) {
  if (failed.items.length === 0) return null;
  return html`<section class="card"><h2><a href=${href}>Failed documents</a> <span class="meta">${number(failed.items.length)}${failed.next === null ? "" : "+"}</span></h2>
    <ul class="plain">${failed.items.map((/** @type {any} */ one) => html`<li><${IdLink} id=${one.documentId} text=${one.title} /> <span class="bad">${one.error?.message}</span></li>`)}</ul><p class="meta">Each has Retry on its page; all of them are retried in <a href=${runsOf(collection, { status: "failed" })}>Runs</a>.</p></section>`;
}

const empty =
  "There are none here. Drop files above, or add a page by its URL or a text: what is indexed, questions find.";

/** @param {{ query: URLSearchParams }} props */
export function Documents({ query }) {
  const filter = {
    status: query.get("status") ?? "indexed",
    title: query.get("title") ?? "",
    collection: query.get("collection") ?? "",
  };
  const [title, setTitle] = useState(filter.title);
  const list = useList(`/rag/documents?${toQuery({ ...filter, limit: 50 })}`, { id: "documentId" });
  const failed = useList(`/rag/documents?${toQuery({ status: "failed", collection: filter.collection, limit: 5 })}`, {
    id: "documentId",
  });
  const collections = useList("/rag/collections?limit=100");
  const { reload } = list;
  const [reloadFailed, reloadCollections] = [failed.reload, collections.reload];
  const reloadAll = useCallback(() => {
    for (const again of [reload, reloadFailed, reloadCollections]) again();
  }, [reload, reloadFailed, reloadCollections]);
  useJobChanges(useCallback((job) => (job && job.kind !== "ingestion" ? undefined : reloadAll()), [reloadAll]));
  /** @param {object} change */
  const addressOf = (change) => `/console/documents?${toQuery({ ...filter, ...change })}`;
  /** @param {object} change */
  const choose = (change) => navigate(addressOf(change));
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    choose({ title });
  };
  /** @param {any} one */
  const row = (
    one,
  ) => html`<tr><td><${IdLink} id=${one.documentId} text=${one.title} />${one.error ? html`<br /><span class="bad">${one.error.message}</span>` : null}
      ${(one.warnings ?? []).slice(0, 1).map((/** @type {any} */ { message }) => html`<br /><span class="bad">${message}${one.warnings.length > 1 ? ` (and ${number(one.warnings.length - 1)} more)` : ""}</span>`)}</td>
    <td><${Badge} text=${one.status} /></td><td>${one.collection}</td><td>${number(one.chunks)}</td><td class="name">${nameOf(one.source)}</td><td><${Time} at=${one.updatedAt} /></td></tr>`;
  return html`<h1>Documents</h1>
    <${Collections} collections=${collections.items} chosen=${filter.collection} addressOf=${(/** @type {string} */ collection) => addressOf({ collection })} />
    <${AddDocuments} key=${filter.collection} collection=${filter.collection} names=${collections.items.map(({ name }) => name)} onAccepted=${reloadAll} />
    ${filter.status === "failed" ? null : html`<${Failed} failed=${failed} href=${addressOf({ status: "failed" })} collection=${filter.collection} />`}
    <form class="filters" onSubmit=${submit}><${Choice} label="Status" value=${filter.status} options=${states} onChange=${(/** @type {string} */ status) => choose({ status })} />
      <${Field} label="Title holds" value=${title} onInput=${setTitle} /><button type="submit">Find</button></form>
    <${Table} list=${list} columns=${["Title", "Status", "Collection", "Chunks", "Source", "Changed"]} row=${row} empty=${empty} /><p><a href=${runsOf(filter.collection)}>${filter.collection === "" ? "Runs on documents" : `Runs on documents of ${filter.collection}`}</a>, <a href="/console/feedback">feedback on answers</a></p><${FindPassages} collection=${filter.collection} />`;
}

/**
 * Gives a document a new text: what its URL has now, or a file. Queries see the earlier one until the new one is indexed.
 * @param {{ document: any, onReplaced: () => void }} props
 */
function Replace({ document: { documentId, source }, onReplaced }) {
  const { run, error, isBusy } = useAction();
  const headers = { prefer: "wait=60" }; // for the reason, if it fails
  const fetchAgain = () => run(() => call("POST", `/rag/documents/${documentId}/refresh`, { headers }), onReplaced);
  /** @param {any} event */
  const pick = (event) => {
    const [file] = event.target.files;
    event.target.value = ""; // the same file may be chosen again
    if (!file) return;
    const form = new FormData();
    form.set("documentId", documentId);
    form.set("file", file);
    run(() => call("POST", "/rag/ingest", { form, headers }), onReplaced);
  };
  const control = source.url
    ? html`<button type="button" disabled=${isBusy} onClick=${fetchAgain}>Fetch it again</button>`
    : html`<label class="button">Replace by a file <input type="file" disabled=${isBusy} onChange=${pick} /></label>`;
  return html`${control}${isBusy ? html`<span class="busy-note" role="status">Working …</span>` : null}<${Problem} error=${error} />`;
}

/** Reads the source of a document that has failed again. @param {{ jobId: string, onStarted: () => void }} props */
function Retry({ jobId, onStarted }) {
  const { run, error, isBusy } = useAction();
  const retry = () => run(() => post(`/jobs/${jobId}/retry`, undefined), onStarted);
  return html`<button type="button" disabled=${isBusy} onClick=${retry}>Retry</button><${Problem} error=${error} />`;
}

/** @param {{ id: string, query: URLSearchParams }} props `chunk` in the query: what the list of chunks begins with */
export function Document({ id, query }) {
  const document = useLoad(`/rag/documents/${id}`);
  const chunkId = query.get("chunk") ?? "";
  const chunks = useList(`/rag/documents/${id}/chunks?${toQuery({ limit: 20, chunkId })}`);
  const { run, error } = useAction();
  const { reload } = document;
  const { reload: reloadChunks } = chunks;
  const reloadAll = useCallback(
    (/** @type {any} */ job) => {
      if (job && job.about.documentId !== id) return;
      reload();
      reloadChunks();
    },
    [id, reload, reloadChunks],
  );
  useJobChanges(reloadAll);
  if (!document.value) return html`<h1>Document</h1><${Problem} error=${document.error} />`;
  const { title, status, source, collection, metadata, jobId, createdAt, duplicateOf, warnings } = document.value;
  const failure = document.value.error;
  const drop = () => {
    if (!confirm(`Delete ${title} with all its chunks?`)) return;
    run(
      () => remove(`/rag/documents/${id}`),
      () => navigate("/console/documents"),
    );
  };
  /** @param {any} chunk */
  const row = (chunk) =>
    html`<tr class=${chunk.chunkId === chunkId ? "meant" : ""}><td>${chunk.n + 1}</td><td><span class="meta">${placeOf(chunk)}</span><p class="thought">${chunk.content}</p></td><td>${chunk.tokens}</td></tr>`;
  return html`<h1>${title} <${Badge} text=${status} /></h1>
    <${Facts} facts=${[["Document", html`<${Id} id=${id} />`], ["Source", nameOf(source)], ["Collection", html`<a href=${`/console/documents?${toQuery({ collection })}`}>${collection}</a> (<a href=${runsOf(collection)}>its runs</a>)`], ["Type", source.type], ["Added", html`<${Time} at=${createdAt} />`], ["Jobs", html`<${IdLink} id=${jobId} text="the last one" />, <a href=${`/console/runs?${toQuery({ documentId: id })}`}>all of them</a>`], ["Same content as", duplicateOf && html`<${IdLink} id=${duplicateOf} />`], ["Must be complete", document.value.requireComplete && "yes"]]} />
    <${Problem} error=${failure} /><${Warnings} warnings=${warnings} />
    ${Object.keys(metadata).length > 0 ? html`<${Text} value=${metadata} label="Metadata" />` : null}
    <div class="actions">${failure ? html`<${Retry} jobId=${jobId} onStarted=${reload} />` : null}<${Replace} document=${document.value} onReplaced=${reload} /><button type="button" class="rejected" onClick=${drop}>Delete</button></div><${Problem} error=${error} />
    <h2 id="chunks">Chunks</h2>${chunkId === "" ? null : html`<p class="meta">From the passage on that was cited. <a href=${`/console/documents/${id}`}>All chunks</a></p>`}<${Table} list=${chunks} columns=${["#", "Text", "Tokens"]} row=${row} empty="No chunks yet." /><${FindPassages} documentId=${id} />`;
}
