import type { AppError } from "../../errors.ts";
import type { SourceType } from "../schemas.ts";
import { parseMarkdown } from "./markdown.ts";
import { type ParsedDocument, unreadable } from "./section.ts";
import { declaredCharset, decodeText, isBinary, parseText } from "./text.ts";

/** A source's bytes, and what the sender declared: a media type, and a file's name or a URL's path. */
export type RawSource = { bytes: Buffer; type?: string; name?: string };

const PDF_MIME = "application/pdf";
const ZIP_MIME = "application/zip";
/** Texts in form, of commands in content. */
const unreadMarkup = new Set(["application/rtf", "application/postscript"]);
const DOCX_MIME = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const textTypes: Record<string, SourceType> = {
  "text/html": "html",
  "application/xhtml+xml": "html",
  "text/markdown": "markdown",
  "text/x-markdown": "markdown",
};
const nameTypes: readonly [RegExp, SourceType][] = [
  [/\.(html?|xhtml)$/i, "html"],
  [/\.(md|markdown|mdown|mkd)$/i, "markdown"],
];

/**
 * Reads a document of any known type into sections. The content decides the type first, then the declared media type,
 * then the name. @throws AppError `source_unreadable`
 */
export async function parseSource(source: RawSource): Promise<ParsedDocument> {
  const parsed = await parseByType(source);
  if (parsed.sections.some(({ text }) => /\S/.test(text))) return parsed;
  if (parsed.type !== "pdf") throw unreadable("There is no text in it.");
  throw unreadable(
    "There is no text in the PDF: its pages may be scans. Let a program recognize their text (OCR) first.",
  );
}

async function parseByType(source: RawSource): Promise<ParsedDocument> {
  const format = await formatOf(source);
  if (format === "zip") throw notReadable(ZIP_MIME);
  if (format === "pdf") return readPdf(source);
  if (format === "docx") return (await import("./docx.ts")).parseDocx(source.bytes);
  const text = decodeText(source.bytes, charsetOf(source));
  const type = textTypeOf(text, declaredType(source), source.name ?? "");
  if (type === "html") return (await import("./html.ts")).parseHtml(text);
  return type === "markdown" ? parseMarkdown(text) : parseText(text);
}

/** Bytes of a source that show its format. */
const HEAD_BYTES = 8_192;

/**
 * Rejects by its first bytes what no parser reads, as pictures and programs, before it is kept.
 * @throws AppError `source_unreadable`
 */
export async function rejectUnreadable(source: RawSource): Promise<void> {
  await formatOf({ ...source, bytes: source.bytes.subarray(0, HEAD_BYTES) });
}

/** How the bytes of a source are read; an archive may be a DOCX, as its end shows. @throws AppError `source_unreadable` */
async function formatOf(source: RawSource): Promise<"pdf" | "docx" | "zip" | "text"> {
  const { fileTypeFromBuffer } = await import("file-type"); // loaded by the first document
  const mime = (await fileTypeFromBuffer(source.bytes))?.mime;
  if (mime === PDF_MIME) return "pdf";
  if (mime === DOCX_MIME) return "docx";
  if (mime === ZIP_MIME) return isNamedDocx(source) ? "docx" : "zip";
  // A text may begin as a file of another type does: "BMW" as a bitmap, "MZ" as a program.
  const isText = !isBinary(decodeText(source.bytes.subarray(0, HEAD_BYTES), charsetOf(source)));
  if (mime !== undefined && (!isText || unreadMarkup.has(mime))) throw notReadable(mime);
  if (declaredType(source) === PDF_MIME) return "pdf"; // its head is damaged: the PDF reader reports it
  if (!isText) throw unreadable("It is neither text nor a document of a known type.");
  return "text";
}

function declaredType({ type }: RawSource): string {
  return type?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** Kinds of files that people send, and what to send in their place. */
const otherKinds: readonly [mime: RegExp, advice: string][] = [
  [/spreadsheet|excel/, "Send the tables of a spreadsheet as CSV, HTML or Markdown."],
  [/presentation|powerpoint/, "Send a presentation as PDF."],
  [/x-cfb/, "Of old Office programs, send a text as DOCX or PDF, tables as CSV."],
  [/opendocument\.text|rtf/, "Send it as DOCX or PDF."],
];

function notReadable(mime: string): AppError {
  const advice = otherKinds.find(([kind]) => kind.test(mime))?.[1];
  const problem = `A file of type ${mime} is not a known kind of document.`;
  return unreadable(advice === undefined ? problem : `${problem} ${advice}`);
}

/** Readers are loaded when first needed: a process that starts for a text is ready in half the time. */
async function readPdf({ bytes }: RawSource): Promise<ParsedDocument> {
  const { parsePdf } = await import("./pdf.ts");
  return parsePdf(new Uint8Array(bytes));
}

function isNamedDocx({ type, name }: RawSource): boolean {
  return type?.startsWith(DOCX_MIME) === true || /\.docx$/i.test(name ?? "");
}

function charsetOf({ bytes, type }: RawSource): string | undefined {
  return /charset\s*=\s*["']?([\w-]+)/i.exec(type ?? "")?.[1] ?? declaredCharset(bytes);
}

function textTypeOf(text: string, declared: string, name: string): SourceType {
  if (/^\uFEFF?\s*(<!doctype html|<html[\s>]|<\?xml[^>]*>\s*<(!doctype )?html)/i.test(text.slice(0, 2_048)))
    return "html";
  const known = textTypes[declared] ?? nameTypes.find(([pattern]) => pattern.test(name))?.[1];
  if (known) return known;
  // One heading near the start is enough: reading plain text as Markdown loses nothing.
  const hasHeading = /^#{1,6} \S/m.test(text.slice(0, 20_000));
  return hasHeading && !/\.txt$/i.test(name) ? "markdown" : "text";
}
