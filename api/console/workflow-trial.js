import { useState } from "preact/hooks";
import { post } from "./api.js";
import { html } from "./html.js";
import { useAction } from "./load.js";
import { Badge, number, Problem, Text } from "./ui.js";
import { useInput } from "./workflow-input.js";

/** A call that a step would make: what it says beside its name. @param {any} call */
function Call({ path, id, type, ...what }) {
  return html`<li><b>${id}</b> <span class="meta">${type.replaceAll("_", " ")}, ${path}</span><${Text} value=${what} label="The call" /></li>`;
}

/** Until the page is left. @param {string} _name @param {string} [initial] */
const useText = (_name, initial = "") => useState(initial);

/** How a draft would run: nothing is saved, called or asked. @param {{ draft: any }} props */
export function WorkflowTrial({ draft }) {
  const input = useInput(draft.inputSchema, useText);
  const [outcome, setOutcome] = useState(/** @type {any} */ (undefined));
  const { run, error, isBusy } = useAction();
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(async () => {
      setOutcome(undefined);
      setOutcome(await post("/workflows/dry-run", { workflow: draft, ...input.read() }));
    });
  };
  return html`<details><summary>Try the draft, with stubs for what it calls</summary><form onSubmit=${submit}>${input.fields}<button type="submit" disabled=${isBusy}>Try it</button></form><${Problem} error=${error} />
    ${
      outcome &&
      html`<section role="status"><h3>It would end <${Badge} text=${outcome.status} /></h3><${Problem} error=${outcome.error} />
        <p class="meta">${number(outcome.callCount)} calls${outcome.calls.length < outcome.callCount ? `, of which ${number(outcome.calls.length)} are shown` : ""}. Models, people and servers answer with stubs.</p>
        <ol class="calls">${outcome.calls.map(Call)}</ol>${outcome.output === undefined ? null : html`<h4>Output</h4><${Text} value=${outcome.output} label="The output" />`}</section>`
    }</details>`;
}
