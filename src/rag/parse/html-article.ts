import { Readability } from "@mozilla/readability";
import { type DomNode, ELEMENT, walk } from "./dom-node.ts";
import type { Page } from "./html-page.ts";

const MAX_ELEMENTS = 200_000;
const PLACE = "data-place";

/** The title of a page as the reader finds it, and the elements, by their numbers, between which its article stands. */
export type Article = { title?: string; first?: number; last?: number };

/** Finds the article of a page, which is changed by that. */
export function findArticle(page: Page): Article {
  const elements = elementsOf(page);
  if (elements.length > MAX_ELEMENTS) return {};
  for (const [at, element] of elements.entries()) element.setAttribute?.(PLACE, String(at));
  try {
    const document = page as unknown as ConstructorParameters<typeof Readability>[0]; // it is a document of linkedom
    const serializer = (content: unknown) => content as DomNode; // a node of it
    const article = new Readability(document, {
      maxElemsToParse: MAX_ELEMENTS,
      charThreshold: 200,
      serializer,
    }).parse();
    if (!article) return {};
    return { ...(article.title ? { title: article.title } : {}), ...(article.content ? rangeOf(article.content) : {}) };
  } catch {
    return {}; // a page that the reader fails on is read whole, like a page without an article
  }
}

function rangeOf(content: DomNode): Pick<Article, "first" | "last"> {
  let first = Number.POSITIVE_INFINITY;
  let last = -1;
  walk(content, (node) => {
    const place = Number.parseInt(node.getAttribute?.(PLACE) ?? "", 10);
    if (!Number.isNaN(place)) [first, last] = [Math.min(first, place), Math.max(last, place)];
    return true;
  });
  return last === -1 ? {} : { first, last };
}

/** The smallest element of an equal page that holds the whole article. */
export function holderOf(page: DomNode, { first, last }: Article): DomNode | undefined {
  if (first === undefined || last === undefined) return undefined;
  const elements = elementsOf(page);
  const above = new Set<DomNode>();
  for (let node = elements[first] ?? null; node; node = node.parentNode) above.add(node);
  for (let node = elements[last] ?? null; node; node = node.parentNode) if (above.has(node)) return node;
  return undefined;
}

/** The elements of a page in their order, and no more than one too many. */
function elementsOf(page: DomNode): DomNode[] {
  const elements: DomNode[] = [];
  walk(page, (node) => {
    if (node.nodeType !== ELEMENT || elements.length > MAX_ELEMENTS) return false;
    elements.push(node);
    return true;
  });
  return elements;
}
