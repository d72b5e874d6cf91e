import { type DomNode, ELEMENT, TEXT } from "./dom-node.ts";
import { holdsAny, makeRepetition, readTable, textOf } from "./html-table.ts";
import { collectSections } from "./section.ts";
import { toMarkdownTable } from "./table.ts";

const KEPT_BLANK = "\ue000"; // of the private use area
const MAX_DEPTH = 400; // deeper markup is reduced to its text
const skipped = new Set("SCRIPT STYLE NOSCRIPT TEMPLATE SVG IFRAME OBJECT NAV HEAD BUTTON".split(" "));
const blocks = new Set(
  "P DIV SECTION ARTICLE MAIN HEADER FOOTER ASIDE UL OL DL DT DD TABLE TR BLOCKQUOTE PRE FIGURE FIGCAPTION FORM HR".split(
    " ",
  ),
);

/** A cell that holds one of these is a part of a page, not of a table. */
const partsOfLayout = new Set("H1 H2 H3 H4 H5 H6 TABLE PRE".split(" "));

/** Returns the text below a node, cut at its headings. Lists keep dashes, code its lines; tables become Markdown. */
export function renderSections(root: DomNode) {
  const found = collectSections();
  const repetition = makeRepetition();
  let parts: string[] = [];

  const close = () => {
    const text = parts.join("").replace(/(?<! ) *\n */g, "\n");
    found.add(text.replaceAll(KEPT_BLANK, " "));
    parts = [];
  };
  const heading = (level: number, text: string) => {
    if (text === "") return;
    close();
    found.enter(level, text);
    parts.push(`${text}\n\n`);
  };
  const visit = (node: DomNode, depth: number): void => {
    if (node.nodeType === TEXT) {
      parts.push((node.textContent ?? "").replace(/\s+/g, " "));
      return;
    }
    const name = node.nodeName.toUpperCase();
    if (node.nodeType !== ELEMENT || skipped.has(name)) return;
    const level = /^H([1-6])$/.exec(name)?.[1];
    if (level) return void heading(Number(level), inline(node.textContent));
    if (name === "BR") return void parts.push("\n");
    if (name === "PRE") return void parts.push("\n\n", keepBlanks(node.textContent ?? ""), "\n\n");
    if (depth > MAX_DEPTH) return void parts.push(inline(node.textContent));
    if (name === "TABLE") {
      const table = readTable(node, repetition);
      if (table) return void parts.push("\n\n", toMarkdownTable(table), "\n\n");
    }
    const isCell = name === "TD" || name === "TH";
    if (isCell && !holdsAny(node, partsOfLayout)) return void parts.push(textOf(node), " | ");
    if (name === "LI") parts.push("\n- ");
    else if (blocks.has(name)) parts.push(name === "TR" || name === "DD" ? "\n" : "\n\n");
    for (const child of node.childNodes) visit(child, depth + 1);
    if (blocks.has(name) || isCell) parts.push("\n");
  };

  for (const child of root.childNodes) visit(child, 0);
  close();
  return found;
}

/** Whether markup below a node is nested deeper than `depth`. */
export function isDeeperThan(depth: number, root: DomNode): boolean {
  let level: DomNode[] = [root];
  for (let at = 0; at < depth && level.length > 0; at += 1) level = level.flatMap(({ childNodes }) => [...childNodes]);
  return level.length > 0;
}

function inline(text: string | null): string {
  return (text ?? "").replace(/\s+/g, " ").trim();
}

/** Marks the blanks of code, so that the folding of blanks keeps its indentation; `close` turns them back. */
function keepBlanks(text: string): string {
  return text.replace(/[ \t]/g, KEPT_BLANK);
}
