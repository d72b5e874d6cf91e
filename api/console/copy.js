import { useState } from "preact/hooks";
import { html } from "./html.js";

/** How long a button says that it has copied, in ms. */
const SHOWN_MS = 2_000;

/** Copies a text. @param {{ text: string, label?: string }} props */
export function Copy({ text, label = "Copy" }) {
  const [state, setState] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState("Copied");
    } catch {
      setState("Select and copy it by hand"); // the browser allows it to pages of https and of this machine alone
    }
    setTimeout(() => setState(""), SHOWN_MS);
  };
  return html`<button type="button" class="quiet" onClick=${copy}>${label}</button>${state ? html` <span class="meta" role="status">${state}</span>` : null}`;
}
