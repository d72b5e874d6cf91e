import { useCallback, useState } from "preact/hooks";
import { call, post, remove, toQuery } from "./api.js";
import { html } from "./html.js";
import { useAction, useJobChanges, useList, useLoad } from "./load.js";
import { navigate } from "./router.js";
import { Badge, Choice, Facts, Field, IdLink, number, Problem, Table, Text, Time } from "./ui.js";

const states = ["indexed", "queued", "processing", "failed"];

/** Dropped files that the page follows; older ones are in the list. */
const MAX_FOLLOWED = 50;

/** Files that are sent, one after the other, with what became of each. @param {{ onAccepted: () => void }} props */
function Drop({ onAccepted }) {
  const [files, setFiles] = useState(/** @type {{ name: string, state: string, id?: string }[]} */ ([]));
  const [isOver, setIsOver] = useState(false);
  /** @param {(one: { name: string, id?: string }) => boolean} isIt @param {object} state */
  const note = (isIt, state) => setFiles((all) => all.map((one) => (isIt(one) ? { ...one, ...state } : one)));
  useJobChanges(
    useCallback((job) => {
      if (job?.kind !== "ingestion") return;
      note(({ id }) => id === job.about.documentId, { state: job.error?.message ?? job.status });
    }, []),
  );
  /** @param {FileList | null | undefined} list */
  const send = async (list) => {
    const dropped = [...(list ?? [])];
    setFiles((all) => [...dropped.map(({ name }) => ({ name, state: "waits" })), ...all].slice(0, MAX_FOLLOWED));
    for (const file of dropped) {
      const isIt = (/** @type {{ name: string, id?: string }} */ { name, id }) =>
        name === file.name && id === undefined;
      const form = new FormData();
      form.set("file", file);
      try {
        const response = await call("POST", "/rag/ingest", { form, headers: { prefer: "respond-async" } });
        note(isIt, { state: "accepted", id: (await response.json()).documentId });
      } catch (error) {
        note(isIt, { state: /** @type {Error} */ (error).message, id: "" });
      }
      onAccepted();
    }
  };
  /** @param {any} event */
  const drop = (event) => {
    event.preventDefault();
    setIsOver(false);
    send(event.dataTransfer?.files);
  };
  /** @param {Event} event */
  const over = (event) => {
    event.preventDefault();
    setIsOver(true);
  };
  /** @param {any} event */
  const pick = (event) => send(event.target.files);
  return html`<div class="drop ${isOver ? "over" : ""}" onDrop=${drop} onDragOver=${over} onDragLeave=${() => setIsOver(false)}>
      <label>Drop PDF, DOCX, XLSX, PPTX, HTML, Markdown, CSV or text files here, or choose them <input type="file" multiple onChange=${pick} /></label></div>
    ${files.length === 0 ? null : html`<ul class="plain" role="status">${files.map(({ name, state, id }) => html`<li>${name}: ${state} ${id ? html`<${IdLink} id=${id} />` : null}</li>`)}</ul>`}`;
}

/** The passages that a query finds, and why. @param {{ documentId?: string }} props */
function TryQuery({ documentId }) {
  const [text, setText] = useState("");
  const [mode, setMode] = useState("hybrid");
  const [results, setResults] = useState(/** @type {any[] | undefined} */ (undefined));
  const { run, error, isBusy } = useAction();
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    const body = { query: text, mode, topK: 5, ...(documentId ? { documentIds: [documentId] } : {}) };
    run(async () => setResults((await post("/rag/query", body)).results));
  };
  return html`<section><h2>Try a query</h2><form onSubmit=${submit}>
      <${Field} label="Question" value=${text} onInput=${setText} required />
      <${Choice} label="Mode" value=${mode} options=${["hybrid", "vector", "lexical"]} onChange=${setMode} />
      <button type="submit" disabled=${isBusy}>Find</button></form><${Problem} error=${error} />
    ${
      results === undefined
        ? null
        : results.length === 0
          ? html`<p class="hint" role="status">Nothing was found.</p>`
          : html`<ol class="passages">${results.map(
              (one) => html`<li class="card"><h3><${IdLink} id=${one.documentId} text=${one.title} /></h3>
        <p class="meta">score ${one.score.toFixed(3)}, similarity of meaning ${one.similarity.toFixed(3)}${one.heading ? `, ${one.heading}` : ""}${one.page ? `, page ${one.page}` : ""}</p>
        <p class="thought">${one.content}</p></li>`,
            )}</ol>`
    }</section>`;
}

