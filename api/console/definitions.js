import { put, remove } from "./api.js";
import { Editor, withoutWritten } from "./definition-editor.js";
import { html } from "./html.js";
import { useAction, useList, useLoad } from "./load.js";
import { Publish } from "./publish.js";
import { navigate } from "./router.js";
import { RunsOf } from "./runs.js";
import { Facts, Id, IdLink, Problem, Table, Time } from "./ui.js";
import { Versions } from "./versions.js";

/** Agents and workflows: lists, and a page of each definition. */

/** @typedef {import("./definition-editor.js").Kind} Kind */

/** @param {{ kind: Kind }} props */
export function DefinitionList({ kind }) {
  const list = useList(`${kind.path}?limit=50`);
  /** @param {any} item */
  const row = (item) =>
    html`<tr><td><${IdLink} id=${item[kind.idField]} text=${item.name} /></td>${kind.cells(item)}<td>${item.version}</td><td>${item.createdBy}</td><td><${Time} at=${item.updatedAt} /></td></tr>`;
  return html`<h1>${kind.title}</h1><${Table} list=${list} columns=${["Name", ...kind.columns, "Version", "By", "Changed"]} row=${row} empty=${`There are none yet. The first one is ready below: change it, and press Create.`} />
    <h2>New</h2><${Editor} kind=${kind} />`;
}

/** @param {{ kind: Kind, id: string, RunForm: any }} props */
export function DefinitionPage({ kind, id, RunForm }) {
  const { value, error, set } = useLoad(`${kind.path}/${id}`);
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
  return html`<h1>${value.name}</h1>
    <${Facts} facts=${[["Id", html`<${Id} id=${id} />`], ["Version", value.version], ["Changed", html`<${Time} at=${value.updatedAt} />`], ["By", value.createdBy]]} />
    <h2>Run it</h2><${RunForm} definition=${value} />
    <h2>Runs</h2><${RunsOf} field=${kind.idField} id=${id} />
    <${Publish} published=${value.publish} save=${publish} />
    <h2>Definition</h2><${Editor} kind=${kind} definition=${value} onSaved=${set} />
    <${Versions} path=${`${kind.path}/${id}`} current=${value} onRestored=${set} />
    <p class="actions"><button type="button" class="rejected" onClick=${drop}>Delete</button></p><${Problem} error=${failure} />`;
}
