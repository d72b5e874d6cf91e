import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { crc32, deflateRawSync } from "node:zlib";
import { Document, HeadingLevel, Packer, Paragraph, Table, TableCell, TableRow } from "docx";
import PdfDocument from "pdfkit";
import { pictureOf } from "./media.ts";

/** A PDF with one page for each text. */
export async function makePdf(pages: readonly string[], title?: string): Promise<Buffer> {
  const pdf = new PdfDocument({ ...(title ? { info: { Title: title } } : {}) });
  const parts: Buffer[] = [];
  pdf.on("data", (part: Buffer) => parts.push(part));
  const ended = once(pdf, "end");
  for (const [index, text] of pages.entries()) {
    if (index > 0) pdf.addPage();
    pdf.text(text);
  }
  pdf.end();
  await ended;
  return Buffer.concat(parts);
}

/** A PDF of pages of lines, each in a size of its own. */
export async function makeSizedPdf(pages: readonly (readonly [text: string, size: number])[][]): Promise<Buffer> {
  const pdf = new PdfDocument();
  const parts: Buffer[] = [];
  pdf.on("data", (part: Buffer) => parts.push(part));
  const ended = once(pdf, "end");
  for (const [index, lines] of pages.entries()) {
    if (index > 0) pdf.addPage();
    for (const [text, size] of lines) pdf.fontSize(size).text(text);
  }
  pdf.end();
  await ended;
  return Buffer.concat(parts);
}

/** A PDF of one page with texts at places, in points from its upper left corner. */
export async function makeTextsPdf(
  texts: readonly { text: string; x: number; y: number; size?: number }[],
): Promise<Buffer> {
  const pdf = new PdfDocument();
  const parts: Buffer[] = [];
  pdf.on("data", (part: Buffer) => parts.push(part));
  const ended = once(pdf, "end");
  for (const { text, x, y, size = 10 } of texts) pdf.fontSize(size).text(text, x, y, { lineBreak: false });
  pdf.end();
  await ended;
  return Buffer.concat(parts);
}

type Block = { heading: string; level: 1 | 2 } | { text: string } | { row: string[] };
const levels = { 1: HeadingLevel.HEADING_1, 2: HeadingLevel.HEADING_2 } as const;

/** A DOCX of headings, paragraphs and one-row tables. */
export async function makeDocx(blocks: readonly Block[]): Promise<Buffer> {
  const children = blocks.map((block) => {
    if ("heading" in block) return new Paragraph({ text: block.heading, heading: levels[block.level] });
    if ("text" in block) return new Paragraph(block.text);
    const cells = block.row.map((text) => new TableCell({ children: [new Paragraph(text)] }));
    return new Table({ rows: [new TableRow({ children: cells })] });
  });
  return Packer.toBuffer(new Document({ sections: [{ children }] }));
}

/** One entry of an archive. `declaredBytes` is the lie that a hostile directory tells of its size. */
export type ZipEntry = { name: string; content: Buffer; declaredBytes?: number; isStored?: boolean };

/** A ZIP archive, as the format's description by PKWARE has it, without its checks: a hostile one can be made. */
export function makeZip(entries: readonly ZipEntry[], level = 9): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, content, declaredBytes = content.length, isStored = false } of entries) {
    const packed = isStored ? content : deflateRawSync(content, { level });
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt16LE(isStored ? 0 : 8, 4); // as it is, or deflated
    fields.writeUInt32LE(crc32(content), 10);
    fields.writeUInt32LE(packed.length, 14);
    fields.writeUInt32LE(declaredBytes, 18);
    fields.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), fields, Buffer.from(name), packed]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x00", "latin1"), fields, tail, Buffer.from(name)]));
    files.push(local);
    offset += local.length;
  }
  const listing = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(listing.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...files, listing, end]);
}

const contentTypes =
  '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">' +
  '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>';

const relationships =
  '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">' +
  '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>';

/** A DOCX of a few hundred kilobytes whose text inflates to `bytes`, which its directory may hide. */
export function makeDocxBomb(bytes: number, declaredBytes?: number): Buffer {
  const lie = declaredBytes === undefined ? {} : { declaredBytes };
  return makeZip([
    { name: "[Content_Types].xml", content: Buffer.from(contentTypes) },
    { name: "word/document.xml", content: Buffer.alloc(bytes, "a"), ...lie },
  ]);
}

/** A DOCX whose body is a unit of WordprocessingML, repeated to `bytes` between two others. It is not compressed. */
export function makeDocxOf([before, after]: readonly [string, string], unit: string, bytes: number): Buffer {
  const body = Buffer.alloc(bytes - (bytes % unit.length), unit).toString("latin1");
  return makeZip(toEntries(`${before}${body}${after}`), 0);
}

/** How much more than its own size an archive may be inflated to, for a reader not to reject it, roughly. */
const HARMLESS_RATIO = 180;

/** A DOCX that a reader takes for harmless: a picture that does not compress keeps its ratio low. Its paragraph inflates to `bytes`. */
export function makeInflatingDocx(bytes: number): Buffer {
  const text = Buffer.alloc(bytes, "a ").toString("latin1");
  const picture = { name: "word/media/picture.png", content: randomBytes(Math.ceil(bytes / HARMLESS_RATIO)) };
  return makeZip([...toEntries(`<w:p><w:r><w:t>${text}</w:t></w:r></w:p>`), picture]);
}

function toEntries(body: string): ZipEntry[] {
  const document =
    '<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>' +
    `${body}</w:body></w:document>`;
  return [
    { name: "[Content_Types].xml", content: Buffer.from(contentTypes) },
    { name: "_rels/.rels", content: Buffer.from(relationships) },
    { name: "word/document.xml", content: Buffer.from(document) },
  ];
}

/** Text of `count` sentences that are all different, the same at every call. */
export function makeProse(count: number, topic = "pump"): string {
  return Array.from(
    { length: count },
    (_, index) =>
      `Sentence ${index} tells that ${topic} number ${(index * 7919) % 1000} runs at ${(index * 31) % 97} degrees.`,
  ).join(" ");
}

/** A PDF with one page for each text; `null` is a page that is a picture, as of a scanner. */
export async function makeScannedPdf(pages: readonly (string | null)[]): Promise<Buffer> {
  const pdf = new PdfDocument();
  const parts: Buffer[] = [];
  pdf.on("data", (part: Buffer) => parts.push(part));
  const ended = once(pdf, "end");
  for (const [index, text] of pages.entries()) {
    if (index > 0) pdf.addPage();
    if (text === null) pdf.image(pictureOf(200, 280, 200), 0, 0, { width: 612 });
    else pdf.text(text);
  }
  pdf.end();
  await ended;
  return Buffer.concat(parts);
}