/** What the document does not hold of its source. @param {{ warnings: any[] | undefined }} props */
function Warnings({ warnings = [] }) {
  if (warnings.length === 0) return null;
  return html`<section><h2>Warnings: ${number(warnings.length)}</h2><ul>${warnings.map(
    ({ code, message, pages }) =>
      html`<li><${Badge} text=${code.replaceAll("_", " ")} /> ${message}${pages ? html` <span class="meta">${pages.length === 1 ? "page" : "pages"} ${pages.join(", ")}</span>` : null}</li>`,
  )}</ul></section>`;
}

/** @param {{ query: URLSearchParams }} props */
export function Documents({ query }) {
  const filter = { status: query.get("status") ?? "indexed", title: query.get("title") ?? "" };
  const [title, setTitle] = useState(filter.title);
  const list = useList(`/rag/documents?${toQuery({ ...filter, limit: 50 })}`, { id: "documentId" });
  const { reload } = list;
  useJobChanges(useCallback((job) => (job && job.kind !== "ingestion" ? undefined : reload()), [reload]));
  /** @param {object} change */
  const choose = (change) => navigate(`/console/documents?${toQuery({ ...filter, ...change })}`);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    choose({ title });
  };
  /** @param {any} one */
  const row = (
    one,
  ) => html`<tr><td><${IdLink} id=${one.documentId} text=${one.title} />${one.error ? html`<br /><span class="bad">${one.error.message}</span>` : null}</td>
    <td><${Badge} text=${one.status} /></td><td>${number(one.chunks)}</td><td>${one.warnings?.length ? html`<span class="bad" title=${one.warnings.map((/** @type {any} */ { message }) => message).join("\n")}>${number(one.warnings.length)}</span>` : null}</td><td>${one.source.name ?? one.source.url ?? one.source.kind}</td><td><${Time} at=${one.updatedAt} /></td></tr>`;
  return html`<h1>Documents</h1><${Drop} onAccepted=${reload} />
    <form onSubmit=${submit}><${Choice} label="Status" value=${filter.status} options=${states} onChange=${(/** @type {string} */ status) => choose({ status })} />
      <${Field} label="Title holds" value=${title} onInput=${setTitle} /><button type="submit">Find</button></form>
    <${Table} list=${list} columns=${["Title", "Status", "Chunks", "Warnings", "Source", "Changed"]} row=${row} /><${TryQuery} />`;
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

/** @param {{ id: string }} props */
export function Document({ id }) {
  const document = useLoad(`/rag/documents/${id}`);
  const chunks = useList(`/rag/documents/${id}/chunks?limit=20`);
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
  const { title, status, source, metadata, jobId, createdAt, duplicateOf, warnings, error: failure } = document.value;
  const drop = () => {
    if (!confirm(`Delete ${title} with all its chunks?`)) return;
    run(
      () => remove(`/rag/documents/${id}`),
      () => navigate("/console/documents"),
    );
  };
  /** @param {any} chunk */
  const row = (chunk) =>
    html`<tr><td>${chunk.n + 1}</td><td><span class="meta">${chunk.heading ?? ""} ${chunk.page ? `page ${chunk.page}` : ""}</span><p class="thought">${chunk.content}</p></td><td>${chunk.tokens}</td></tr>`;
  return html`<h1>${title} <${Badge} text=${status} /></h1>
    <${Facts} facts=${[["Document", html`<code>${id}</code>`], ["Source", source.name ?? source.url ?? source.kind], ["Type", source.type], ["Added", html`<${Time} at=${createdAt} />`], ["Job", html`<${IdLink} id=${jobId} />`], ["Same content as", duplicateOf && html`<${IdLink} id=${duplicateOf} />`], ["Must be complete", document.value.requireComplete && "yes"]]} />
    <${Problem} error=${failure} /><${Warnings} warnings=${warnings} />
    ${Object.keys(metadata).length > 0 ? html`<${Text} value=${metadata} label="Metadata" />` : null}
    <div class="actions"><${Replace} document=${document.value} onReplaced=${reload} /><button type="button" class="rejected" onClick=${drop}>Delete</button></div><${Problem} error=${error} />
    <h2>Chunks</h2><${Table} list=${chunks} columns=${["#", "Text", "Tokens"]} row=${row} empty="No chunks yet." /><${TryQuery} documentId=${id} />`;
}
