import { getDocumentProxy } from "unpdf";
import { type ParsedDocument, type Section, tidy, unreadable } from "./section.ts";

const MAX_PAGES = 10_000;

type PdfDocument = Awaited<ReturnType<typeof getDocumentProxy>>;

/** Reads each page of a PDF as a section. A scanned page without text has none. @throws AppError `source_unreadable` */
export async function parsePdf(bytes: Uint8Array): Promise<ParsedDocument> {
  const pdf = await openPdf(bytes);
  try {
    if (pdf.numPages > MAX_PAGES) throw unreadable(`It has more than ${MAX_PAGES} pages.`);
    const sections: Section[] = [];
    for (let page = 1; page <= pdf.numPages; page += 1) {
      const text = await pageText(pdf, page);
      if (text !== "") sections.push({ text, page });
    }
    const title = await pdfTitle(pdf);
    return { type: "pdf", sections, ...(title ? { title } : {}) };
  } finally {
    await pdf.loadingTask.destroy();
  }
}

async function openPdf(bytes: Uint8Array): Promise<PdfDocument> {
  try {
    return await getDocumentProxy(bytes, { verbosity: 0, useSystemFonts: false });
  } catch (error) {
    const name = error instanceof Error ? error.name : "";
    throw unreadable(name === "PasswordException" ? "The PDF needs a password." : "The PDF is damaged.", error);
  }
}

async function pageText(pdf: PdfDocument, number: number): Promise<string> {
  const page = await pdf.getPage(number);
  const { items } = await page.getTextContent();
  const text = items.map((item) => ("str" in item ? item.str + (item.hasEOL ? "\n" : "") : "")).join("");
  page.cleanup();
  const joined = text.replace(/[^\S\n]+/g, " ").replace(/(\p{Ll})-\n(\p{Ll})/gu, "$1$2"); // joins words that are hyphenated at the end of a line
  return tidy(joined.replace(/(?: ?\.){4,} ?/g, " ")); // leader dots of a table of contents
}

async function pdfTitle(pdf: PdfDocument): Promise<string | undefined> {
  const { info } = await pdf.getMetadata();
  const title = "Title" in info && typeof info.Title === "string" ? info.Title.trim() : "";
  return title === "" || /^untitled/i.test(title) ? undefined : title;
}
