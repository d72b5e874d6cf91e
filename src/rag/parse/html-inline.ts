import { type DomNode, ELEMENT, TEXT, walk } from "./dom-node.ts";
import { mathText } from "./html-math.ts";

const MAX_SCRIPT = 60; // characters of a superscript or subscript; a longer one is text in small letters
const MAX_SCRIPT_NODES = 40;
const MAX_SCRIPTS = 3; // in each other
const ORDINAL = /^(?:st|nd|rd|th|er|re|ème)$/i;
/** What of a superscript or subscript needs no brackets. */
const ONE_TERM = /^[+−–-]?[\p{L}\p{N}.,'′]+$/u;
const struckNames = new Set(["DEL", "S", "STRIKE"]);
const STRUCK = "\ufdd1"; // no characters of any text
const UNSTRUCK = "\ufdd2";

export const isStruck = (name: string): boolean => struckNames.has(name);

/** Marks a text that is struck out; `closeStruck` writes the marks. Blanks around it stay outside. */
export function strike(text: string): string {
  return text.replace(/\S.*/s, (rest) => {
    const core = rest.trimEnd();
    return STRUCK + core + UNSTRUCK + rest.slice(core.length);
  });
}

/** Writes the marks of struck text as Markdown does, those of neighbours once. */
export function closeStruck(text: string): string {
  return text.replace(/\ufdd2([^\S\n]*)\ufdd1/g, "$1").replace(/[\ufdd1\ufdd2]/g, "~~");
}

/**
 * The text that stands for an element: a picture's `alt`, a superscript or subscript as `^` or `_`, a formula on one line, the
 * labels of a drawing, a reading in brackets. `before` is the last character in front of it. Undefined for every other element.
 */
export function inlineText(node: DomNode, name: string, before: string, scripts = 0): string | undefined {
  switch (name) {
    case "IMG":
      return apart(altOf(node), node, before);
    case "SUP":
    case "SUB":
      return scripts >= MAX_SCRIPTS ? undefined : scriptText(node, name === "SUP" ? "^" : "_", before, scripts);
    case "MATH":
      return apart(mathText(node), node, before);
    case "SVG":
      return apart(labelsOf(node), node, before);
    case "RT": // how the word before it is read aloud
      return `(${(node.textContent ?? "").trim()})`;
    case "RP":
      return "";
    default:
      return undefined;
  }
}

/** The text that a picture has for who does not see it. */
export function altOf(picture: DomNode): string {
  const text = ["alt", "aria-label", "title"]
    .map((name) => picture.getAttribute?.(name))
    .find((value) => value != null);
  return (text ?? "").replace(/\s+/g, " ").trim();
}

function apart(text: string, node: DomNode, before: string): string {
  if (text === "") return "";
  const next = node.nextSibling?.nodeType === TEXT ? (node.nextSibling.textContent ?? "").slice(0, 1) : " ";
  return `${isPartOfWord(before) ? " " : ""}${text}${isPartOfWord(next) ? " " : ""}`;
}

const isPartOfWord = (character: string) => /[\p{L}\p{N}]/u.test(character);

function scriptText(node: DomNode, mark: "^" | "_", before: string, scripts: number): string | undefined {
  const text = shortText(node, scripts + 1);
  if (text === undefined || text === "") return text;
  const { nextSibling } = node;
  const after = nextSibling?.nodeType === TEXT ? (nextSibling.textContent ?? "").slice(0, 1) : "";
  const touches = /\S/.test(before) || isPartOfWord(after);
  if (!touches || !/^[\p{L}\p{N}+−–-]/u.test(text) || (/\d$/.test(before) && ORDINAL.test(text))) return text;
  return mark + (ONE_TERM.test(text) ? text : `(${text})`);
}

/** The text of a few nodes; undefined if it is longer. */
function shortText(root: DomNode, scripts: number): string | undefined {
  let text = "";
  let nodes = 0;
  const isLong = () => nodes > MAX_SCRIPT_NODES || text.length > MAX_SCRIPT;
  walk(root, (node) => {
    nodes += 1;
    if (isLong()) return false;
    if (node.nodeType === TEXT) text += (node.textContent ?? "").slice(0, MAX_SCRIPT + 1);
    if (node.nodeType !== ELEMENT) return false;
    const name = node.nodeName.toUpperCase();
    const inner = inlineText(node, name, text.at(-1) ?? "", scripts);
    if (inner === undefined && (name === "SUP" || name === "SUB")) nodes = MAX_SCRIPT_NODES; // it is too long already
    text += inner ?? "";
    return inner === undefined;
  });
  return isLong() ? undefined : text.replace(/\s+/g, " ").trim();
}

/** The texts in a drawing; without one, its title. */
function labelsOf(drawing: DomNode): string {
  const labels: string[] = [];
  let title = "";
  walk(drawing, (node) => {
    const name = node.nodeName.toUpperCase();
    if (node.nodeType !== ELEMENT || name === "STYLE" || name === "SCRIPT") return false;
    if (name === "TEXT") labels.push((node.textContent ?? "").replace(/\s+/g, " ").trim());
    if (name === "TITLE") title ||= (node.textContent ?? "").replace(/\s+/g, " ").trim();
    return name !== "TEXT" && name !== "TITLE";
  });
  const isDecoration = drawing.getAttribute?.("aria-hidden") === "true";
  return labels.filter((label) => label !== "").join(" ") || (isDecoration ? "" : title);
}
