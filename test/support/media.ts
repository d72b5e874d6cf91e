import { crc32, deflateSync } from "node:zlib";

/** A picture in one colour, as a data: URL of a PNG. */
export function pictureOf(width: number, height: number, colour = 0): string {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 0], 8); // eight bits of grey
  const rows = Buffer.alloc((width + 1) * height, colour);
  const chunks = [chunkOf("IHDR", header), chunkOf("IDAT", deflateSync(rows)), chunkOf("IEND", Buffer.alloc(0))];
  const bytes = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), ...chunks]);
  return `data:image/png;base64,${bytes.toString("base64")}`;
}

function chunkOf(name: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

/** A file that says that it is a PDF, as a data: URL. */
export const pdf = `data:application/pdf;base64,${Buffer.from("%PDF-1.7\n%%EOF\n").toString("base64")}`;
export const linkedPicture = "https://pictures.example/quay.png";
export const linkedPdf = "https://files.example/terms.pdf";
