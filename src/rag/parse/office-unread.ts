import type { AppError } from "../../lib/errors.ts";
import { unreadable } from "./section.ts";

/** What every type of document is called that is read. */
const TAKEN = "PDF, DOCX, XLSX, PPTX, HTML, Markdown, CSV, TSV and plain text";

const kinds: Readonly<Record<string, string>> = {
  "application/vnd.oasis.opendocument.text": "an OpenDocument text",
  "application/vnd.oasis.opendocument.text-template": "an OpenDocument text",
  "application/vnd.oasis.opendocument.spreadsheet": "an OpenDocument spreadsheet",
  "application/vnd.oasis.opendocument.spreadsheet-template": "an OpenDocument spreadsheet",
  "application/vnd.oasis.opendocument.presentation": "an OpenDocument presentation",
  "application/vnd.oasis.opendocument.presentation-template": "an OpenDocument presentation",
  "application/vnd.oasis.opendocument.graphics": "an OpenDocument drawing",
  "application/epub+zip": "an EPUB book",
  "application/rtf": "an RTF text",
  "application/postscript": "a PostScript document",
  "application/vnd.visio": "a Visio drawing",
  "application/zip": "a ZIP archive",
};

const groups: readonly (readonly [RegExp, string])[] = [
  [/^image\//, "a picture"],
  [/^audio\//, "a sound"],
  [/^video\//, "a film"],
  [/^font\//, "a font"],
  [/(compress|archive|gzip|zip|7z|rar|tar|x-bzip2|x-xz|zstd|java-archive)/, "an archive"],
  [/(msdownload|x-elf|mach-binary|x-msdos-program|wasm)/, "a program"],
  [/sqlite/, "a database"],
];

/** What the old container of Office holds, by the name of a stream in it. An encrypted DOCX is in one, too. */
const streams: readonly (readonly [string, string])[] = [
  ["EncryptedPackage", "an encrypted document of Office"],
  ["WordDocument", "a Word document of the format before DOCX (.doc)"],
  ["PowerPoint Document", "a PowerPoint presentation of the format before PPTX (.ppt)"],
  ["Workbook", "an Excel workbook of the format before XLSX (.xls)"],
  ["__properties_version1.0", "an Outlook message (.msg)"],
];

/** The error of a document of a type that is not read: it names that, and those that are. */
export function notTaken(kind: string): AppError {
  return unreadable(`It is ${kind}. What is read is ${TAKEN}.`);
}

/** What a file is called whose bytes show its media type. */
export function kindOf(mime: string, bytes: Buffer): string {
  if (mime === "application/x-cfb") {
    const found = streams.find(([name]) => bytes.includes(Buffer.from(name, "utf16le")));
    return found?.[1] ?? "a document of Office of before 2007, or an encrypted one";
  }
  const kind = kinds[mime] ?? groups.find(([pattern]) => pattern.test(mime))?.[1];
  return kind ? `${kind} (${mime})` : `a file of type ${mime}`;
}

/** What an archive is called that is no document of Office, by the names in it. */
export function kindOfArchive(names: ReadonlySet<string>): string {
  if (names.has("xl/workbook.bin")) return "a binary Excel workbook (.xlsb)";
  if (names.has("content.xml") && names.has("meta-inf/manifest.xml")) return "an OpenDocument file";
  if (names.has("meta-inf/container.xml")) return "an EPUB book";
  if (names.has("index/document.iwa") || names.has("index.zip")) return "a document of Pages, Numbers or Keynote";
  if (names.has("visio/document.xml")) return "a Visio drawing";
  return "a ZIP archive";
}
