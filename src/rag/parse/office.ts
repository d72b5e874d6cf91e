import { findRelated, type OfficePackage, openPackage } from "./office-package.ts";
import { kindOfArchive, notTaken } from "./office-unread.ts";
import { type ParsedDocument, unreadable } from "./section.ts";

const usualParts = ["word/document.xml", "xl/workbook.xml", "ppt/presentation.xml"];

/** Reads a document of Office by the kind of its main part. @throws AppError `source_unreadable` */
export async function parseOffice(bytes: Buffer, name = ""): Promise<ParsedDocument> {
  const file = await openPackage(bytes);
  const main = (await findRelated(file, "", "officeDocument")) ?? usualParts.find((part) => file.has(part));
  switch (main === undefined ? undefined : await rootOf(file, main)) {
    case "document":
      return (await import("./docx.ts")).parseDocx(file, main ?? "");
    case "workbook":
      return (await import("./xlsx.ts")).parseXlsx(file, main ?? "", name);
    case "presentation":
      return (await import("./pptx.ts")).parsePptx(file, main ?? "", name);
    default: {
      const named = /\.(docx|xlsx|pptx)$/i.exec(name)?.[1]?.toUpperCase();
      if (named || main) throw unreadable(`The ${named ?? "document of Office"} is damaged: its main part is missing.`);
      throw notTaken(kindOfArchive(file.names));
    }
  }
}

/** What the first element of a part is called, without its prefix. */
async function rootOf(file: OfficePackage, part: string): Promise<string | undefined> {
  for await (const text of file.read(part)) return /<(?:[\w-]+:)?(\w+)[\s>]/.exec(text)?.[1];
  return undefined;
}
