import { parseHTML } from "linkedom";
import { type DomNode, ELEMENT, walk } from "./dom-node.ts";

/** A parsed page: the document, of which more than the body may hold text. */
export type Page = DomNode & { title?: string };

const OUTER_TAGS = /<\/?(?:html|head|body)(?:\s[^<>]*)?>|<!doctype[^<>]*>/gi;
const EMPTY_TAGS = /<([a-z][\w:-]*)((?:\s[^<>]*)?)\/>/gi;
const XHTML = /^\s*<\?xml\s|<html\s[^<>]*\bxmlns\s*=/i;
const voidNames = /^(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)$/i;
const UPPER_ATTRIBUTE = /\s[A-Z][\w-]*\s*=/;

/**
 * Parses a page. One without a body gets one; in XHTML an element may be empty that HTML would leave open. Names of
 * attributes are in small letters, however the page writes them.
 */
export function parsePage(html: string): Page {
  const closed = XHTML.test(html.slice(0, 2_000))
    ? html.replace(EMPTY_TAGS, (tag, name, rest) => (voidNames.test(name) ? tag : `<${name}${rest}></${name}>`))
    : html;
  const isWhole = /<html[\s>]/i.test(closed) && /<body[\s>]/i.test(closed);
  const title = isWhole ? "" : (/<title[^<>]*>([^<]*)/i.exec(closed)?.[1] ?? "");
  const whole = isWhole
    ? closed
    : `<!doctype html><html><head><title>${title}</title></head><body>${closed.replace(OUTER_TAGS, "")}</body></html>`;
  const { document } = parseHTML(whole) as unknown as { document: Page }; // see `Page`
  if (UPPER_ATTRIBUTE.test(whole)) lowerAttributes(document);
  return document;
}

function lowerAttributes(page: DomNode): void {
  walk(page, (node) => {
    for (const name of node.getAttributeNames?.() ?? []) {
      const lower = name.toLowerCase();
      if (lower !== name) node.setAttribute?.(lower, node.getAttribute?.(name) ?? "");
    }
    return node.nodeType === ELEMENT;
  });
}
