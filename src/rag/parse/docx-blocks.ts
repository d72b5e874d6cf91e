import type { Block, DocxContext } from "./docx-context.ts";
import { takeDue } from "./docx-notes.ts";
import type { Label } from "./docx-numbering.ts";
import { readLine } from "./docx-runs.ts";
import { lookOf, merged, outlineLevel, type ParagraphStyle } from "./docx-styles.ts";
import { readTable } from "./docx-table.ts";
import { joinInlines } from "./office-inline.ts";
import { childOf, elementsOf, settingOf, type XmlNode } from "./office-xml.ts";

const unread: ReadonlySet<string> = new Set(
  "w:sectPr w:sdtPr w:sdtEndPr w:tblPr w:tblGrid w:tcPr w:customXmlPr".split(" "),
);

/** Reads a paragraph, a table, or what holds some, with the notes that it refers to behind it. */
export function readBlocks(node: XmlNode, context: DocxContext): Block[] {
  const blocks = blocksOf(node, context);
  return [...blocks, ...notesDue(context)];
}

function blocksOf(node: XmlNode, context: DocxContext): Block[] {
  if (unread.has(node.name)) return [];
  if (node.name === "w:p") return readParagraph(node, context);
  if (node.name === "w:tbl") return readTable(node, context, blocksOf);
  if (node.name === "w:altChunk" || node.name === "w:subDoc") context.leftOut.add("object");
  if (node.name === "mc:AlternateContent") {
    for (const form of elementsOf(node)) {
      const blocks = blocksOf(form, context);
      if (blocks.length > 0) return blocks;
    }
    return [];
  }
  return elementsOf(node).flatMap((child) => blocksOf(child, context));
}

/** The notes of a block; a note may refer to another one. */
function notesDue(context: DocxContext): Block[] {
  const blocks: Block[] = [];
  for (let due = takeDue(context); due.length > 0; due = takeDue(context)) {
    for (const { mark, note } of due) {
      const text = blocksOf(note, context).map((block) => block.text.trim());
      blocks.push({ text: `${mark}: ${text.filter((line) => line !== "").join("\n")}` });
    }
  }
  return blocks;
}

function readParagraph(node: XmlNode, context: DocxContext): Block[] {
  const properties = childOf(node, "w:pPr");
  const styleId = settingOf(properties, "w:pStyle");
  const style = context.styles.paragraph(styleId);
  const readBox = (content: XmlNode) => elementsOf(content).flatMap((child) => blocksOf(child, context));
  const { pieces, boxes } = readLine(node, { context, look: style.look, readBox });
  const whole = [...context.held.splice(0), ...pieces];
  const mark = childOf(properties, "w:rPr"); // of the paragraph's end
  if (childOf(mark, "w:del") || childOf(mark, "w:moveFrom")) {
    context.held = whole;
    return boxes;
  }
  const text = joinInlines(whole).trim();
  const isHidden = text === "" && merged([lookOf(mark), style.look]).isHidden === true;
  const label = isHidden ? undefined : labelOf({ properties, styleId, style }, context); // an empty item counts
  return text === "" ? boxes : [toBlock({ text, ...label }, headingOf(properties, style)), ...boxes];
}

type Found = { text: string; label?: Label; level?: number };
type Rank = { heading?: number; isTitle?: boolean };

function toBlock({ text, label, level = 0 }: Found, rank: Rank): Block {
  if (!label) return { text, ...rank };
  const isRanked = rank.heading !== undefined || rank.isTitle;
  if (isRanked) return { text: label.isBullet ? text : `${label.text} ${text}`, ...rank };
  return { text: `${"  ".repeat(level)}${label.text} ${text}`, isItem: true };
}

function headingOf(properties: XmlNode | undefined, style: ParagraphStyle): Rank {
  const level = outlineLevel(properties) ?? style.level ?? 0;
  if (level > 0) return { heading: level };
  return style.isTitle ? { isTitle: true } : {};
}

type Numbered = { properties: XmlNode | undefined; styleId: string | undefined; style: ParagraphStyle };

/** The number of a paragraph, from its own properties or from those of its style. */
function labelOf({ properties, styleId, style }: Numbered, { numbering }: DocxContext) {
  const own = childOf(properties, "w:numPr");
  const id = settingOf(own, "w:numId") ?? style.numbering.id;
  if (id === undefined || id === "0") return undefined;
  const given = Number.parseInt(settingOf(own, "w:ilvl") ?? "", 10);
  const level = Number.isNaN(given) ? (numbering.levelOfStyle(id, styleId) ?? style.numbering.level ?? 0) : given;
  const label = numbering.next(id, level);
  return label ? { label, level } : undefined;
}
