import { type Inline, joinInlines } from "./office-inline.ts";
import { findRelated, type OfficePackage } from "./office-package.ts";
import { childOf, elementsOf, readXml, textIn, type XmlNode } from "./office-xml.ts";
import { unreadable } from "./section.ts";

const MAX_STRINGS = 3_000_000;

/** The texts of a workbook, which its cells name by their numbers. */
export async function readStrings(file: OfficePackage, main: string): Promise<string[]> {
  const strings: string[] = [];
  const part = await findRelated(file, main, "sharedStrings");
  if (part === undefined) return strings;
  await readXml(file.read(part), new Set(["x:sst"]), (item) => {
    if (item.name !== "x:si") return;
    if (strings.length >= MAX_STRINGS) throw unreadable(`It has more than ${MAX_STRINGS} different texts.`);
    strings.push(readRichText(item));
  });
  return strings;
}

/** The text of a cell that has formats within it. How its letters are read is left out. */
export function readRichText(item: XmlNode): string {
  const pieces = elementsOf(item).flatMap((part): Inline[] => {
    if (part.name === "x:t") return [{ text: textIn(part) }];
    if (part.name !== "x:r") return [];
    const look = childOf(part, "x:rPr");
    const text = elementsOf(part)
      .filter(({ name }) => name === "x:t")
      .map(textIn)
      .join("");
    const strike = childOf(look, "x:strike")?.attributes.val ?? (childOf(look, "x:strike") ? "1" : "0");
    const place = childOf(look, "x:vertAlign")?.attributes.val;
    const script = place === "superscript" ? "^" : place === "subscript" ? "_" : undefined;
    return [
      { text, ...(strike === "0" || strike === "false" ? {} : { isStruck: true }), ...(script ? { script } : {}) },
    ];
  });
  return joinInlines(pieces)
    .replace(/_x000D_/g, "")
    .replace(/\s+/g, " ")
    .trim();
}
