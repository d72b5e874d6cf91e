import { useEffect, useState } from "preact/hooks";
import { get, post, put } from "./api.js";
import { Diff } from "./diff.js";
import { useDraft } from "./drafts.js";
import { html } from "./html.js";
import { useAction } from "./load.js";
import { bodyOf, unknownFields, useReference } from "./reference.js";
import { navigate } from "./router.js";
import { Choice, Field, Problem } from "./ui.js";

/** The editor of agents and workflows: a form and the JSON of one draft, which is checked before it is saved. */

/** Fields of a definition that the API writes. */
const written = ["agentId", "workflowId", "createdAt", "updatedAt", "createdBy", "version", "status"];
/** How long the writer pauses before the draft is checked, in ms. */
const CHECK_AFTER_MS = 600;

/** @param {any} definition */
export const withoutWritten = (definition) =>
  Object.fromEntries(Object.entries(definition).filter(([name]) => !written.includes(name)));
/** @param {any} definition */
const toText = (definition) => JSON.stringify(withoutWritten(definition), null, 2);

/** The draft that a text is; undefined while it is no object in JSON. @param {string} text */
function readDraft(text) {
  try {
    const draft = JSON.parse(text);
    return typeof draft === "object" && draft !== null && !Array.isArray(draft) ? draft : undefined;
  } catch {
    return undefined;
  }
}

