import { Readability } from "@mozilla/readability";
import { parseHTML } from "linkedom";
import { type DomNode, isDeeperThan, renderSections } from "./html-sections.ts";
import { firstLineOf, type ParsedDocument, type Section, tidy } from "./section.ts";

const MIN_ARTICLE_LENGTH = 500; // a shorter article must be half of the page, else the whole page is used
const MAX_ELEMENTS = 200_000;
const MAX_ARTICLE_DEPTH = 100; // in deep markup, Readability takes more than quadratic time

/** The part of a parsed page that this file uses; linkedom's own types need the DOM library, which Node has not. */
type Page = { title?: string; body: DomNode; documentElement: DomNode };

/**
 * Returns the text of a page under its headings. Readability finds the main article. If it finds none, or very little, the
 * whole body is used. `isArticle` skips Readability for HTML that is all content.
 */
export function parseHtml(html: string, options: { isArticle?: boolean } = {}): ParsedDocument {
  const whole = parsePage(html);
  const body = renderSections(whole.body);
  const article = options.isArticle || isDeeperThan(MAX_ARTICLE_DEPTH, whole.body) ? undefined : findArticle(html);
  const sections =
    article && isEnough(article.content, whole.body)
      ? withTitle(renderSections(parsePage(article.content).body), tidy(article.title ?? ""), body)
      : body;
  const title = [article?.title, whole.title, sections.firstHeading, firstLineOf(sections.sections[0]?.text ?? "")]
    .map((text) => tidy(text ?? ""))
    .find((text) => text !== "");
  return { type: "html", sections: sections.sections, ...(title ? { title } : {}) };
}

/** Readability takes the heading that is the title out of an article: it belongs above each of the sections. */
function withTitle<R extends { sections: Section[] }>(article: R, title: string, whole: R): R {
  const headingsOf = ({ sections }: R) => sections.flatMap(({ heading }) => heading?.split(" > ") ?? []);
  const kept = new Set(headingsOf(article));
  const heading = headingsOf(whole).find((one) => title.includes(one) && !kept.has(one));
  if (heading === undefined) return article;
  const under = (inner: string | undefined) => (inner === undefined ? heading : `${heading} > ${inner}`);
  return { ...article, sections: article.sections.map((section) => ({ ...section, heading: under(section.heading) })) };
}

function parsePage(html: string): Page {
  const full = /<body[\s>]/i.test(html) ? html : `<!doctype html><html><head></head><body>${html}</body></html>`;
  const { document } = parseHTML(full) as unknown as { document: Page }; // see `Page`
  return document;
}

function findArticle(html: string): { title?: string; content: string } | undefined {
  try {
    const page = parsePage(html) as unknown as ConstructorParameters<typeof Readability>[0]; // Readability changes it
    const article = new Readability(page, { maxElemsToParse: MAX_ELEMENTS, charThreshold: 200 }).parse();
    if (!article?.content) return undefined;
    return { content: article.content, ...(article.title ? { title: article.title } : {}) };
  } catch {
    return undefined; // a page that Readability fails on is read whole, like a page without an article
  }
}

function isEnough(article: string, body: DomNode): boolean {
  const length = article.replace(/<[^>]*>/g, "").trim().length;
  return length >= MIN_ARTICLE_LENGTH || length * 2 >= (body.textContent ?? "").trim().length;
}
