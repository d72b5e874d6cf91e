import { collectSections } from "./section.ts";

/** The properties of a DOM node that are read here. */
export type DomNode = { nodeType: number; nodeName: string; textContent: string | null; childNodes: Iterable<DomNode> };

const ELEMENT = 1;
const TEXT = 3;
const KEPT_BLANK = "\ue000"; // of the private use area
const MAX_DEPTH = 400; // deeper markup is reduced to its text
const skipped = new Set("SCRIPT STYLE NOSCRIPT TEMPLATE SVG IFRAME OBJECT NAV HEAD BUTTON".split(" "));
const blocks = new Set(
  "P DIV SECTION ARTICLE MAIN HEADER FOOTER ASIDE UL OL DL DT DD TABLE TR BLOCKQUOTE PRE FIGURE FIGCAPTION FORM HR".split(
    " ",
  ),
);

/** Returns the text below a node, cut at its headings. Lists keep dashes, table rows their cells, code its lines. */
export function renderSections(root: DomNode) {
  const found = collectSections();
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
    if (name === "TD" || name === "TH") return void parts.push(inline(node.textContent), " | ");
    if (depth > MAX_DEPTH) return void parts.push(inline(node.textContent));
    if (name === "LI") parts.push("\n- ");
    else if (blocks.has(name)) parts.push(name === "TR" || name === "DD" ? "\n" : "\n\n");
    for (const child of node.childNodes) visit(child, depth + 1);
    if (blocks.has(name)) parts.push("\n");
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
