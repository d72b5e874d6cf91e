import { nameOf } from "./csv.ts";
import { readShapes } from "./office-drawing.ts";
import { readGraphics } from "./office-graphics.ts";
import { makeRepetition } from "./office-grid.ts";
import { makeLeftOut } from "./office-left-out.ts";
import { findRelated, type OfficePackage, titleOf } from "./office-package.ts";
import { childOf, elementsOf, readTree, type XmlNode } from "./office-xml.ts";
import { type ParsedDocument, type Section, tidy } from "./section.ts";
import { readFormats } from "./xlsx-format.ts";
import { readSheet, type SheetContext } from "./xlsx-sheet.ts";
import { readStrings } from "./xlsx-strings.ts";
import { writeSheet } from "./xlsx-tables.ts";

/**
 * Reads a workbook: each sheet that is shown a section with its name as heading, its tables as Markdown, formulas by the
 * results that are stored, texts in boxes behind them. @throws AppError `source_unreadable`
 */
export async function parseXlsx(file: OfficePackage, main: string, name: string): Promise<ParsedDocument> {
  const root = await readTree(file.read(main));
  const tree = async (type: string): Promise<XmlNode | undefined> => {
    const part = await findRelated(file, main, type);
    return part === undefined ? undefined : readTree(file.read(part));
  };
  const leftOut = makeLeftOut();
  const context: SheetContext = {
    strings: await readStrings(file, main),
    formats: readFormats(await tree("styles"), {
      isFrom1904: isOn(childOf(root, "x:workbookPr")?.attributes.date1904),
    }),
    leftOut,
    spent: { cells: 0, characters: 0 },
  };
  const repetition = makeRepetition();
  const links = await file.relationships(main);
  const sections: Section[] = [];
  const read = new Set<string>();
  for (const { attributes } of elementsOf(childOf(root, "x:sheets"))) {
    const { name: sheetName = "", state = "visible" } = attributes;
    const link = links.get(attributes["r:id"] ?? "");
    if (!link || !file.has(link.target) || read.has(link.target)) continue;
    read.add(link.target);
    if (state !== "visible") {
      leftOut.add("hiddenSheet");
      continue;
    }
    const sheet = await readSheet(file, link.target, context);
    const drawing = await findRelated(file, link.target, "drawing");
    const texts = [
      ...writeSheet(sheet, repetition),
      ...(drawing ? await readDrawing(file, drawing, { leftOut, repetition }) : []),
    ];
    const text = tidy(texts.join("\n\n"));
    const heading = sheetName.trim();
    if (text !== "") sections.push({ text: `${heading}\n\n${text}`, headings: [heading] });
  }
  const title = (await titleOf(file)) ?? nameOf(name) ?? sections[0]?.headings?.[0];
  return { type: "xlsx", sections, ...(title ? { title } : {}), ...leftOut.warnings() };
}

type Rest = { leftOut: SheetContext["leftOut"]; repetition: ReturnType<typeof makeRepetition> };

/** What lies over the cells of a sheet: boxes of text, charts, pictures. */
async function readDrawing(file: OfficePackage, part: string, rest: Rest): Promise<string[]> {
  const context = { ...rest, hasLists: false, graphics: await readGraphics(file, part) };
  return readShapes(await readTree(file.read(part)), context).map(({ text }) => text);
}

function isOn(value: string | undefined): boolean {
  return value === "1" || value === "true";
}
