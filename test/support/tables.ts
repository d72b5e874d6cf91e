import { once } from "node:events";
import { Document, HeadingLevel, Packer, Paragraph, Table, TableCell, TableRow } from "docx";
import PdfDocument from "pdfkit";
import { makeProse } from "./documents.ts";
import { makeWorkbook, sheetRow } from "./office-files.ts";

/** A table whose rows have unique names, and how each of its columns is asked for. */
export type DataTable = { title: string; section: string; head: string[]; rows: string[][]; asks: string[] };

const names =
  "Albatross Bittern Cormorant Dunnock Eider Fulmar Gannet Hobby Ibis Jackdaw Kestrel Linnet Merlin Nuthatch Osprey Petrel " +
  "Quail Razorbill Siskin Tern Umbrette Vireo Whimbrel Xenops Yellowhammer Zebrafinch Avocet Brambling Chiffchaff Dipper " +
  "Egret Fieldfare Goshawk Harrier Ivorybill Jacana Kittiwake Lapwing Mallard Nightjar";
const birds = names.split(" ");
const towns = birds.map((bird) => `${bird} Halt`);
const people = birds.map((bird, n) => `${["Ada", "Bo", "Cy", "Dee", "Eve"][n % 5]} ${bird}son`);

const row = (name: string, n: number, ...cells: ((n: number) => string | number)[]) => [
  name,
  ...cells.map((cell) => String(cell(n))),
];

/** Three tables are about the same pumps and articles, so that only their heads part them. */
export const tables = {
  html: {
    title: "Data sheets of the pumps",
    section: "Technical data",
    head: ["Pump", "Flow in litres", "Pressure minimum", "Pressure maximum", "Remarks"],
    rows: birds.map((name, n) =>
      row(
        name,
        n,
        (i) => 110 + i * 7,
        (i) => `0.${i + 11}`,
        (i) => `${i + 4}.5`,
        (i) => `Sealed with ring ${400 + i}; oil it | grease it every ${i + 2} weeks`,
      ),
    ),
    asks: ["", "Flow in litres of the pump", "Minimum pressure of the pump", "Maximum pressure of the pump", ""],
  },
  docx: {
    title: "Price list of the warehouse",
    section: "Prices and places",
    head: ["Article", "Price in euros", "Days of delivery", "Shelf"],
    rows: birds.map((name, n) =>
      row(
        `Gasket ${name}`,
        n,
        (i) => 19 + i * 3,
        (i) => 2 + (i % 9),
        (i) => `R${Math.floor(i / 4) + 1}`,
      ),
    ),
    asks: [
      "",
      "Price in euros of the gasket",
      "How many days does delivery take of the gasket",
      "On which shelf is the gasket",
    ],
  },
  markdown: {
    title: "Telephone directory",
    section: "Staff by name",
    head: ["Person", "Department", "Extension", "Office"],
    rows: people.map((name, n) =>
      row(
        name,
        n,
        (i) => ["Foundry", "Laboratory", "Dispatch"][i % 3] ?? "",
        (i) => 3_100 + i * 13,
        (i) => `B-${200 + i}`,
      ),
    ),
    asks: ["", "In which department is", "What is the extension of", "Where is the office of"],
  },
  pdf: {
    title: "Timetable of the harbour line",
    section: "Stations",
    head: ["Station", "Arrival", "Departure", "Platform"],
    rows: towns.map((name, n) =>
      row(
        name,
        n,
        (i) => `${6 + Math.floor(i / 6)}:${10 + (i % 6) * 8}`,
        (i) => `${6 + Math.floor(i / 6)}:${14 + (i % 6) * 8}`,
        (i) => `${1 + (i % 4)}`,
      ),
    ),
    asks: ["", "Arrival at the station", "Departure from the station", "Which platform has the station"],
  },
  xlsx: {
    title: "Machines of the halls",
    section: "Machines",
    head: ["Machine", "Power in kilowatts", "Built in", "Hall"],
    rows: birds.map((name, n) =>
      row(
        `Lathe ${name.slice(0, 4)}${n + 10}`,
        n,
        (i) => 4 + i * 2,
        (i) => 1961 + i,
        (i) => `H${1 + (i % 7)}`,
      ),
    ),
    asks: [
      "",
      "Power in kilowatts of the lathe",
      "In which year was built the lathe",
      "In which hall stands the lathe",
    ],
  },
  csv: {
    title: "Ships of the fleet",
    section: "",
    head: ["Ship", "Length in metres", "Crew", "Home port"],
    rows: birds.map((name, n) =>
      row(
        `Ferry ${name.slice(2, 5)}${n + 60}`,
        n,
        (i) => `${40 + i},5`,
        (i) => 11 + i * 3,
        (i) => ["Kiel", "Lübeck", "Emden", "Husum"][i % 4] ?? "",
      ),
    ),
    asks: ["", "Length in metres of the ferry", "How many people are the crew of the ferry", "Home port of the ferry"],
  },
} satisfies Record<string, DataTable>;

