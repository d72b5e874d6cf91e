import { once } from "node:events";
import { createCanvas } from "@napi-rs/canvas";
import PdfDocument from "pdfkit";

/** A page of a PDF: its text, or a picture over all of it that shows lines of text; blank where it has neither. */
export type ScanPage = { text?: string; shows?: readonly string[]; pixels?: readonly [width: number, height: number] };

/** A PDF of pages of A4 of which some are pictures, as a scanner makes them. */
export async function makeScannedPdf(pages: readonly ScanPage[]): Promise<Buffer> {
  const pdf = new PdfDocument({ size: "A4", autoFirstPage: false });
  const parts: Buffer[] = [];
  pdf.on("data", (part: Buffer) => parts.push(part));
  const ended = once(pdf, "end");
  for (const { text, shows, pixels } of pages) {
    pdf.addPage();
    if (shows) pdf.image(pictureOf(shows, pixels), 0, 0, { width: 595, height: 842 });
    if (text) pdf.text(text);
  }
  pdf.end();
  await ended;
  return Buffer.concat(parts);
}

/** A picture of lines of text, black on white. */
export function pictureOf(
  lines: readonly string[],
  [width, height]: readonly [number, number] = [1_240, 1_754],
): Buffer {
  const canvas = createCanvas(width, height);
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, width, height);
  context.fillStyle = "black";
  context.font = `${Math.round(width / 35)}px sans-serif`;
  for (const [n, line] of lines.entries()) context.fillText(line, width / 10, (height / 18) * (n + 2));
  return canvas.toBuffer("image/jpeg");
}
