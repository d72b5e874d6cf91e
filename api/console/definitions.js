import { useEffect, useState } from "preact/hooks";
import { post, put, remove } from "./api.js";
import { html } from "./html.js";
import { useAction, useList, useLoad } from "./load.js";
import { Publish } from "./publish.js";
import { navigate } from "./router.js";
import { Facts, Field, IdLink, Problem, Table, Time } from "./ui.js";
import { Versions } from "./versions.js";

/** Agents and workflows: lists, and definitions as JSON with the mistakes that the API names. */

/** Fields of a definition that the API writes. */
const written = ["agentId", "workflowId", "createdAt", "updatedAt", "createdBy", "version", "status"];

/** @param {any} definition */
const withoutWritten = (definition) =>
  Object.fromEntries(Object.entries(definition).filter(([name]) => !written.includes(name)));
/** @param {any} definition */
const toText = (definition) => JSON.stringify(withoutWritten(definition), null, 2);

/**
 * @typedef {{ title: string, path: string, screen: string, idField: string, example: object, columns: readonly string[], cells: (item: any) => any }} Kind
 */

/** @param {{ kind: Kind }} props */
export function DefinitionList({ kind }) {
  const list = useList(`${kind.path}?limit=50`);
  /** @param {any} item */
  const row = (item) =>
    html`<tr><td><${IdLink} id=${item[kind.idField]} text=${item.name} /></td>${kind.cells(item)}<td>${item.version}</td><td>${item.createdBy}</td><td><${Time} at=${item.updatedAt} /></td></tr>`;
  return html`<h1>${kind.title}</h1><${Table} list=${list} columns=${["Name", ...kind.columns, "Version", "By", "Changed"]} row=${row} />
    <h2>New</h2><${Editor} kind=${kind} />`;
}

/** Shows where in the text a mistake is: the field that the API names, as `steps[0].type`. @param {string} text @param {any} error */
function placeOf(text, error) {
  const name = error?.param?.split(/[.[]/).at(-1)?.replace("]", "");
  const at = name === undefined || /^\d*$/.test(name) ? -1 : text.indexOf(`"${name}"`);
  return at < 0 ? undefined : { at, line: text.slice(0, at).split("\n").length };
}

/** @param {{ kind: Kind, definition?: any, onSaved?: (saved: any) => void }} props */
function Editor({ kind, definition, onSaved }) {
  const original = definition ? toText(definition) : JSON.stringify(kind.example, null, 2);
  const [text, setText] = useState(original);
  const { run, error, isBusy } = useAction();
  useEffect(() => setText(original), [original]);
  const place = placeOf(text, error);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(async () => {
      const body = JSON.parse(text);
      if (definition) {
        onSaved?.(await put(`${kind.path}/${definition[kind.idField]}`, { ...body, version: definition.version }));
        return;
      }
      const made = await post(kind.path, body);
      navigate(`/console/${kind.screen}/${made[kind.idField]}`);
    });
  };
  return html`<form onSubmit=${submit}>
      <${Field} label="Definition" rows="16" class="code" spellcheck=${false} value=${text} onInput=${setText} aria-invalid=${error ? "true" : "false"} />
      <button type="submit" disabled=${isBusy || (definition && text === original)}>${definition ? `Save as version ${definition.version + 1}` : "Create"}</button></form>
    <${Problem} error=${error} />${place ? html`<p class="problem">The mistake is in line ${place.line}.</p>` : null}`;
}

/** @param {{ kind: Kind, id: string, RunForm: any }} props */
export function DefinitionPage({ kind, id, RunForm }) {
  const { value, error, set } = useLoad(`${kind.path}/${id}`);
  const runs = useList(`${kind.path}/${id}/runs?limit=10`);
  const { run, error: failure } = useAction();
  if (!value) return html`<h1>${kind.title}</h1><${Problem} error=${error} />`;
  const drop = () => {
    if (!confirm(`Delete ${value.name}? Its runs stay readable.`)) return;
    run(
      () => remove(`${kind.path}/${id}`),
      () => navigate(`/console/${kind.screen}`),
    );
  };
  /** @param {object | undefined} wanted */
  const publish = async (wanted) => {
    const { publish: _before, ...definition } = withoutWritten(value);
    const body = { ...definition, version: value.version, ...(wanted ? { publish: wanted } : {}) };
    set(await put(`${kind.path}/${id}`, body));
  };
  /** @param {any} one */
  const row = (one) =>
    html`<tr><td><${IdLink} id=${one.jobId} text=${one.runId} /></td><td>${one.agentVersion ?? one.version}</td><td>${one.status.replace("_", " ")}</td><td><${Time} at=${one.createdAt} /></td></tr>`;
  return html`<h1>${value.name}</h1>
    <${Facts} facts=${[["Id", html`<code>${id}</code>`], ["Version", value.version], ["Changed", html`<${Time} at=${value.updatedAt} />`], ["By", value.createdBy]]} />
    <h2>Run it</h2><${RunForm} definition=${value} />
    <h2>Runs</h2><${Table} list=${runs} columns=${["Run", "Version", "Status", "Begun"]} row=${row} empty="It has not run yet." />
    <${Publish} published=${value.publish} save=${publish} />
    <h2>Definition</h2><${Editor} kind=${kind} definition=${value} onSaved=${set} />
    <${Versions} key=${value.version} path=${`${kind.path}/${id}`} current=${value} onRestored=${set} />
    <p class="actions"><button type="button" class="rejected" onClick=${drop}>Delete</button></p><${Problem} error=${failure} />`;
}
