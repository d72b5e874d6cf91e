import { getDocumentProxy } from "unpdf";
import type { DocumentWarning } from "../schemas.ts";
import { type Line, sectionsOf } from "./pdf-sections.ts";
import { findTables, type PageTable } from "./pdf-table.ts";
import { firstLineOf, type ParsedDocument, unreadable } from "./section.ts";
import { toMarkdownTable } from "./table.ts";

const MAX_PAGES = 10_000;
/** From here on a smaller text that stands lower begins a line of its own; in parts of the size above it. An index stands higher. */
const MIN_LINE_DROP = 0.75;

type PdfDocument = Awaited<ReturnType<typeof getDocumentProxy>>;

/** Reads a PDF into sections by page and heading. A scanned page without text has none. @throws AppError `source_unreadable` */
export async function parsePdf(bytes: Uint8Array): Promise<ParsedDocument> {
  const pdf = await openPdf(bytes);
  try {
    if (pdf.numPages > MAX_PAGES) throw unreadable(`It has more than ${MAX_PAGES} pages.`);
    const pages: Line[][] = [];
    for (let page = 1; page <= pdf.numPages; page += 1) pages.push(await linesOf(pdf, page));
    const title = (await pdfTitle(pdf)) ?? printedTitle(pages);
    const warnings = warnOfPages(pages);
    return { type: "pdf", sections: sectionsOf(pages), ...(title ? { title } : {}), ...warnings };
  } finally {
    await pdf.loadingTask.destroy();
  }
}

/** Names the pages without text, which may be pictures. */
function warnOfPages(pages: readonly (readonly Line[])[]): { warnings?: DocumentWarning[] } {
  const empty = pages.flatMap((lines, index) => (lines.some(({ text }) => /\S/.test(text)) ? [] : [index + 1]));
  if (empty.length === 0) return {};
  const message = `${empty.length} of ${pages.length} pages have no text that can be read; they may be pictures.`;
  return { warnings: [{ code: "pages_without_text", message, pages: empty }] };
}

async function openPdf(bytes: Uint8Array): Promise<PdfDocument> {
  try {
    return await getDocumentProxy(bytes, { verbosity: 0, useSystemFonts: false });
  } catch (error) {
    const name = error instanceof Error ? error.name : "";
    throw unreadable(name === "PasswordException" ? "The PDF needs a password." : "The PDF is damaged.", error);
  }
}

async function linesOf(pdf: PdfDocument, number: number): Promise<Line[]> {
  const page = await pdf.getPage(number);
  const { items } = await page.getTextContent();
  page.cleanup();
  const lines: Line[] = [];
  const empty = { text: "", size: 0, font: "", longest: 0, y: 0 };
  let line: Line & { longest: number; y: number } = empty;
  const end = () => {
    const text = line.text.replace(/[^\S\n]+/g, " ");
    lines.push({ text, size: line.size, font: line.font });
    line = empty;
  };
  const tables = findTables(items);
  const tableOf = new Map(tables.flatMap((table) => [...table.items].map((item) => [item, table])));
  const shown = new Set<PageTable>();
  for (const [index, item] of items.entries()) {
    if (!("str" in item)) continue;
    const table = tableOf.get(index);
    if (table) {
      if (!shown.has(table)) {
        if (line.text !== "") end();
        lines.push({ text: toMarkdownTable(table), size: 0, font: "", isTable: true });
        shown.add(table);
      }
      continue;
    }
    const length = item.str.trim().length;
    const y: number = item.transform[5];
    // The library goes by the distance alone, so it takes what is close below a large title for a part of it.
    if (length > 0 && item.height < line.size && line.y - y >= MIN_LINE_DROP * line.size) end();
    if (line.text !== "" || length > 0) line = { ...line, text: line.text + item.str };
    if (length > line.longest) {
      line = { ...line, size: Math.round(item.height * 10) / 10, font: item.fontName, longest: length, y };
    }
    if (item.hasEOL) end();
  }
  end();
  return lines;
}

/** What stands largest on the first page that has text: its first such line. */
function printedTitle(pages: readonly (readonly Line[])[]): string | undefined {
  const lines = pages.find((page) => page.some(hasWord))?.filter(hasWord) ?? [];
  const size = Math.max(...lines.map((line) => line.size));
  return firstLineOf(lines.find((line) => line.size === size)?.text ?? "");
}

const hasWord = ({ text, isTable }: Line) => !isTable && /\p{L}{2}/u.test(text);

async function pdfTitle(pdf: PdfDocument): Promise<string | undefined> {
  const { info } = await pdf.getMetadata();
  const title = "Title" in info && typeof info.Title === "string" ? info.Title.trim() : "";
  return title === "" || /^untitled/i.test(title) ? undefined : title;
}
