import { useState } from "preact/hooks";
import { post } from "./api.js";
import { withoutWritten } from "./definition-editor.js";
import { Diff } from "./diff.js";
import { html } from "./html.js";
import { useAction, useListAt, useLoad } from "./load.js";
import { bytes as amount, Problem, Table, Text, Time } from "./ui.js";

/** One version as it was, and what has changed since. @param {{ path: string, current: any }} props */
function Old({ path, current }) {
  const { value, error } = useLoad(path);
  if (!value) return html`<${Problem} error=${error} />`;
  return html`<${Text} value=${value} label="The definition" />
    <h4>From there to version ${current.version}</h4><${Diff} before=${withoutWritten(value)} after=${withoutWritten(current)} label="What has changed since" />`;
}

/**
 * The versions of an agent or a workflow, each to look at and to restore.
 * @param {{ path: string, current: any, onRestored: (definition: any) => void }} props
 */
export function Versions({ path, current, onRestored }) {
  const list = useListAt(`${path}/versions`, String(current.version));
  const [shown, setShown] = useState(/** @type {number | undefined} */ (undefined));
  const { run, error: failure, isBusy } = useAction();
  /** @param {number} version */
  const restore = (version) => () =>
    run(async () => {
      const response = await post(`${path}/versions/${version}/restore`, undefined);
      setShown(undefined);
      onRestored(response);
    });
  /** @param {any} one */
  const row = ({
    version,
    by,
    at,
    bytes,
  }) => html`<tr><td>${version}</td><td class="name">${by ?? ""}</td><td><${Time} at=${at} /></td><td>${amount(bytes)}</td>
    <td><button type="button" aria-label=${`${shown === version ? "Hide" : "Show"} version ${version}`} onClick=${() => setShown(shown === version ? undefined : version)}>${shown === version ? "Hide" : "Show"}</button>
    ${version === current.version ? null : html` <button type="button" aria-label=${`Restore version ${version}`} disabled=${isBusy} onClick=${restore(version)}>Restore</button>`}</td></tr>`;
  return html`<h2>Versions</h2><${Table} list=${list} columns=${["Version", "By", "Written", "Size", ""]} row=${row} />
    ${shown === undefined ? null : html`<h3>Version ${shown}</h3><${Old} path=${`${path}/versions/${shown}`} current=${current} />`}<${Problem} error=${failure} />`;
}
