import { type DomNode, ELEMENT, TEXT } from "./dom-node.ts";
import { codeOf } from "./html-code.ts";
import { altOf, closeStruck, inlineText, isStruck, strike } from "./html-inline.ts";
import { type ListMarks, marksOf } from "./html-list.ts";
import { isLeftOut } from "./html-parts.ts";
import { holdsAny, makeRepetition, readTable, textOf } from "./html-table.ts";
import { collectSections } from "./section.ts";
import { toMarkdownTable } from "./table.ts";

const KEPT_BLANK = "\ufdd0"; // no character of any text
const MAX_DEPTH = 400; // deeper markup is reduced to its text
const MIN_PICTURE = 32; // pixels; a smaller one is an icon
const blocks = new Set([
  ..."P DIV SECTION ARTICLE MAIN HEADER FOOTER ASIDE ADDRESS CENTER BLOCKQUOTE FIGURE FIGCAPTION HGROUP HR".split(" "),
  ..."UL OL DL DT DD MENU DIR TABLE CAPTION TR FORM FIELDSET LEGEND OPTION DETAILS SUMMARY DIALOG".split(" "),
]);
const code = new Set(["PRE", "XMP", "LISTING"]);
const embedded = new Set(["IFRAME", "EMBED", "OBJECT", "APPLET", "VIDEO", "AUDIO", "CANVAS"]);

/** A cell that holds one of these is a part of a page, not of a table. */
const partsOfLayout = new Set(["H1", "H2", "H3", "H4", "H5", "H6", "TABLE", ...code]);

/** What of a page is read: the elements that `isKept` says, with all that they hold, but for those of `leftOut`. */
export type Choice = { leftOut: ReadonlySet<DomNode>; isKept(node: DomNode): boolean };
const everything: Choice = { leftOut: new Set(), isKept: () => true };

/** `list`: the marks of the list around. `isOutside`: it stands outside of what is kept. */
type Place = { depth: number; list?: ListMarks; isOutside: boolean };

/**
 * Returns the text below a node, cut at its headings, and how many pictures and objects it holds that have no text. Lists keep
 * their numbers, code its lines; tables become Markdown.
 */
export function renderSections(root: DomNode, choice: Choice = everything) {
  const found = collectSections();
  const repetition = makeRepetition();
  const out = makeWriter();
  const left = { pictures: 0, objects: 0 };
  let struck = 0;

  const close = () => found.add(out.take());
  const heading = (level: number, text: string) => {
    if (text === "") return;
    close();
    found.enter(level, text);
    out.block(`${text}\n\n`);
  };
  const write = (text: string) => out.text(struck > 0 ? strike(text) : text);
  const visitChildren = (node: DomNode, place: Place) => {
    for (const child of node.childNodes) visit(child, { ...place, depth: place.depth + 1 });
  };
  const visit = (node: DomNode, place: Place): void => {
    if (node.nodeType === TEXT) return void (place.isOutside || write(node.textContent ?? ""));
    if (node.nodeType !== ELEMENT) return;
    const name = node.nodeName.toUpperCase();
    const isOutside = place.isOutside && !choice.isKept(node);
    if (embedded.has(name) && !isOutside) left.objects += 1;
    if (isLeftOut(node) || choice.leftOut.has(node)) return;
    if (isOutside) return void visitChildren(node, place);
    if (name === "IMG" && isMissed(node)) left.pictures += 1;
    const level = /^H([1-6])$/.exec(name)?.[1];
    if (level) return void heading(Number(level), textOf(node, struck > 0));
    if (name === "BR") return void out.block("\n");
    if (code.has(name)) return void out.block(`\n\n${keepBlanks(codeOf(node))}\n\n`);
    const inline = inlineText(node, name, out.last());
    if (inline !== undefined) return void write(inline);
    if (place.depth > MAX_DEPTH) return void write(node.textContent ?? "");
    if (name === "TABLE") {
      const table = readTable(node, repetition);
      if (table) return void out.block(`\n\n${toMarkdownTable(table)}\n\n`);
    }
    const isCell = name === "TD" || name === "TH";
    if (isCell && !holdsAny(node, partsOfLayout)) return void out.block(`${textOf(node, struck > 0)} | `);
    if (name === "LI") out.item(place.list?.(node) ?? "-");
    else if (blocks.has(name)) out.end(name === "TR" || name === "DD" ? "\n" : "\n\n");
    if (isStruck(name)) struck += 1;
    const isList = name === "OL" || name === "UL" || name === "MENU" || name === "DIR";
    visitChildren(node, { ...place, isOutside, ...(isList ? { list: marksOf(node) } : {}) });
    if (isStruck(name)) struck -= 1;
    if (blocks.has(name) || isCell) out.end("\n");
  };

  for (const child of root.childNodes) visit(child, { depth: 0, isOutside: choice !== everything });
  close();
  return { ...found, left };
}

/** Collects the text of a page. Blanks are folded; an item's mark stands on the line of its first word. */
function makeWriter() {
  let parts: string[] = [];
  let last = "\n";
  let isAfterMark = false;
  const push = (text: string) => {
    if (text === "") return;
    parts.push(text);
    last = text.at(-1) ?? last;
    isAfterMark = false;
  };
  return {
    last: () => last,
    /** Words of a line. */
    text(source: string): void {
      const text = source.replace(/\s+/g, " ");
      push(/[ \n]/.test(last) ? text.replace(/^ /, "") : text);
    },
    /** A text that keeps its lines. */
    block: push,
    /** Ends a line or a paragraph, unless it has only the mark of an item. */
    end: (mark: "\n" | "\n\n") => (isAfterMark ? undefined : push(mark)),
    item(mark: string): void {
      push(`\n${mark} `);
      isAfterMark = true;
    },
    /** What was collected since the last time. */
    take(): string {
      const text = parts.join("").replace(/(?<! ) *\n */g, "\n");
      parts = [];
      last = "\n";
      return closeStruck(text).replaceAll(KEPT_BLANK, " ");
    },
  };
}

/** Whether markup below a node is nested deeper than `depth`. */
export function isDeeperThan(depth: number, root: DomNode): boolean {
  let level: DomNode[] = [root];
  for (let at = 0; at < depth && level.length > 0; at += 1) level = level.flatMap(({ childNodes }) => [...childNodes]);
  return level.length > 0;
}

/** Whether a picture has nothing that says what it shows, and is no icon or ornament (which has an empty `alt`). */
function isMissed(picture: DomNode): boolean {
  const size = (name: string) => Number.parseInt(picture.getAttribute?.(name) ?? "", 10);
  const isSmall = size("width") <= MIN_PICTURE || size("height") <= MIN_PICTURE;
  return altOf(picture) === "" && picture.getAttribute?.("alt") == null && !isSmall;
}

/** Marks the blanks of code, so that the folding of blanks keeps its indentation; `take` turns them back. */
function keepBlanks(text: string): string {
  return text.replace(/[ \t]/g, KEPT_BLANK);
}
