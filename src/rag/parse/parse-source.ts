import { fileTypeFromBuffer } from "file-type";
import type { AppError } from "../../errors.ts";
import type { SourceType } from "../schemas.ts";
import { parseMarkdown } from "./markdown.ts";
import { type ParsedDocument, unreadable } from "./section.ts";
import { declaredCharset, decodeText, isBinary, parseText } from "./text.ts";

/** A source's bytes, and what the sender declared: a media type, and a file's name or a URL's path. */
export type RawSource = { bytes: Buffer; type?: string; name?: string };

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
  if (!parsed.sections.some(({ text }) => /\S/.test(text))) throw unreadable("There is no text in it.");
  return parsed;
}

async function parseByType(source: RawSource): Promise<ParsedDocument> {
  const found = await fileTypeFromBuffer(source.bytes);
  if (found?.mime === "application/pdf") return readPdf(source);
  if (found?.mime === DOCX_MIME || (found?.mime === "application/zip" && isNamedDocx(source)))
    return (await import("./docx.ts")).parseDocx(source.bytes);
  if (found && !isTextual(found.mime)) throw notReadable(found.mime);
  const declared = source.type?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (declared === "application/pdf") return readPdf(source); // its head is damaged: the PDF reader reports it
  const text = decodeText(source.bytes, charsetOf(source));
  if (isBinary(text)) throw unreadable("It is neither text nor a document of a known type.");
  const type = textTypeOf(text, declared, source.name ?? "");
  if (type === "html") return (await import("./html.ts")).parseHtml(text);
  return type === "markdown" ? parseMarkdown(text) : parseText(text);
}

/** Bytes of a source that show most types of files. */
const HEAD_BYTES = 4_100;

/** Rejects pictures, sound, films and fonts by their first bytes, before they are kept. @throws AppError `source_unreadable` */
export async function rejectMedia(bytes: Uint8Array): Promise<void> {
  const found = await fileTypeFromBuffer(bytes.subarray(0, HEAD_BYTES));
  if (found && /^(?:image|audio|video|font)\//.test(found.mime)) throw notReadable(found.mime);
}

function notReadable(mime: string): AppError {
  return unreadable(`A file of type ${mime} is not a known kind of document.`);
}

/** Readers are loaded when first needed: a process that starts for a text is ready in half the time. */
async function readPdf({ bytes }: RawSource): Promise<ParsedDocument> {
  const { parsePdf } = await import("./pdf.ts");
  return parsePdf(new Uint8Array(bytes));
}

/** Types that file-type detects in text: XML with a prolog, and rich text. Both are read as text. */
function isTextual(mime: string): boolean {
  return mime.startsWith("text/") || mime === "application/xml";
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
