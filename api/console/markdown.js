import DOMPurify from "dompurify";
import { Marked } from "marked";
import { html } from "./html.js";

/** What may be in a text from outside. No pictures, which would tell another server who reads; nothing that runs or is styled. */
const allowed = {
  ALLOWED_TAGS: [
    ..."p br hr h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong del a table thead tbody tr th td".split(" "),
  ],
  ALLOWED_ATTR: ["href", "start"],
  ALLOWED_URI_REGEXP: /^https?:\/\//i,
  RETURN_DOM_FRAGMENT: true,
};
/** @param {string} text */
const quote = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Markup in the text stays text, and a picture is only its description. */
const markdown = new Marked({
  gfm: true,
  renderer: { html: ({ text }) => quote(text), image: ({ text }) => quote(text) },
});

/** What is shown in each element. @type {WeakMap<HTMLElement, string>} */
const shown = new WeakMap();

/** Longer texts are shown as they are, so that a hostile one does not hold the page. */
const MAX_CHARACTERS = 200_000;

/** Markdown that a model or a document wrote. Links lead elsewhere visibly: each names its host. @param {{ text: string }} props */
export function Markdown({ text }) {
  if (text.length > MAX_CHARACTERS) return html`<pre tabindex="0">${text}</pre>`;
  /** @param {HTMLElement | null} node */
  const fill = (node) => {
    if (node === null || shown.get(node) === text) return;
    const fragment = /** @type {DocumentFragment} */ (
      /** @type {unknown} */ (DOMPurify.sanitize(markdown.parse(text, { async: false }), allowed))
    );
    for (const link of fragment.querySelectorAll("a[href]")) {
      link.setAttribute("target", "_blank");
      link.setAttribute("rel", "noopener noreferrer nofollow");
      const host = document.createElement("span");
      host.className = "meta";
      host.textContent = ` (${new URL(link.getAttribute("href") ?? "").host}) ↗`;
      link.append(host);
    }
    node.replaceChildren(fragment);
    shown.set(node, text);
  };
  return html`<div class="markdown" ref=${fill}></div>`;
}
