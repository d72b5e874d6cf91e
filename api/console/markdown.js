import { html } from "./html.js";
import { toSafeFragment } from "./safe-markdown.js";

/** What is shown in each element. @type {WeakMap<HTMLElement, string>} */
const shown = new WeakMap();

/** Longer texts are shown as they are, so that a hostile one does not hold the page. */
const MAX_CHARACTERS = 200_000;

/** Markdown that a model or a document wrote. @param {{ text: string }} props */
export function Markdown({ text }) {
  if (text.length > MAX_CHARACTERS) return html`<pre tabindex="0">${text}</pre>`;
  /** @param {HTMLElement | null} node */
  const fill = (node) => {
    if (node === null || shown.get(node) === text) return;
    node.replaceChildren(toSafeFragment(text));
    shown.set(node, text);
  };
  return html`<div class="markdown" ref=${fill}></div>`;
}
