import { deflateRawSync } from "node:zlib";
import { type Attack, flood, ingestFile, toForm } from "../attack.ts";

type File = { make(): string | Uint8Array<ArrayBuffer>; type: string; name: string };

/** One hostile file after the other, in a few lanes. */
function files(name: string, about: string, file: File): Attack {
  return {
    name,
    about,
    async run({ member, signal }) {
      const form = await toForm({ bytes: file.make(), type: file.type, name: file.name });
      await flood(signal, 3, () => ingestFile(member, form));
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

/** A ZIP with one deflated entry, without the checks that a good archive passes. */
function zipOf(name: string, content: Buffer): Uint8Array<ArrayBuffer> {
  const data = deflateRawSync(content);
  const fields = (signature: number, size: number) => {
    const header = Buffer.alloc(size);
    header.writeUInt32LE(signature, 0);
    return header;
  };
  const common = (header: Buffer, at: number) => {
    header.writeUInt16LE(8, at);
    header.writeUInt32LE(data.length, at + 10);
    header.writeUInt32LE(content.length, at + 14);
    header.writeUInt16LE(name.length, at + 18);
  };
  const local = fields(0x04034b50, 30);
  common(local, 8);
  const central = fields(0x02014b50, 46);
  common(central, 10);
  const end = fields(0x06054b50, 22);
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(46 + name.length, 12);
  end.writeUInt32LE(30 + name.length + data.length, 16);
  return new Uint8Array(Buffer.concat([local, Buffer.from(name), data, central, Buffer.from(name), end]));
}

/** Attacks by documents in formats that are expanded when they are read. */
export const archiveAttacks: readonly Attack[] = [
  files("heavy-pdf", "a PDF of 2,000 pages that all draw 5,000 lines", {
    make: () => heavyPdf(2_000, 5_000),
    type: "application/pdf",
    name: "heavy.pdf",
  }),
  files("inflating-docx", "a DOCX whose text inflates to 200 MB", {
    make: () => zipOf("word/document.xml", Buffer.from(`<w:p><w:t>${"a ".repeat(100_000_000)}</w:t></w:p>`)),
    type: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    name: "inflating.docx",
  }),
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