const intro = (title: string) => `${title}. ${makeProse(8, title.split(" ").at(-1))}`;
const escapeHtml = (text: string) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

/** A page whose table has a head of two rows, and a title above a few of its rows. */
export function makeHtmlTable({ title, section, head, rows }: DataTable): Buffer {
  const body = rows.map((cells, n) => {
    const label = n % 20 === 0 ? `<tr><td colspan="${head.length}">Series ${1 + n / 20}</td></tr>` : "";
    return `${label}<tr>${cells.map((cell) => `<td><p>${escapeHtml(cell)}</p></td>`).join("")}</tr>`;
  });
  const [name, flow, , , remarks] = head;
  return Buffer.from(`<!doctype html><html><head><title>${title}</title></head><body><nav><a href="/">Home</a></nav>
    <article><h1>${title}</h1><p>${intro(title)}</p><h2>${section}</h2><p>All pumps are tested.</p><table><thead>
    <tr><th rowspan="2">${name}</th><th rowspan="2">${flow}</th><th colspan="2">Pressure</th><th rowspan="2">${remarks}</th></tr>
    <tr><th>minimum</th><th>maximum</th></tr></thead><tbody>${body.join("\n")}</tbody></table><p>${makeProse(5)}</p></article></body></html>`);
}

/** A DOCX whose last column has cells over four rows. */
export function makeDocxTable({ title, section, head, rows }: DataTable): Promise<Buffer> {
  const cell = (text: string, rowSpan = 1) => new TableCell({ children: [new Paragraph(text)], rowSpan });
  const line = (cells: string[], n: number) => {
    const [last = ""] = cells.slice(-1);
    const first = cells.slice(0, -1).map((text) => cell(text));
    return new TableRow({ children: n % 4 === 0 ? [...first, cell(last, Math.min(4, rows.length - n))] : first });
  };
  const children = [
    new Paragraph({ text: title, heading: HeadingLevel.HEADING_1 }),
    new Paragraph(intro(title)),
    new Paragraph({ text: section, heading: HeadingLevel.HEADING_2 }),
    new Table({ rows: [new TableRow({ children: head.map((text) => cell(text)) }), ...rows.map(line)] }),
    new Paragraph(makeProse(5)),
  ];
  return Packer.toBuffer(new Document({ sections: [{ children }] }));
}

/** A workbook with a line above its table; what is a number is stored as one. */
export function makeXlsxTable({ title, section, head, rows }: DataTable): Buffer {
  const line = (cells: string[]) => sheetRow(cells.map((text) => (/^\d+$/.test(text) ? Number(text) : text)));
  return makeWorkbook([{ name: section, rows: [sheetRow([title]), sheetRow(head), ...rows.map(line)].join("") }]);
}

/** Texts between semicolons, as a spreadsheet writes them where the comma is in numbers. */
export function makeCsvTable({ head, rows }: DataTable): Buffer {
  return Buffer.from([head, ...rows].map((cells) => cells.map((text) => `"${text}"`).join(";")).join("\r\n"));
}

/** Markdown whose cells are padded to columns. */
export function makeMarkdownTable({ title, section, head, rows }: DataTable): Buffer {
  const line = (cells: string[]) => `| ${cells.map((text) => text.padEnd(30)).join(" | ")} |`;
  const dashes = `|${head.map(() => "-".repeat(32)).join("|")}|`;
  return Buffer.from(
    [
      `# ${title}`,
      "",
      intro(title),
      "",
      `## ${section}`,
      "",
      line(head),
      dashes,
      ...rows.map(line),
      "",
      makeProse(5),
    ].join("\n"),
  );
}

/** A PDF whose cells are texts at places; the last column ends at the right. It has one page for each twenty rows. */
export async function makePdfTable({ title, section, head, rows }: DataTable): Promise<Buffer> {
  const pdf = new PdfDocument();
  const parts: Buffer[] = [];
  pdf.on("data", (part: Buffer) => parts.push(part));
  const ended = once(pdf, "end");
  pdf.fontSize(18).text(title).fontSize(10).text(intro(title)).moveDown().fontSize(14).text(section).fontSize(10);
  let y = pdf.y + 10;
  const line = (cells: string[]) => {
    for (const [column, text] of cells.entries()) {
      const x = 72 + column * 110;
      if (column === cells.length - 1) pdf.text(text, x, y, { width: 80, align: "right", lineBreak: false });
      else pdf.text(text, x, y, { lineBreak: false });
    }
    y += 16;
  };
  for (const [n, cells] of rows.entries()) {
    if (n > 0 && n % 20 === 0) {
      pdf.addPage();
      y = 72;
    }
    if (n % 20 === 0) line(head);
    line(cells);
  }
  pdf.text(makeProse(5), 72, y + 20, { width: 450 });
  pdf.end();
  await ended;
  return Buffer.concat(parts);
}
