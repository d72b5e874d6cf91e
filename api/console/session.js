import { useState } from "preact/hooks";
import { call } from "./api.js";
import { html } from "./html.js";
import { useAction } from "./load.js";
import { Field, Problem } from "./ui.js";

/**
 * Asks for a key, and exchanges it for a session: the key is not kept.
 * @param {{ onSignedIn: (me: any) => void }} props
 */
export function SignIn({ onSignedIn }) {
  const [key, setKey] = useState("");
  const { run, error, isBusy } = useAction();
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    run(async () => {
      const response = await call("POST", "/session", { headers: { authorization: `Bearer ${key.trim()}` } });
      setKey("");
      onSignedIn(await response.json());
    });
  };
  return html`<main><h1>Sign in</h1>
    <form onSubmit=${submit}>
      <${Field} label="Your API key" type="password" value=${key} onInput=${setKey} autocomplete="off" spellcheck=${false} placeholder="sk_…" required />
      <button type="submit" disabled=${isBusy}>Sign in</button>
      <p class="hint">The key is exchanged for a session of 12 hours in this browser. It is not kept.</p>
    </form>
    <${Problem} error=${error} />
    <p class="hint">Programs: <a href="/docs">API reference</a>, <code>/v1</code> for clients of OpenAI's API, <code>/mcp</code> for tools.
    <a href="/widget/demo">Widget demo</a>. <a href="/readyz">Readiness</a>. <a href="/console/operator">Operator</a>.</p></main>`;
}
