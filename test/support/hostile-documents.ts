import PdfDocument from "pdfkit";
import { makeDocxOf } from "./documents.ts";
import { makeDeck, makeWorkbook, shape } from "./office-files.ts";

/** A document that is made to cost its reader as much as possible. `make` is given its size in bytes, roughly. */
export type HostileDocument = {
  what: string;
  type: string;
  name: string;
  /** The largest that is worth a try, in bytes; what an upload may have at most, where nothing else is said. */
  most: number;
  make(bytes: number): Promise<Buffer> | Buffer;
};

/** Somewhat below the largest upload. */
const UPLOAD = 45_000_000;
const text = { type: "text/plain", name: "hostile.txt", most: UPLOAD };
const markdown = { type: "text/markdown", name: "hostile.md", most: UPLOAD };
const html = { type: "text/html", name: "hostile.html", most: UPLOAD };
const docx = { type: "application/octet-stream", name: "hostile.docx", most: UPLOAD };
const xlsx = { type: "application/octet-stream", name: "hostile.xlsx", most: UPLOAD };
const pptx = { type: "application/octet-stream", name: "hostile.pptx", most: UPLOAD };
const csv = { type: "text/csv", name: "hostile.csv", most: UPLOAD };
const pdf = { type: "application/pdf", name: "hostile.pdf", most: UPLOAD };

export const hostileDocuments: readonly HostileDocument[] = [
  { ...text, what: "one letter", make: (bytes) => repeated("a", bytes) },
  { ...text, what: "one-letter words", make: (bytes) => repeated("a ", bytes) },
  { ...text, what: "one-letter lines", make: (bytes) => repeated("a\n", bytes) },
  { ...text, what: "line feeds", make: (bytes) => repeated("\n", bytes) },
  { ...text, what: "blanks between two letters", make: (bytes) => Buffer.concat([one, repeated(" ", bytes), one]) },
  { ...text, what: "no-break spaces", make: (bytes) => Buffer.concat([one, repeated("\u00a0", bytes), one]) },
  { ...text, what: "carriage returns", make: (bytes) => repeated("\r", bytes) },
  { ...text, what: "Chinese without punctuation", make: (bytes) => repeated("漢", bytes) },
  { ...text, what: "emoji", make: (bytes) => repeated("👩‍👩‍👧", bytes) },
  { ...text, what: "control tokens", make: (bytes) => repeated("<|endoftext|>", bytes) },
  { ...markdown, what: "one letter of Markdown", make: (bytes) => repeated("a", bytes) },
  { ...markdown, what: "backticks", make: (bytes) => repeated("`", bytes) },
  { ...markdown, what: "opening brackets", make: (bytes) => repeated("[", bytes) },
  { ...markdown, what: "brackets in a heading", make: (bytes) => Buffer.concat([hash, repeated("[", bytes)]) },
  { ...markdown, what: "blanks in a heading", make: (bytes) => Buffer.concat([hash, repeated(" ", bytes), one]) },
  { ...markdown, what: "headings", make: (bytes) => repeated("# a\n", bytes) },
  { ...markdown, what: "empty headings", make: (bytes) => repeated("#\n", bytes) },
  { ...markdown, what: "underlined headings", make: (bytes) => repeated("a\n=\n", bytes) },
  { ...markdown, what: "code fences", make: (bytes) => repeated("```\n\n", bytes) },
  { ...html, what: "one letter of HTML", make: (bytes) => repeated("a", bytes) },
  { ...html, what: "nested elements", make: (bytes) => repeated("<div>", bytes) },
  { ...html, what: "nested inline elements", make: (bytes) => repeated("<b>a", bytes) },
  { ...html, what: "opening angle brackets", make: (bytes) => repeated("<", bytes) },
  { ...html, what: "blanks in elements", make: (bytes) => repeated("<b> </b>", bytes) },
  { ...html, what: "one row of cells", make: (bytes) => surrounded("<table><tr>", "<td>a</td>", bytes) },
  { ...html, what: "rows of a table", make: (bytes) => surrounded("<table>", "<tr><td>a<td>b</tr>", bytes) },
  { ...html, what: "nested tables", make: (bytes) => repeated("<table><tr><td>a", bytes) },
  { ...html, what: "attributes", make: (bytes) => surrounded("<p ", "a=b ", bytes) },
  { ...html, what: "an unclosed comment", make: (bytes) => surrounded("<!--", "-", bytes) },
  { ...docx, what: "one letter in a paragraph", make: (bytes) => makeDocxOf(paragraph, "a", bytes) },
  { ...docx, what: "nested paragraphs", make: (bytes) => makeDocxOf(["", ""], "<w:p><w:r><w:t>a</w:t></w:r>", bytes) },
  { ...docx, what: "paragraphs", make: (bytes) => makeDocxOf(["", ""], `${paragraph.join("a")}`, bytes) },
  { ...docx, what: "cells of a row", make: (bytes) => makeDocxOf(row, `<w:tc>${paragraph.join("a")}</w:tc>`, bytes) },
  { ...docx, what: "runs of a paragraph", make: (bytes) => makeDocxOf(run, "<w:r><w:t>a</w:t></w:r>", bytes) },
  { ...docx, what: "nested fractions", make: (bytes) => makeDocxOf(run, "<m:f><m:num>", bytes) },
  { ...docx, what: "cells that span", make: (bytes) => makeDocxOf(["<w:tbl>", "</w:tbl>"], spanning, bytes) },
  { ...xlsx, what: "cells of a sheet", make: (bytes) => sheetOf("<row>", "<c><v>1</v></c>", "</row>", bytes) },
  {
    ...xlsx,
    what: "rows of a sheet",
    make: (bytes) => sheetOf("", "<row><c><v>1</v></c><c><v>2</v></c></row>", "", bytes),
  },
  { ...xlsx, what: "one long text in many cells", make: (bytes) => longTextOf(bytes) },
  { ...pptx, what: "shapes of a slide", make: (bytes) => slideOf(shape("a"), bytes) },
  { ...pptx, what: "nested groups", make: (bytes) => slideOf("<p:grpSp>", bytes) },
  { ...csv, what: "cells of CSV", make: (bytes) => repeated("a,", bytes) },
  { ...csv, what: "rows of CSV", make: (bytes) => repeated("a,b\n", bytes) },
  { ...csv, what: "quotes of CSV", make: (bytes) => repeated('"', bytes) },
  { ...csv, what: "an open quote", make: (bytes) => surrounded('a,b\n"', "c,d\n", bytes) },
  { ...pdf, what: "one page of text", make: (bytes) => pdfOf("(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa) Tj\n", bytes) },
  { ...pdf, what: "one-letter texts", make: (bytes) => pdfOf("(a) Tj\n", bytes) },
  { ...pdf, what: "nested graphics states", make: (bytes) => pdfOf("q\n", bytes) },
  { ...pdf, what: "nested arrays", make: (bytes) => pdfOf("[", bytes) },
];

