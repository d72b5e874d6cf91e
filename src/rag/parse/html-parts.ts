import { type DomNode, ELEMENT, TEXT, walk } from "./dom-node.ts";

/** Elements of which a page shows nothing, or nothing that is text. */
const unread = new Set(
  "SCRIPT STYLE NOSCRIPT TEMPLATE TITLE META LINK BASE NOFRAMES IFRAME EMBED APPLET VIDEO AUDIO CANVAS DATALIST".split(
    " ",
  ),
);
const navigation = new Set(["NAV", "SEARCH"]);
const navigationRoles = new Set(["navigation", "banner", "contentinfo", "search"]);
const lists = new Set(["UL", "OL", "DL", "MENU"]);
const MIN_LINKS = 2;
const MIN_LINK_SHARE = 0.9;
/** Lists of links are what a page is about if its own words are fewer than this share of theirs. */
const MIN_OWN_SHARE = 0.1;

/** Whether an element is no part of the text of a page: it is hidden, a button, or leads to other pages. */
export function isLeftOut(node: DomNode): boolean {
  const name = node.nodeName.toUpperCase();
  if (unread.has(name) || navigation.has(name)) return true;
  const attribute = (of: string) => node.getAttribute?.(of) ?? null;
  const hidden = attribute("hidden");
  if (hidden !== null && hidden.toLowerCase() !== "until-found") return true;
  if (navigationRoles.has(attribute("role")?.trim().toLowerCase() ?? "")) return true;
  if (attribute("aria-hidden") === "true" && isSecondForm(node)) return true;
  return name === "BUTTON" && attribute("aria-expanded") === null; // which is the title of what it opens
}

/** Whether an element shows again, for the eye, the formula right before it. */
function isSecondForm({ previousSibling }: DomNode): boolean {
  if (previousSibling?.nodeType !== ELEMENT) return false;
  return isFormula(previousSibling) || [...previousSibling.childNodes].some(isFormula);
}

const isFormula = ({ nodeName }: DomNode) => nodeName.toUpperCase() === "MATH";

/** What a page is made of. Numbers are characters besides blanks. */
export type PageParts = {
  /** Its own words: outside links, navigation and forms. */
  own: number;
  /** Those of them that stand in the parts that are kept. */
  kept: number;
  /** Lists that are almost only links, unless the page is hardly anything else. */
  linkLists: ReadonlySet<DomNode>;
};

/** Measures a page. `isKept` says which of its elements are kept with all that they hold. */
export function measureParts(root: DomNode, isKept: (node: DomNode) => boolean = () => true): PageParts {
  const linkLists = new Set<DomNode>();
  const openLists: { text: number; linked: number; links: number }[] = [];
  let [text, linked, links, own, kept, listed] = [0, 0, 0, 0, 0, 0];
  let [inLink, inForm, inKept] = [0, 0, 0];
  const count = (node: DomNode, by: 1 | -1) => {
    const name = node.nodeName.toUpperCase();
    if (name === "FORM") inForm += by;
    if (name === "A" && node.getAttribute?.("href") != null) inLink += by;
    if (isKept(node)) inKept += by;
    return name;
  };
  const enter = (node: DomNode): boolean => {
    if (node.nodeType === TEXT) {
      const length = (node.textContent ?? "").replace(/\s+/g, "").length;
      text += length;
      if (inLink > 0) linked += length;
      else if (inForm === 0) own += length;
      if (inLink === 0 && inForm === 0 && inKept > 0) kept += length;
      return false;
    }
    if (node.nodeType !== ELEMENT || isLeftOut(node)) return false;
    const name = count(node, 1);
    if (name === "A") links += 1;
    if (lists.has(name)) openLists.push({ text, linked, links });
    return true;
  };
  const leave = (node: DomNode) => {
    if (!lists.has(count(node, -1))) return;
    const before = openLists.pop();
    if (!before) return;
    const inIt = { text: text - before.text, linked: linked - before.linked, links: links - before.links };
    if (inIt.links < MIN_LINKS || inIt.linked < MIN_LINK_SHARE * inIt.text) return;
    linkLists.add(node);
    listed += openLists.length === 0 ? inIt.text : 0;
  };
  walk(root, enter, leave);
  return { own, kept, linkLists: own < MIN_OWN_SHARE * listed ? new Set() : linkLists };
}
