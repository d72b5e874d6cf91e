import type { AppError } from "../../lib/errors.ts";
import type { SourceType } from "../schemas.ts";
import { declaredCharset, decodeText, tryDecode } from "./charset.ts";
import { parseMarkdown } from "./markdown.ts";
import type { OcrOptions } from "./ocr.ts";
import { kindOf, notTaken } from "./office-unread.ts";
import { type ParsedDocument, unreadable } from "./section.ts";
import { isBinary, parseText, withoutCodes } from "./text.ts";

/** A source's bytes, and what the sender declared: a media type, and a file's name or a URL's path. */
export type RawSource = { bytes: Buffer; type?: string; name?: string };

/** How documents are read beyond their text. */
export type ParseOptions = { ocr?: OcrOptions };

const PDF_MIME = "application/pdf";
/** An archive, which may be a document of Office, and such documents. */
const officeMime = /^application\/(zip$|vnd\.openxmlformats-officedocument\.|vnd\.ms-(word|excel|powerpoint)\.)/;
/** Texts in form, of commands in content. */
const unreadMarkup = new Set(["application/rtf", "application/postscript"]);
const textTypes: Record<string, SourceType> = {
  "text/html": "html",
  "application/xhtml+xml": "html",
  "text/markdown": "markdown",
  "text/x-markdown": "markdown",
  "text/csv": "csv",
  "application/csv": "csv",
  "text/tab-separated-values": "csv",
};
const nameTypes: readonly [RegExp, SourceType][] = [
  [/\.(html?|xhtml)$/i, "html"],
  [/\.(md|markdown|mdown|mkd)$/i, "markdown"],
  [/\.(csv|tsv|tab)$/i, "csv"],
];

/**
 * Reads a document of any known type into sections. The content decides the type first, then the declared media type,
 * then the name. @throws AppError `source_unreadable`
 */
export async function parseSource(source: RawSource, options: ParseOptions = {}): Promise<ParsedDocument> {
  const parsed = await parseByType(source, options);
  if (!parsed.sections.some(({ text }) => /\S/.test(text))) throw unreadable("There is no text in it.");
  return parsed;
}

async function parseByType(source: RawSource, options: ParseOptions): Promise<ParsedDocument> {
  const format = await formatOf(source);
  if (format === "pdf") return readPdf(source, options);
  if (format === "office") return (await import("./office.ts")).parseOffice(source.bytes, source.name);
  const decoded = await decodeText(source.bytes, charsetsOf(source));
  if (isBinary(decoded.text.slice(0, HEAD_BYTES))) throw noText();
  const text = withoutCodes(decoded.text);
  const parsed = await parseDecoded(text, textTypeOf(text, declaredType(source), source.name ?? ""), source.name);
  return decoded.warning ? { ...parsed, warnings: [decoded.warning, ...(parsed.warnings ?? [])] } : parsed;
}

async function parseDecoded(text: string, type: SourceType, name: string | undefined): Promise<ParsedDocument> {
  if (type === "html") return (await import("./html.ts")).parseHtml(text);
  if (type === "csv") return (await import("./csv.ts")).parseCsv(text, name);
  return type === "markdown" ? parseMarkdown(text) : parseText(text);
}

/** Bytes of a source that show its format. */
const HEAD_BYTES = 8_192;

/**
 * Rejects by its first bytes what no parser reads, as pictures and programs, before it is kept.
 * @throws AppError `source_unreadable`
 */
export async function rejectUnreadable(source: RawSource): Promise<void> {
  await formatOf({ ...source, bytes: source.bytes.subarray(0, HEAD_BYTES) }, source.bytes);
}

/** How the bytes of a source are read; what an archive holds, its end shows. @throws AppError `source_unreadable` */
async function formatOf(source: RawSource, whole = source.bytes): Promise<"pdf" | "office" | "text"> {
  const { fileTypeFromBuffer } = await import("file-type"); // loaded by the first document
  const mime = (await fileTypeFromBuffer(source.bytes))?.mime;
  if (mime === PDF_MIME) return "pdf";
  if (mime !== undefined && officeMime.test(mime)) return "office";
  // A text may begin as a file of another type does: "BMW" as a bitmap, "MZ" as a program.
  const isText = looksLikeText(source);
  if (mime !== undefined && (!isText || unreadMarkup.has(mime))) throw notTaken(kindOf(mime, whole));
  if (declaredType(source) === PDF_MIME) return "pdf"; // its head is damaged: the PDF reader reports it
  if (!isText) throw noText();
  return "text";
}

function declaredType({ type }: RawSource): string {
  return type?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

function noText(): AppError {
  const reason = "it has too many NULs or other control characters";
  return unreadable(`It is neither text nor a document of a known type: ${reason}.`);
}

/** Readers are loaded when first needed: a process that starts for a text is ready in half the time. */
async function readPdf({ bytes }: RawSource, options: ParseOptions): Promise<ParsedDocument> {
  const { parsePdf } = await import("./pdf.ts");
  return parsePdf(bytes, options);
}

/** What a text in UTF-16 has, and bytes that are no text have by chance only: blanks, ends of lines, marks of Chinese. */
const BETWEEN_WORDS = /[\s\u3001\u3002\uff0c]/;

/** Whether the first bytes may be those of a text, in whichever charset: but for UTF-16, all have the same control characters. */
function looksLikeText({ bytes }: RawSource): boolean {
  const head = bytes.subarray(0, HEAD_BYTES);
  if (!isBinary(head.toString("latin1"))) return true;
  return ["utf-16le", "utf-16be"]
    .map((charset) => tryDecode(head, charset) ?? "")
    .some((text) => BETWEEN_WORDS.test(text) && !isBinary(text));
}

/** What declares the charset of a text, the surest first. */
function charsetsOf({ bytes, type }: RawSource): string[] {
  const sent = /;\s*charset\s*=\s*["']?([\w.:-]+)/i.exec(type ?? "")?.[1];
  return [sent, declaredCharset(bytes)].filter((charset) => charset !== undefined);
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
