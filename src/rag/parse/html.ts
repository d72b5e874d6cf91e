import type { DocumentWarning } from "../schemas.ts";
import type { DomNode } from "./dom-node.ts";
import { findArticle, holderOf } from "./html-article.ts";
import { type Page, parsePage } from "./html-page.ts";
import { measureParts, type PageParts } from "./html-parts.ts";
import { type Choice, isDeeperThan, renderSections } from "./html-sections.ts";
import { textOf } from "./html-table.ts";
import { firstLineOf, type ParsedDocument, tidy } from "./section.ts";

const MAX_ARTICLE_DEPTH = 100; // in deep markup, Readability takes more than quadratic time
/** An article holds at least this share of a page's own words, else the whole page is read. */
const MIN_ARTICLE_SHARE = 0.85;
/** A smaller share of them is told. */
const MIN_TOLD_SHARE = 0.9;
/** Remarks and warnings of a page, which are read wherever they stand. */
const remarkRoles = new Set(["note", "alert", "complementary", "doc-tip", "doc-notice"]);
const REMARK =
  /(?:^|[\s_-])(?:aside|sidebar\w*|note|notice|remark|tip|hint|important|warning|caution|danger|attention|admonition\w*|legend|Mso(?:Header|Footer)|footnotes?)(?:$|[\s_-])/i;

/**
 * Returns the text of a page under its headings: of the part that Readability finds the article in if that has nearly all of
 * the page's own words, else of the whole page. `isArticle` is HTML that is all content.
 */
export function parseHtml(html: string, options: { isArticle?: boolean } = {}): ParsedDocument {
  const page = parsePage(html);
  const chosen = options.isArticle ? { title: "", warnings: [] } : chooseParts(page, html);
  const { sections, firstHeading, left } = renderSections(page, chosen.choice);
  const title = [chosen.title, page.title, firstHeading, firstLineOf(sections[0]?.text ?? "")]
    .map((text) => tidy(text ?? ""))
    .find((text) => text !== "");
  const warnings = [...chosen.warnings, ...leftWarning(left)];
  return { type: "html", sections, ...(title ? { title } : {}), ...(warnings.length > 0 ? { warnings } : {}) };
}

type Chosen = { title: string; choice?: Choice; warnings: DocumentWarning[] };

/** Chooses what is read of a page. */
function chooseParts(page: Page, html: string): Chosen {
  const article = isDeeperThan(MAX_ARTICLE_DEPTH, page) ? {} : findArticle(parsePage(html));
  const title = tidy(article.title ?? "");
  const holder = holderOf(page, article);
  if (holder?.getAttribute && holder.nodeName.toUpperCase() !== "BODY") {
    const isKept = (node: DomNode) => node === holder || isRemark(node) || isTitle(node, title);
    const parts = measureParts(page, isKept);
    if (parts.own > 0 && parts.kept >= MIN_ARTICLE_SHARE * parts.own)
      return { title, choice: { leftOut: parts.linkLists, isKept }, warnings: shareWarning(parts) };
  }
  const { linkLists: leftOut } = measureParts(page);
  return { title, choice: { leftOut, isKept: () => true }, warnings: [] };
}

function isRemark(node: DomNode): boolean {
  if (node.nodeName.toUpperCase() === "ASIDE") return true;
  return remarkRoles.has(node.getAttribute?.("role") ?? "") || REMARK.test(node.getAttribute?.("class") ?? "");
}

/** Whether a node is the heading of the whole page. */
function isTitle(node: DomNode, title: string): boolean {
  const level = /^H([1-6])$/i.exec(node.nodeName)?.[1];
  if (level === undefined) return false;
  const text = textOf(node);
  return level === "1" || (text !== "" && title.includes(text));
}

function shareWarning({ own, kept }: PageParts): DocumentWarning[] {
  if (kept >= MIN_TOLD_SHARE * own) return [];
  const percent = Math.floor((100 * kept) / own);
  const message = `It holds ${percent} % of the page's own words: what stands outside of its article is left out.`;
  return [{ code: "text_left_out", message }];
}

function leftWarning({ pictures, objects }: { pictures: number; objects: number }): DocumentWarning[] {
  const counted = (count: number, one: string, many: string) => (count === 1 ? `one ${one}` : `${count} ${many}`);
  const parts = [
    ...(pictures > 0
      ? [counted(pictures, "picture without a text of its own", "pictures without a text of their own")]
      : []),
    ...(objects > 0 ? [counted(objects, "embedded object", "embedded objects")] : []),
  ];
  if (parts.length === 0) return [];
  return [{ code: "parts_left_out", message: `It does not hold what the page shows in ${parts.join(" and ")}.` }];
}
