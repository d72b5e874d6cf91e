import DOMPurify from "dompurify";
import { Marked } from "marked";

/** What may be in a text from outside. No pictures, which would report the reader to another server; nothing that runs or is styled. */
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

/** Longer texts are shown as they are, so that a hostile one does not hold the page. */
const MAX_CHARACTERS = 200_000;

/**
 * Markdown that a model or a document wrote, as nodes for a page. Links lead elsewhere visibly: each names its host. Those to
 * other origins than the allowed ones are texts.
 * @param {string} text
 * @param {readonly string[]} [origins] Default: any.
 */
function toSafeNode(text, origins) {
  if (text.length > MAX_CHARACTERS) {
    const whole = document.createElement("pre");
    whole.tabIndex = 0;
    whole.textContent = text;
    return whole;
  }
  const fragment = /** @type {DocumentFragment} */ (
    /** @type {unknown} */ (DOMPurify.sanitize(markdown.parse(text, { async: false }), allowed))
  );
  // Wide ones scroll, which must not need a mouse.
  for (const wide of /** @type {NodeListOf<HTMLElement>} */ (fragment.querySelectorAll("pre, table")))
    wide.tabIndex = 0;
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (fragment.querySelectorAll("a[href]"))) {
    if (origins && !origins.includes(link.origin)) {
      link.replaceWith(...link.childNodes);
      continue;
    }
    link.setAttribute("target", "_blank");
    link.setAttribute("rel", "noopener noreferrer nofollow");
    const host = document.createElement("span");
    host.className = "meta";
    host.textContent = ` (${link.host}) ↗`; // empty for an address that leads nowhere, as https://
    link.append(host);
  }
  return fragment;
}

/** What each element is to show at the next frame. @type {WeakMap<Element, { text: string, onShown: () => void, origins?: readonly string[] | undefined }>} */
const awaited = new WeakMap();

/**
 * Shows Markdown in an element at the browser's next frame: of the texts that come until then, the last. A growing response is
 * so parsed once a frame, and not once for each of its parts. The console and the widget both show such texts by this.
 * @param {Element} element
 * @param {string} text
 * @param {() => void} [onShown]
 * @param {readonly string[]} [origins] Where links may lead; default: anywhere.
 */
export function showMarkdown(element, text, onShown = () => undefined, origins = undefined) {
  const isAwaited = awaited.has(element);
  awaited.set(element, { text, onShown, origins });
  if (isAwaited) return;
  requestAnimationFrame(() => {
    const last = awaited.get(element);
    awaited.delete(element);
    element.replaceChildren(toSafeNode(last?.text ?? "", last?.origins));
    last?.onShown();
  });
}
