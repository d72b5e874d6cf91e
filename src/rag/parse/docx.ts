import mammoth from "mammoth";
import { parseHtml } from "./html.ts";
import { type ParsedDocument, unreadable } from "./section.ts";
import { assertHarmlessZip } from "./zip-limits.ts";

/** A DOCX by way of its HTML, so that headings, lists and tables keep their form. Pictures are left out. */
export async function parseDocx(bytes: Buffer): Promise<ParsedDocument> {
  await assertHarmlessZip(bytes);
  let html: string;
  try {
    const noPicture = mammoth.images.imgElement(async () => ({ src: "" }));
    const result = await mammoth.convertToHtml(
      { buffer: bytes },
      { convertImage: noPicture, externalFileAccess: false },
    );
    html = result.value;
  } catch (error) {
    throw unreadable("The DOCX is damaged.", error);
  }
  return { ...parseHtml(html, { isArticle: true }), type: "docx" };
}
