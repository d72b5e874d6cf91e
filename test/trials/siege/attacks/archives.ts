import { makeInflatingDocx } from "../../../support/documents.ts";
import { type Attack, flood, ingestFile, toForm } from "../attack.ts";

type File = { make(): string | Uint8Array<ArrayBuffer>; type: string; name: string };

/** How files are sent: in a few lanes that wait for nothing, or the next one when the last one has been read. */
const atOnce = { lanes: 3, prefer: "respond-async" };
const oneByOne = { lanes: 1, prefer: "wait=60" };

/** One hostile file after the other. */
function files(name: string, about: string, file: File, { lanes, prefer } = atOnce): Attack {
  return {
    name,
    about,
    async run({ member, signal }) {
      const form = await toForm({ bytes: file.make(), type: file.type, name: file.name });
      await flood(signal, lanes, () => ingestFile(member, form, prefer));
    },
  };
}

/** A PDF whose page tree has `pages` leaves, all of which draw the same deflated text. */
function heavyPdf(pages: number, lines: number): Uint8Array<ArrayBuffer> {
  const text = `BT /F1 8 Tf ${"(every word is set one by one) Tj 0 -1 Td ".repeat(lines)} ET`;
  const stream = deflateLikePdf(text);
  const kids = Array.from({ length: pages }, (_, n) => `${n + 5} 0 R`).join(" ");
  const objects = [
    "1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj",
    `2 0 obj << /Type /Pages /Count ${pages} /Kids [${kids}] >> endobj`,
    "3 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj",
    `4 0 obj << /Length ${stream.length} /Filter /ASCIIHexDecode >> stream\n${stream}\nendstream endobj`,
    ...Array.from(
      { length: pages },
      (_, n) =>
        `${n + 5} 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /Font << /F1 3 0 R >> >> >> endobj`,
    ),
  ];
  return new Uint8Array(Buffer.from(`%PDF-1.4\n${objects.join("\n")}\ntrailer << /Root 1 0 R >>\n%%EOF`));
}

const deflateLikePdf = (text: string) => `${Buffer.from(text).toString("hex")}>`;

/** Attacks by documents in formats that are expanded when they are read. */
export const archiveAttacks: readonly Attack[] = [
  files("heavy-pdf", "a PDF of 2,000 pages that all draw 5,000 lines", {
    make: () => heavyPdf(2_000, 5_000),
    type: "application/pdf",
    name: "heavy.pdf",
  }),
  files(
    "inflating-docx",
    "a DOCX whose text inflates to 200 MB, one at a time",
    {
      make: () => new Uint8Array(makeInflatingDocx(200_000_000)),
      type: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
      name: "inflating.docx",
    },
    oneByOne,
  ),
  files("many-headings", "Markdown of 500,000 headings", {
    make: () => "# a\n\nb\n\n".repeat(500_000),
    type: "text/markdown",
    name: "headings.md",
  }),
  files("open-attributes", "HTML of two million attributes", {
    make: () => `<p ${"a b=c ".repeat(2_000_000)}>x</p>`,
    type: "text/html",
    name: "attributes.html",
  }),
  files("surrogates", "10 MB of emoji, which are many tokens each", {
    make: () => "👩‍👩‍👧‍👦".repeat(400_000),
    type: "text/plain",
    name: "emoji.txt",
  }),
];
