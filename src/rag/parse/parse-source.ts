import { fileTypeFromBuffer } from "file-type";
import type { SourceType } from "../schemas.ts";
import { parseMarkdown } from "./markdown.ts";
import { type ParsedDocument, unreadable } from "./section.ts";
import { declaredCharset, decodeText, isBinary, parseText } from "./text.ts";

/** A source's bytes, and what its sender said of them: a media type, and a file's name or a URL's path. */
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
 * Reads a document of any known type into sections. The type is told by the content first, then by the declared media
 * type, then by the name. @throws AppError `source_unreadable`
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
  if (found && !isTextual(found.mime))
    throw unreadable(`A file of type ${found.mime} is not a known kind of document.`);
  const declared = source.type?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (declared === "application/pdf") return readPdf(source); // damaged at its head: the PDF reader says so
  const text = decodeText(source.bytes, charsetOf(source));
  if (isBinary(text)) throw unreadable("It is neither text nor a document of a known type.");
  const type = textTypeOf(text, declared, source.name ?? "");
  if (type === "html") return (await import("./html.ts")).parseHtml(text);
  return type === "markdown" ? parseMarkdown(text) : parseText(text);
}

/** Readers are loaded when they are first needed: a process that starts for a text is ready in half the time. */
async function readPdf({ bytes }: RawSource): Promise<ParsedDocument> {
  const { parsePdf } = await import("./pdf.ts");
  return parsePdf(new Uint8Array(bytes));
}

/** Types that file-type tells of text: XML with a prolog, and rich text, which is read as what it looks like. */
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
  const byDeclared = textTypes[declared];
  if (byDeclared) return byDeclared;
  const byName = nameTypes.find(([pattern]) => pattern.test(name))?.[1];
  if (byName) return byName;
  return looksLikeMarkdown(text) && !/\.txt$/i.test(name) ? "markdown" : "text";
}

/** At least one heading on a line of its own near the start: enough, since reading text as Markdown loses nothing. */
function looksLikeMarkdown(text: string): boolean {
  return /^#{1,6} \S/m.test(text.slice(0, 20_000));
}
