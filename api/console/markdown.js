import { html } from "./html.js";
import { showMarkdown } from "./safe-markdown.js";

/** What each element shows, or will at the next frame. @type {WeakMap<HTMLElement, string>} */
const shown = new WeakMap();

/** Markdown that a model or a document wrote. @param {{ text: string }} props */
export function Markdown({ text }) {
  /** @param {HTMLElement | null} node */
  const fill = (node) => {
    if (node === null || shown.get(node) === text) return;
    shown.set(node, text);
    showMarkdown(node, text);
  };
  return html`<div class="markdown" ref=${fill}></div>`;
}
