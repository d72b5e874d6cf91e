import { type DomNode, ELEMENT, TEXT } from "./dom-node.ts";
import { closeStruck, inlineText, isStruck, strike } from "./html-inline.ts";

const MAX_DEPTH = 100;
const lines = new Set("DIV P LI TR SECTION BLOCKQUOTE".split(" "));
const unread = new Set(["SCRIPT", "STYLE", "TEMPLATE"]);

/** Writes preformatted text as Markdown's fenced code, with its language if the page names it. Empty for one without text. */
export function codeOf(root: DomNode): string {
  const parts: string[] = [];
  let struck = 0;
  const write = (text: string) => void (text !== "" && parts.push(struck > 0 ? text.replace(/.+/g, strike) : text));
  const last = () => parts.at(-1)?.at(-1) ?? "\n";
  const visit = (node: DomNode, depth: number): void => {
    if (node.nodeType === TEXT || depth > MAX_DEPTH) return void write(node.textContent ?? "");
    const name = node.nodeName.toUpperCase();
    if (node.nodeType !== ELEMENT || unread.has(name)) return;
    if (name === "BR") return void parts.push("\n");
    const inline = inlineText(node, name, last());
    if (inline !== undefined) return void write(inline);
    if (isStruck(name)) struck += 1;
    if (lines.has(name) && last() !== "\n") parts.push("\n");
    for (const child of node.childNodes) visit(child, depth + 1);
    if (lines.has(name) && last() !== "\n") parts.push("\n");
    if (isStruck(name)) struck -= 1;
  };
  visit(root, 0);
  const text = closeStruck(parts.join(""))
    .replace(/\r\n?/g, "\n")
    .replace(/^(?:[ \t]*\n)+/, "")
    .trimEnd();
  if (text === "") return "";
  const fence = "`".repeat(Math.max(3, 1 + longestRun(text)));
  return `${fence}${languageOf(root)}\n${text}\n${fence}`;
}

function longestRun(text: string): number {
  let longest = 0;
  for (const [run] of text.matchAll(/`{3,}/g)) longest = Math.max(longest, run.length);
  return longest;
}

function languageOf(root: DomNode): string {
  const [first] = root.childNodes;
  const classes = [root, first].map((node) => node?.getAttribute?.("class") ?? "").join(" ");
  return /(?:^|\s)(?:language|lang|brush:)[-\s]?([\w+#-]{1,20})/.exec(classes)?.[1] ?? "";
}
