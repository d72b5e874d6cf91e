import { type DomNode, ELEMENT } from "./dom-node.ts";

const MAX_DEPTH = 50; // of markup; what is deeper is reduced to its text
const unread = new Set(["ANNOTATION", "ANNOTATION-XML", "MPHANTOM"]);
const INVISIBLE = /[\u2061-\u2064\u200b]/g; // the operators "applied to", "times" and "and" that are not shown

/** Writes a formula of MathML on one line: `(a+b)/2`, `10^6`, `x_i^2`, `sqrt(2)`. */
export function mathText(node: DomNode, depth = 0): string {
  if (node.nodeType !== ELEMENT || depth > MAX_DEPTH) return (node.textContent ?? "").replace(/\s+/g, " ").trim();
  const name = node.nodeName.toUpperCase();
  if (unread.has(name)) return "";
  const parts = [...node.childNodes]
    .filter((child) => child.nodeType === ELEMENT || (child.textContent ?? "").trim() !== "")
    .map((child) => mathText(child, depth + 1));
  return form(name, parts, node).replace(INVISIBLE, "");
}

function form(name: string, parts: string[], node: DomNode): string {
  const [first = "", second = "", third = ""] = parts;
  switch (name) {
    case "MSUP":
    case "MOVER":
      return `${grouped(first)}^${grouped(second)}`;
    case "MSUB":
    case "MUNDER":
      return `${grouped(first)}_${grouped(second)}`;
    case "MSUBSUP":
    case "MUNDEROVER":
      return `${grouped(first)}_${grouped(second)}^${grouped(third)}`;
    case "MFRAC":
      return `${grouped(first)}/${grouped(second)}`;
    case "MSQRT":
      return `sqrt(${parts.join("")})`;
    case "MROOT":
      return `root(${first}, ${second})`;
    case "MFENCED":
      return `${node.getAttribute?.("open") ?? "("}${parts.join(", ")}${node.getAttribute?.("close") ?? ")"}`;
    case "MTABLE":
      return `[${parts.join("; ")}]`;
    case "MTR":
      return parts.join(", ");
    default:
      return parts.join("");
  }
}

/** In brackets, unless it is one number, one name or one sign. */
function grouped(text: string): string {
  return /^(?:[\p{L}\p{N}.,]+|.)$/su.test(text) ? text : `(${text})`;
}
