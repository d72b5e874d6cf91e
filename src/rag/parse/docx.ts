import { finished } from "node:stream/promises";
import mammoth from "mammoth";
import { fromBufferPromise } from "yauzl";
import { AppError } from "../../errors.ts";
import { parseHtml } from "./html.ts";
import { type ParsedDocument, unreadable } from "./section.ts";

const MAX_ENTRIES = 5_000;
const MAX_INFLATED_BYTES = 256 * 1024 * 1024;
const MAX_RATIO = 200; // XML compresses 10 to 40 times; a bomb a thousand times

/** Reads a DOCX as HTML, so that headings, lists and tables keep their form. Pictures are left out. @throws AppError `source_unreadable` */
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

/**
 * Rejects an archive that inflates to more than a document can need. It checks the sizes that the directory declares; then
 * it inflates every entry against its declared size, since a directory may lie, and keeps nothing.
 * @throws AppError `source_unreadable`
 */
async function assertHarmlessZip(bytes: Buffer): Promise<void> {
  try {
    const zip = await fromBufferPromise(bytes, { lazyEntries: true, validateEntrySizes: true });
    if (zip.entryCount > MAX_ENTRIES) throw unreadable(`The archive has more than ${MAX_ENTRIES} entries.`);
    let total = 0;
    for await (const entry of zip.eachEntry()) {
      total += entry.uncompressedSize;
      if (total > MAX_INFLATED_BYTES || total > MAX_RATIO * bytes.length + 1_048_576) {
        throw unreadable("The archive inflates to far more than a document needs.");
      }
      const stream = await zip.openReadStreamPromise(entry);
      await finished(stream.resume());
    }
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw unreadable("The archive is damaged.", error);
  }
}
