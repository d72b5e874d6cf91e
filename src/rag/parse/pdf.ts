import { getDocumentProxy } from "unpdf";
import type { OcrOptions } from "./ocr.ts";
import { collectFonts } from "./pdf-fonts.ts";
import type { Line } from "./pdf-line.ts";
import { makePageReader, type PageRead } from "./pdf-page.ts";
import { sectionsOf } from "./pdf-sections.ts";
import { type Missing, missingParts, toWarnings } from "./pdf-warnings.ts";
import { firstLineOf, type ParsedDocument, unreadable } from "./section.ts";

const MAX_PAGES = 10_000;

type PdfDocument = Awaited<ReturnType<typeof getDocumentProxy>>;

/**
 * Reads a PDF into sections by page and heading. Pages that are pictures are read by the recognition of text where `ocr` says
 * so. What is left out is in the warnings. @throws AppError `source_unreadable`
 */
export async function parsePdf(bytes: Uint8Array, { ocr }: { ocr?: OcrOptions } = {}): Promise<ParsedDocument> {
  const startedAt = performance.now();
  const pdf = await openPdf(bytes);
  try {
    if (pdf.numPages > MAX_PAGES) throw unreadable(`It has more than ${MAX_PAGES} pages.`);
    const pages = await readPages(pdf);
    const missing = missingParts(pages, Object.keys((await pdf.getAttachments()) ?? {}).length);
    const title = await pdfTitle(pdf);
    if (ocr && missing.withoutText.length > 0) {
      const withinMs = ocr.withinMs - (performance.now() - startedAt);
      await recognize(bytes, pages, missing, { ...ocr, withinMs });
    }
    const lines = pages.map((page) => page.lines);
    const sections = sectionsOf(lines);
    if (sections.length === 0) throw unreadable(reasonOf(missing));
    const [shown, warnings] = [title ?? printedTitle(lines), toWarnings(missing)];
    return { type: "pdf", sections, ...(shown && { title: shown }), ...(warnings.length > 0 && { warnings }) };
  } finally {
    await pdf.loadingTask.destroy();
  }
}

/** Pictures are not decoded: it is enough to know where they are. */
async function openPdf(bytes: Uint8Array): Promise<PdfDocument> {
  try {
    const options = { verbosity: 0, useSystemFonts: false, maxImageSize: 0, fontExtraProperties: true };
    return await getDocumentProxy(new Uint8Array(bytes), options); // a copy, which the library takes away
  } catch (error) {
    const name = error instanceof Error ? error.name : "";
    throw unreadable(name === "PasswordException" ? "The PDF needs a password." : "The PDF is damaged.", error);
  }
}

/** Reads the pages, and once more those that have letters of fonts which turn out to be unreadable, without these. */
async function readPages(pdf: PdfDocument): Promise<PageRead[]> {
  const fonts = collectFonts();
  const reader = makePageReader(pdf, fonts.add);
  const pages: PageRead[] = [];
  for (let page = 1; page <= pdf.numPages; page += 1) pages.push(await reader.read(page));
  const bad = fonts.unreadable();
  for (const [index, { fonts: used }] of pages.entries()) {
    if ([...used].some((font) => bad.has(font))) pages[index] = await reader.read(index + 1, bad);
  }
  return pages;
}

/** Adds to pages without text what is recognized on them. */
async function recognize(bytes: Uint8Array, pages: PageRead[], missing: Missing, ocr: OcrOptions): Promise<void> {
  const { recognizePages } = await import("./pdf-ocr.ts");
  const found = await recognizePages(bytes, missing.withoutText, ocr);
  for (const [number, text] of found) {
    const lines = text.split("\n").map((line) => ({ text: line, size: 0, font: "", y: 0 }));
    pages[number - 1]?.lines.push(...lines);
  }
  missing.byOcr = missing.withoutText.filter((page) => found.has(page));
  missing.unread = missing.withoutText.filter((page) => !found.has(page));
  missing.withoutText = [];
  missing.unreadableFonts = missing.unreadableFonts.filter((page) => !found.has(page));
}

function reasonOf({ unreadableFonts, withoutText, unread }: Missing): string {
  if (unreadableFonts.length > 0)
    return "Its fonts do not say which letters their codes stand for, so there is no text in it.";
  if (unread.length > 0) return "There is no text in it, and none was recognized in its pictures.";
  return withoutText.length > 0 ? "There is no text in it, only pictures, as in a scan." : "There is no text in it.";
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
  return title === "" || isNoTitle(title) ? undefined : title;
}

const fileEnding =
  /\.(?:dvi|tex|ps|eps|pdf|indd|indb|idml|qxd|qxp|fm|pmd|p65|pub|ai|cdr|svg|vsdx?|dwg|docx?|docm|dotx?|rtf|odt|ott|wpd|pages|xlsx?|ods|pptx?|ppsx?|odp|key|html?|txt|md|rst|tmp)$/i;
const program = /^(?:microsoft (?:word|excel|powerpoint|publisher|visio)|adobe \w+|quarkxpress|coreldraw|print) - /i;
const nothing =
  /^(?:untitled|unbenannt|ohne titel|sans titre|(?:new )?document|dokument|diapositive|slide|folie|title|titel|powerpoint[ -]pr\S+|no title|none|null)(?:[ _-]?\d+)?$/i;

/** Whether what a PDF's metadata name as its title is none: the name of a file, or what a program writes by itself. */
function isNoTitle(title: string): boolean {
  return (
    fileEnding.test(title) || program.test(title) || nothing.test(title) || /^(?:[a-z]:\\|file:|\/)\S+/i.test(title)
  );
}