const one = Buffer.from("a");
const hash = Buffer.from("# a");
const paragraph = ["<w:p><w:r><w:t>", "</w:t></w:r></w:p>"] as const;
const row = ["<w:tbl><w:tr>", "</w:tr></w:tbl>"] as const;

const run = ["<w:p>", "</w:p>"] as const;
const spanning =
  '<w:tr><w:tc><w:tcPr><w:gridSpan w:val="999"/><w:vMerge w:val="restart"/></w:tcPr><w:p/></w:tc></w:tr>';

function sheetOf(before: string, unit: string, after: string, bytes: number): Buffer {
  const rows = Buffer.alloc(bytes - (bytes % unit.length), unit).toString("latin1");
  return makeWorkbook([{ name: "S", rows: `${before}${rows}${after}` }], { packing: 0 });
}

function longTextOf(bytes: number): Buffer {
  const text = "a ".repeat(16_000);
  const unit = '<row><c t="s"><v>0</v></c><c t="s"><v>0</v></c></row>';
  const rows = unit.repeat(Math.floor(bytes / unit.length));
  return makeWorkbook([{ name: "S", rows }], { strings: `<si><t>${text}</t></si>`, packing: 0 });
}

function slideOf(unit: string, bytes: number): Buffer {
  return makeDeck([{ shapes: Buffer.alloc(bytes - (bytes % unit.length), unit).toString("latin1") }], { packing: 0 });
}

function repeated(unit: string, bytes: number): Buffer {
  return Buffer.alloc(bytes - (bytes % Buffer.byteLength(unit)), unit);
}

function surrounded(before: string, unit: string, bytes: number): Buffer {
  return Buffer.concat([Buffer.from(before), repeated(unit, bytes)]);
}

/** A PDF of one page with a content stream of its own, which compresses well. */
async function pdfOf(unit: string, bytes: number): Promise<Buffer> {
  const document = new PdfDocument();
  const parts: Buffer[] = [];
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  document.on("data", (part: Buffer) => parts.push(part)).on("end", () => resolve(Buffer.concat(parts)));
  document.text("Begin.");
  document.addContent(`BT /F1 12 Tf 1 0 0 1 50 700 Tm\n${repeated(unit, bytes).toString("latin1")} ET`);
  document.end();
  return promise;
}
