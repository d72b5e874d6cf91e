import { useCallback, useState } from "preact/hooks";
import { call } from "./api.js";
import { html } from "./html.js";
import { useAction, useJobChanges, useLoad } from "./load.js";
import { Field, IdLink, Problem } from "./ui.js";

/** Documents are added as files, by URL, or as a text. */

/** Sources that the page follows; older ones are in the list. */
const MAX_FOLLOWED = 50;
const inBackground = { prefer: "respond-async" };

/** @typedef {{ name: string, state: string, id?: string }} Followed */

/** What was sent, with what became of each. */
function useFollowed() {
  const [sources, setSources] = useState(/** @type {Followed[]} */ ([]));
  /** @param {(one: Followed) => boolean} isIt @param {object} state */
  const note = (isIt, state) => setSources((all) => all.map((one) => (isIt(one) ? { ...one, ...state } : one)));
  useJobChanges(
    useCallback((job) => {
      if (job?.kind !== "ingestion") return;
      const { documentId } = job.about;
      const isIt = (/** @type {Followed} */ { id }) => id === documentId;
      note(isIt, { state: job.error?.message ?? job.status });
    }, []),
  );
  return { sources, setSources, note };
}

/** What a document does not hold of its source, once it has been read. @param {{ id: string }} props */
function Warnings({ id }) {
  const { value } = useLoad(`/rag/documents/${id}`);
  return (value?.warnings ?? []).map(
    (/** @type {any} */ { message }) => html`<br /><span class="bad">${message}</span>`,
  );
}

/** @param {{ sources: Followed[] }} props */
function FollowedList({ sources }) {
  if (sources.length === 0) return null;
  return html`<ul class="plain" role="status">${sources.map(
    ({ name, state, id }) =>
      html`<li>${name}: ${state} ${id ? html`<${IdLink} id=${id} />` : null}${id && state === "completed" ? html`<${Warnings} id=${id} />` : null}</li>`,
  )}</ul>`;
}

/** Files that are sent, one after the other. @param {{ collection: string, followed: ReturnType<typeof useFollowed>, onAccepted: () => void }} props */
function Drop({ collection, followed: { setSources, note }, onAccepted }) {
  const [isOver, setIsOver] = useState(false);
  /** @param {FileList | null | undefined} list */
  const send = async (list) => {
    const dropped = [...(list ?? [])];
    setSources((all) => [...dropped.map(({ name }) => ({ name, state: "waits" })), ...all].slice(0, MAX_FOLLOWED));
    for (const file of dropped) {
      const isIt = (/** @type {Followed} */ { name, id }) => name === file.name && id === undefined;
      const form = new FormData();
      if (collection) form.set("collection", collection);
      form.set("file", file);
      try {
        const response = await call("POST", "/rag/ingest", { form, headers: inBackground });
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
      <label>Drop PDF, DOCX, XLSX, PPTX, HTML, Markdown, CSV or text files here, or choose them <input type="file" multiple onChange=${pick} /></label></div>`;
}

/** One source that is written here: a URL or a text. @param {{ field: "url" | "content", collection: string, followed: ReturnType<typeof useFollowed>, onAccepted: () => void }} props */
function Written({ field, collection, followed: { setSources }, onAccepted }) {
  const [value, setValue] = useState("");
  const [title, setTitle] = useState("");
  const { run, error, isBusy } = useAction();
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(async () => {
      const body = { [field]: value, ...(title ? { title } : {}), ...(collection ? { collection } : {}) };
      const { documentId } = await (await call("POST", "/rag/ingest", { body, headers: inBackground })).json();
      setSources((all) =>
        [{ name: title || value.slice(0, 80), state: "accepted", id: documentId }, ...all].slice(0, MAX_FOLLOWED),
      );
      setValue("");
      setTitle("");
      onAccepted();
    });
  };
  const input =
    field === "url"
      ? html`<${Field} label="URL" type="url" value=${value} onInput=${setValue} placeholder="https://…" required />`
      : html`<${Field} label="Text" rows="5" value=${value} onInput=${setValue} required />`;
  return html`<form onSubmit=${submit}>${input}<${Field} label=${field === "url" ? "Title of the page (optional)" : "Title of the text (optional)"} value=${title} onInput=${setTitle} />
    <button type="submit" disabled=${isBusy}>${field === "url" ? "Add the page" : "Add the text"}</button></form><${Problem} error=${error} />`;
}

/** @param {{ collection: string, names: readonly string[], onAccepted: () => void }} props */
export function AddDocuments({ collection, names, onAccepted }) {
  const [other, setOther] = useState(/** @type {string | undefined} */ (undefined));
  const followed = useFollowed();
  const target = other ?? collection;
  const to = { collection: target, followed, onAccepted };
  return html`<section><div class="actions"><${Field} label="Into the collection" list="collections" value=${target} placeholder="default" onInput=${setOther} />
      <datalist id="collections">${names.map((name) => html`<option value=${name}></option>`)}</datalist></div>
    <${Drop} ...${to} />
    <details><summary>Add a page by its URL</summary><${Written} field="url" ...${to} /></details>
    <details><summary>Add a text</summary><${Written} field="content" ...${to} /></details>
    <${FollowedList} sources=${followed.sources} /></section>`;
}
