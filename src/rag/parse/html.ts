import { Readability } from "@mozilla/readability";
import { parseHTML } from "linkedom";
import type { DomNode } from "./dom-node.ts";
import { isDeeperThan, renderSections } from "./html-sections.ts";
import { makeRepetition, readTable } from "./html-table.ts";
import { firstLineOf, type ParsedDocument, type Section, tidy } from "./section.ts";
import { toMarkdownTable } from "./table.ts";

const MIN_ARTICLE_LENGTH = 500; // a shorter article must be half of the page, else the whole page is used
const MAX_ELEMENTS = 200_000;
const MAX_LINK_SHARE = 0.5; // of a table's text
const MAX_ARTICLE_DEPTH = 100; // in deep markup, Readability takes more than quadratic time

/** The part of a parsed page that this file uses. */
type Page = {
  title?: string;
  body: ChangeableNode;
  documentElement: DomNode;
  createElement(name: string): ChangeableNode;
};
type ChangeableNode = Omit<DomNode, "childNodes"> & {
  childNodes: Iterable<ChangeableNode>;
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  replaceWith(node: ChangeableNode): void;
};

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
  const headingsOf = ({ sections }: R) => sections.flatMap(({ headings }) => headings ?? []);
  const kept = new Set(headingsOf(article));
  const heading = headingsOf(whole).find((one) => title.includes(one) && !kept.has(one));
  if (heading === undefined) return article;
  const under = (inner: readonly string[] = []) => [heading, ...inner];
  return {
    ...article,
    sections: article.sections.map((section) => ({ ...section, headings: under(section.headings) })),
  };
}

function parsePage(html: string): Page {
  const full = /<body[\s>]/i.test(html) ? html : `<!doctype html><html><head></head><body>${html}</body></html>`;
  const { document } = parseHTML(full) as unknown as { document: Page }; // see `Page`
  return document;
}

function findArticle(html: string): { title?: string; content: string } | undefined {
  try {
    const page = parsePage(html);
    keepTables(page);
    const document = page as unknown as ConstructorParameters<typeof Readability>[0]; // Readability changes it
    const article = new Readability(document, { maxElemsToParse: MAX_ELEMENTS, charThreshold: 200 }).parse();
    if (!article?.content) return undefined;
    return { content: article.content, ...(article.title ? { title: article.title } : {}) };
  } catch {
    return undefined; // a page that Readability fails on is read whole, like a page without an article
  }
}

/**
 * Writes the tables of data of a page as text that Readability leaves alone: where a table is most of an article, it would
 * take it apart. Tables of links are menus, and stay.
 */
function keepTables(page: Page): void {
  const repetition = makeRepetition();
  const visit = (node: ChangeableNode): void => {
    const table = node.nodeName.toUpperCase() === "TABLE" ? readTable(node, repetition) : undefined;
    if (table === undefined || isMenu(node)) return void [...node.childNodes].forEach(visit);
    const text = page.createElement("pre");
    for (const name of ["class", "id", "role"]) text.setAttribute(name, node.getAttribute(name) ?? "");
    text.textContent = toMarkdownTable(table);
    node.replaceWith(text);
  };
  [...page.body.childNodes].forEach(visit);
}

function isMenu(table: DomNode): boolean {
  let links = 0;
  const visit = (node: DomNode): void => {
    if (node.nodeName.toUpperCase() === "A") links += (node.textContent ?? "").length;
    else for (const child of node.childNodes) visit(child);
  };
  visit(table);
  return links > MAX_LINK_SHARE * (table.textContent ?? "").length;
}

function isEnough(article: string, body: DomNode): boolean {
  const length = article.replace(/<[^>]*>/g, "").trim().length;
  return length >= MIN_ARTICLE_LENGTH || length * 2 >= (body.textContent ?? "").trim().length;
}
