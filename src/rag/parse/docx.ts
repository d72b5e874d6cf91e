import { readBlocks } from "./docx-blocks.ts";
import type { Block, DocxContext } from "./docx-context.ts";
import { addNotes } from "./docx-notes.ts";
import { readNumbering } from "./docx-numbering.ts";
import { readStyles } from "./docx-styles.ts";
import { readGraphics } from "./office-graphics.ts";
import { makeRepetition, writeGrid } from "./office-grid.ts";
import { joinInlines } from "./office-inline.ts";
import { makeLeftOut } from "./office-left-out.ts";
import { findRelated, type OfficePackage, titleOf } from "./office-package.ts";
import { readTree, readXml, type XmlNode } from "./office-xml.ts";
import { collectSections, firstLineOf, type ParsedDocument } from "./section.ts";

/** What the body of a document is read in parts of. */
const containers: ReadonlySet<string> = new Set(
  "w:document w:body w:sdt w:sdtContent w:customXml w:ins w:moveTo".split(" "),
);

/**
 * Reads a DOCX as its reader sees it when all changes are accepted: numbers of lists and headings, equations on a line, boxes
 * behind the paragraph that holds them, notes behind the one that refers to them. @throws AppError `source_unreadable`
 */
export async function parseDocx(file: OfficePackage, main: string): Promise<ParsedDocument> {
  const context = await openContext(file, main);
  const found = collectSections();
  let title: string | undefined;
  let parts: string[] = [];
  let wasItem = false;
  const close = () => {
    found.add(parts.join(""));
    parts = [];
  };
  const write = (block: Block) => {
    const { table, isItem = false, isTitle = false } = block;
    const text = table ? writeGrid(table, context.repetition) : block.text;
    const level = block.heading ?? (isTitle && title !== undefined ? 1 : undefined);
    if (isTitle) title ??= text;
    if (level !== undefined) {
      close();
      found.enter(level, text.replace(/\s+/g, " "));
    }
    parts.push(wasItem && isItem ? "\n" : "\n\n", text);
    wasItem = isItem;
  };
  await readXml(file.read(main), containers, (unit) => {
    for (const block of readBlocks(unit, context)) write(block);
  });
  if (context.held.length > 0) write({ text: joinInlines(context.held.splice(0)) });
  close();
  const margins = await readMargins(file, main, context);
  const sections = [...found.sections, ...(margins === "" ? [] : [{ text: margins }])];
  const named = title ?? (await titleOf(file)) ?? found.firstHeading ?? firstLineOf(sections[0]?.text ?? "");
  return { type: "docx", sections, ...(named ? { title: named } : {}), ...context.leftOut.warnings() };
}

async function openContext(file: OfficePackage, main: string): Promise<DocxContext> {
  const tree = async (type: string): Promise<XmlNode | undefined> => {
    const part = await findRelated(file, main, type);
    return part === undefined ? undefined : readTree(file.read(part));
  };
  const styles = readStyles(await tree("styles"));
  const notes = new Map<string, XmlNode>();
  for (const [type, kind] of [
    ["footnotes", "f"],
    ["endnotes", "e"],
  ] as const) {
    const root = await tree(type);
    if (root) addNotes(root, kind, notes);
  }
  return {
    styles,
    numbering: readNumbering(await tree("numbering"), styles.listOf),
    repetition: makeRepetition(),
    leftOut: makeLeftOut(),
    graphics: await readGraphics(file, main),
    notes,
    noted: { f: 0, e: 0 },
    marks: new Map(),
    due: [],
    held: [],
  };
}

/** The heads and feet of pages, each once, unless they are the number of a page. */
async function readMargins(file: OfficePackage, main: string, context: DocxContext): Promise<string> {
  const texts = new Set<string>();
  const parts = [...(await file.relationships(main)).values()].filter(
    ({ type }) => type === "header" || type === "footer",
  );
  for (const target of new Set(parts.map((part) => part.target))) {
    if (!file.has(target)) continue;
    const blocks = readBlocks(await readTree(file.read(target)), context);
    for (const block of blocks) {
      const text = block.table ? writeGrid(block.table, context.repetition) : block.text;
      if (!isPageNumber(text)) texts.add(text);
    }
  }
  return [...texts].join("\n");
}

const wordsOfPages: ReadonlySet<string> = new Set(["", "page", "p", "of", "seite", "von", "sur", "de"]);

function isPageNumber(text: string): boolean {
  return text
    .toLowerCase()
    .split(/[^\p{L}]+/u)
    .every((word) => wordsOfPages.has(word));
}