/** Shows where in the text a mistake is: the field that the API names, as `steps[0].type`. @param {string} text @param {any} error */
function placeOf(text, error) {
  const name = error?.param?.split(/[.[]/).at(-1)?.replace("]", "");
  const at = name === undefined || /^\d*$/.test(name) ? -1 : text.indexOf(`"${name}"`);
  return at < 0 ? undefined : { at, line: text.slice(0, at).split("\n").length };
}

/** What the API says is wrong with a draft, as it is written; nothing where it does not check drafts. @param {string | undefined} path @param {string} text */
function useCheck(path, text) {
  const [problems, setProblems] = useState(/** @type {any[]} */ ([]));
  useEffect(() => {
    const draft = readDraft(text);
    if (path === undefined || draft === undefined) return setProblems([]);
    let isCurrent = true;
    const timer = setTimeout(() => {
      post(path, draft).then(
        (found) => isCurrent && setProblems(found.problems),
        () => isCurrent && setProblems([]),
      );
    }, CHECK_AFTER_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [path, text]);
  return problems;
}

/**
 * Somebody else has saved another version meanwhile: both texts, and what to do.
 * @param {{ theirs: any, mine: string, onTake: () => void, onKeep: () => void }} props
 */
function Conflict({ theirs, mine, onTake, onKeep }) {
  return html`<section class="card" role="alert"><h3>Version ${theirs.version} was saved meanwhile, by ${theirs.createdBy}</h3>
    <div class="grid"><div><h4>Theirs</h4><pre tabindex="0" aria-label="Theirs">${toText(theirs)}</pre></div><div><h4>Yours</h4><pre tabindex="0" aria-label="Yours">${mine}</pre></div></div>
    <h4>From theirs to yours</h4><${Diff} before=${withoutWritten(theirs)} after=${readDraft(mine) ?? {}} label="From theirs to yours" />
    <p class="actions"><button type="button" onClick=${onTake}>Take theirs</button> <button type="button" onClick=${onKeep}>Save yours as version ${theirs.version + 1}</button></p></section>`;
}

/**
 * @typedef {{ title: string, path: string, screen: string, idField: string, example: object, Form: any, Trial?: any, checks?: string, columns: readonly string[], cells: (item: any) => any }} Kind
 * `Trial`: tries a draft that is not saved; `checks`: the path that says what is wrong with one
 */

/**
 * The text of a draft, with the version that it began with: it is kept through a reload, when another version may be there.
 * @param {any} definition @param {object} example
 */
function useDefinition(definition, example) {
  const current = definition?.version ?? 0;
  const original = definition ? toText(definition) : JSON.stringify(example, null, 2);
  const [kept, keep, forget] = useDraft("definition", `${current}\n${original}`);
  const end = kept.indexOf("\n");
  const [version, text] = [Number(kept.slice(0, end)), kept.slice(end + 1)];
  /** @param {string} next */
  const setText = (next) => keep(`${next === original ? current : version}\n${next}`);
  return { text, version, isEdited: text !== original, setText, forget };
}

/** @param {{ kind: Kind, definition?: any, onSaved?: (saved: any) => void }} props */
export function Editor({ kind, definition, onSaved }) {
  const { text, version, isEdited, setText, forget } = useDefinition(definition, kind.example);
  const [view, setView] = useState("form");
  const [theirs, setTheirs] = useState(/** @type {any} */ (undefined));
  const reference = useReference();
  const { run, error, isBusy } = useAction();
  const draft = readDraft(text);
  const problems = useCheck(kind.checks !== undefined && reference?.paths[kind.checks] ? kind.checks : undefined, text);
  const unknown = reference && draft ? unknownFields(reference, bodyOf(reference, kind.path), draft) : [];
  const place = placeOf(text, error);
  const id = definition?.[kind.idField];
  /** @param {any} saved */
  const take = (saved) => {
    forget();
    setTheirs(undefined);
    onSaved?.(saved);
  };
  /** @param {number} replaced */
  const save = async (replaced) => {
    try {
      take(await put(`${kind.path}/${id}`, { ...JSON.parse(text), version: replaced }));
    } catch (failure) {
      const current = /** @type {any} */ (failure).status === 409 ? await get(`${kind.path}/${id}`) : undefined;
      if (current === undefined || current.version === replaced) throw failure;
      setTheirs(current);
    }
  };
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    if (
      unknown.length > 0 &&
      !confirm(`These fields are not known, and would be lost or refused: ${unknown.join(", ")}. Save?`)
    )
      return;
    run(async () => {
      if (definition) return save(version);
      const made = await post(kind.path, JSON.parse(text));
      forget();
      navigate(`/console/${kind.screen}/${made[kind.idField]}`);
    });
  };
  /** @param {any} changed */
  const change = (changed) => setText(JSON.stringify(changed, null, 2));
  const isForm = view === "form";
  return html`<form class="editor" onSubmit=${submit}>
      <${Choice} label="Edit as" value=${view} options=${["form", "json"]} nameOf=${(/** @type {string} */ name) => (name === "json" ? "JSON" : name)} onChange=${setView} />
      <div class="wide">${
        isForm && draft
          ? html`<${kind.Form} value=${draft} reference=${reference} problems=${problems} onChange=${change} />`
          : html`${isForm ? html`<p class="problem">The form needs an object in JSON: correct the text first.</p>` : null}<${Field} label="Definition" rows="18" class="code" spellcheck=${false} value=${text} onInput=${setText} aria-invalid=${error || !draft ? "true" : "false"} />`
      }</div>
      ${unknown.length > 0 ? html`<p class="problem" role="status">Not known: ${unknown.map((name) => html`<code>${name}</code> `)}</p>` : null}
      ${problems.length > 0 ? html`<ul class="wide problems">${problems.map(({ path, message }) => html`<li class="bad"><code>${path}</code> ${message}</li>`)}</ul>` : null}
      <button type="submit" disabled=${isBusy || (definition && !isEdited)}>${definition ? `Save as version ${definition.version + 1}` : "Create"}</button>
      ${isEdited ? html`<button type="button" onClick=${forget}>Discard the draft</button>` : null}</form>
    <${Problem} error=${error} />${place && !isForm ? html`<p class="problem">The mistake is in line ${place.line}.</p>` : null}
    ${theirs ? html`<${Conflict} theirs=${theirs} mine=${text} onTake=${() => take(theirs)} onKeep=${() => run(() => save(theirs.version))} />` : null}
    ${kind.Trial && draft ? html`<${kind.Trial} draft=${draft} />` : null}`;
}
