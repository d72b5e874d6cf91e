import { useState } from "preact/hooks";
import { call } from "./api.js";
import { html } from "./html.js";
import { Field, Problem } from "./ui.js";

/** @param {{ onSignedIn: (me: any) => void }} props */
function SignInForm({ onSignedIn }) {
  const [key, setKey] = useState("");
  const [state, setState] = useState({ isBusy: false, error: /** @type {any} */ (undefined) });
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setState({ isBusy: true, error: undefined });
    try {
      const response = await call("POST", "/session", { headers: { authorization: `Bearer ${key.trim()}` } });
      setKey("");
      setState({ isBusy: false, error: undefined });
      onSignedIn(await response.json());
    } catch (error) {
      setState({ isBusy: false, error });
    }
  };
  return html`<form onSubmit=${submit}>
      <${Field} label="Your API key" type="password" value=${key} onInput=${setKey} autocomplete="off" spellcheck=${false} placeholder="sk_…" required />
      <button type="submit" disabled=${state.isBusy}>Sign in</button>
      <p class="hint">The key is exchanged for a session of 12 hours in this browser. It is not kept.</p>
    </form>
    <${Problem} error=${state.error} />`;
}

/**
 * Asks for a key, and exchanges it for a session: the key is not kept.
 * @param {{ onSignedIn: (me: any) => void }} props
 */
export function SignIn({ onSignedIn }) {
  return html`<main><h1>Sign in</h1><${SignInForm} onSignedIn=${onSignedIn} />
    <p class="hint">Programs: <a href="/docs">API reference</a>, <code>/v1</code> for clients of OpenAI's API, <code>/mcp</code> for tools.${" "}
    <a href="/widget/demo">Widget demo</a>. <a href="/readyz">Readiness</a>. <a href="/console/operator">Operator</a>.</p></main>`;
}

/** @param {HTMLDialogElement | null} dialog */
export const openDialog = (dialog) => {
  if (dialog && !dialog.open) dialog.showModal();
};

/** @param {Event} event */
const stay = (event) => event.preventDefault();

/**
 * Asks to sign in over the page when its session has ended: what was typed there stays. `children`: the form.
 * @param {{ reason: string, children?: any }} props
 */
export function OverPage({ reason, children }) {
  return html`<dialog ref=${openDialog} onCancel=${stay} aria-labelledby="sign-in-again"><h2 id="sign-in-again">Sign in again</h2>
    <p role="status">${reason} What you have typed on the page stays.</p>${children}</dialog>`;
}

/** @param {{ reason: string, onSignedIn: (me: any) => void }} props */
export function SignInAgain({ reason, onSignedIn }) {
  return html`<${OverPage} reason=${reason}><${SignInForm} onSignedIn=${onSignedIn} /></${OverPage}>`;
}
