import { useState } from "preact/hooks";
import { html } from "./html.js";
import { useAction } from "./load.js";
import { Field, Problem } from "./ui.js";

/**
 * Makes a definition a tool of the tenant, by MCP, or takes the tool back.
 * @param {{ published: { name: string, description: string } | undefined, save: (publish: object | undefined) => Promise<void> }} props
 */
export function Publish({ published, save }) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const { run, error, isBusy } = useAction();
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(() => save({ name, description }));
  };
  if (published)
    return html`<h2>Published</h2><p>Agent runtimes call it by MCP as the tool <code>${published.name}</code>: ${published.description}</p>
      <p class="actions"><button type="button" disabled=${isBusy} onClick=${() => run(() => save(undefined))}>Take the tool back</button></p><${Problem} error=${error} />`;
  return html`<h2>Publish as a tool</h2><form onSubmit=${submit}><${Field} label="Name of the tool" value=${name} onInput=${setName} placeholder="refund" required />
      <${Field} label="What it does, for the model that calls it" value=${description} onInput=${setDescription} required /><button type="submit" disabled=${isBusy}>Publish</button></form><${Problem} error=${error} />`;
}
