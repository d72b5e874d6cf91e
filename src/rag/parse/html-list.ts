import { type DomNode, ELEMENT } from "./dom-node.ts";

/** What an item begins with: `-`, `7.`, `c)` or `iv)`. */
export type ListMarks = (item: DomNode) => string;

type Style = "decimal" | "alpha" | "roman" | "none";
const LARGEST_ROMAN = 3_999;

/** Gives the items of a list their marks, as a browser numbers them. */
export function marksOf(list: DomNode): ListMarks {
  if (list.nodeName.toUpperCase() !== "OL") return () => "-";
  const isReversed = list.getAttribute?.("reversed") != null;
  const start = integer(list.getAttribute?.("start")) ?? (isReversed ? countItems(list) : 1);
  let next = start;
  return (item) => {
    const value = integer(item.getAttribute?.("value")) ?? next;
    next = value + (isReversed ? -1 : 1);
    const described = [item, list].map(styleOf).find((style) => style !== undefined);
    return format(value, described ?? { style: "decimal", isUpper: false });
  };
}

function integer(text: string | null | undefined): number | undefined {
  const value = Number.parseInt(text ?? "", 10);
  return Number.isSafeInteger(value) ? value : undefined;
}

function countItems(list: DomNode): number {
  let count = 0;
  for (const node of list.childNodes) if (node.nodeType === ELEMENT && node.nodeName.toUpperCase() === "LI") count += 1;
  return count;
}

/** By the attribute `type`, the style, or a class that writers of manuals' pages use, as `loweralpha`. */
function styleOf(node: DomNode): { style: Style; isUpper: boolean } | undefined {
  const type = node.getAttribute?.("type")?.trim() ?? "";
  if (/^[aAiI]$/.test(type)) return { style: /a/i.test(type) ? "alpha" : "roman", isUpper: /[AI]/.test(type) };
  if (type === "1") return { style: "decimal", isUpper: false };
  const words = `${node.getAttribute?.("style") ?? ""} ${node.getAttribute?.("class") ?? ""}`;
  if (/list-style(?:-type)?\s*:\s*none/i.test(words)) return { style: "none", isUpper: false };
  const [, size = "", kind = ""] = /\b(lower|upper)-?(alpha|latin|roman)\b/i.exec(words) ?? [];
  if (kind === "") return undefined;
  return { style: /roman/i.test(kind) ? "roman" : "alpha", isUpper: /upper/i.test(size) };
}

function format(value: number, { style, isUpper }: { style: Style; isUpper: boolean }): string {
  if (style === "none") return "-";
  const isWritten = style === "alpha" || (style === "roman" && value <= LARGEST_ROMAN);
  if (!isWritten || value < 1) return `${value}.`;
  const text = style === "alpha" ? toLetters(value) : toRoman(value);
  return `${isUpper ? text.toUpperCase() : text})`;
}

/** 1 is a, 26 is z, 27 is aa. */
function toLetters(value: number): string {
  let text = "";
  for (let rest = value; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    text = String.fromCharCode(97 + ((rest - 1) % 26)) + text;
  }
  return text;
}

const numerals = Object.entries({
  m: 1000,
  cm: 900,
  d: 500,
  cd: 400,
  c: 100,
  xc: 90,
  l: 50,
  xl: 40,
  x: 10,
  ix: 9,
  v: 5,
  iv: 4,
  i: 1,
});

function toRoman(value: number): string {
  let [text, rest] = ["", value];
  for (const [numeral, size] of numerals) for (; rest >= size; rest -= size) text += numeral;
  return text;
}
