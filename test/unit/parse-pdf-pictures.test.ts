import { expect } from "chai";
import PdfDocument from "pdfkit";
import { languageFile } from "../../src/lib/ocr-languages.ts";
import { parsePdf } from "../../src/rag/parse/pdf.ts";
import { draw, makeRawPdf } from "../support/raw-pdf.ts";
import { makeScannedPdf, pictureOf } from "../support/scans.ts";

const text = "A pump moves water from one place to another, and its motor turns it for as long as it is needed.";
const scan = { shows: ["Replace the gasket every", "400 hours, when cold."] };
const warningsOf = async (pdf: Buffer) => (await parsePdf(pdf)).warnings?.map(({ code, pages }) => ({ code, pages }));

describe("pages of PDF that are pictures", () => {
  it("are named, and blank pages are not", async () => {
    const pdf = await makeScannedPdf([{ text }, scan, {}, { text }, scan]);
    const { warnings, sections } = await parsePdf(pdf);
    expect(sections.map(({ page }) => page)).to.deep.equal([1, 4]);
    expect(warnings).to.deep.equal([
      {
        code: "pages_without_text",
        message: "There is no text on 2 pages (2, 5), only pictures, which were not read.",
        pages: [2, 5],
      },
    ]);
  });

  it("are named although a stamp or a number is printed onto them", async () => {
    const pdf = await makeScannedPdf([{ text }, { ...scan, text: "Received 2026-03-01" }]);
    expect(await warningsOf(pdf)).to.deep.equal([{ code: "pages_without_text", pages: [2] }]);
  });

  it("are named where their letters are drawn as shapes", async () => {
    const shapes = Array.from({ length: 60 }, (_, n) => `${n * 8} 700 m ${n * 8 + 5} 710 l S\n`).join("");
    const pdf = makeRawPdf([{ content: draw(text, 60, 700) }, { content: shapes }]);
    expect(await warningsOf(pdf)).to.deep.equal([{ code: "pages_without_text", pages: [2] }]);
  });

  it("are refused in words that say so, where all pages are", async () => {
    const error = await parsePdf(await makeScannedPdf([scan, scan])).catch((cause: unknown) => cause);
    expect(error).to.have.property("message").that.contains("no text in it, only pictures");
  });

  it("are parts that are left out where a text stands beside a picture, but logos and lines are none", async () => {
    const pdf = new PdfDocument();
    const parts: Buffer[] = [];
    pdf.on("data", (part: Buffer) => parts.push(part));
    const picture = pictureOf(["Figure"], [300, 200]);
    for (const page of [1, 2, 3, 4]) {
      if (page > 1) pdf.addPage();
      pdf.image(picture, 500, 20, { width: 90 }).text(text).rect(50, 400, 300, 1).fill();
      if (page === 3) pdf.image(picture, 100, 300, { width: 300 });
    }
    await new Promise((resolve) => pdf.on("end", resolve).end());
    expect(await warningsOf(Buffer.concat(parts))).to.deep.equal([{ code: "parts_left_out", pages: [3] }]);
  });
});

describe("recognition of text in pictures", function () {
  this.timeout(120_000);
  const ocr = { languages: ["eng"], withinMs: 100_000 };

  it("reads the pages that are pictures, between the others, and marks them", async () => {
    const pdf = await makeScannedPdf([{ text }, { ...scan, text: "Copy 7" }, { text }]);
    const { sections, warnings } = await parsePdf(pdf, { ocr });
    expect(sections.map(({ page }) => page)).to.deep.equal([1, 2, 3]);
    expect(sections[1]?.text)
      .to.match(/^Copy 7\n/)
      .and.to.contain("gasket every")
      .and.to.contain("400 hours");
    expect(warnings).to.deep.equal([
      {
        code: "read_by_ocr",
        message: "The text of page 2 was recognized in a picture and may have mistakes.",
        pages: [2],
      },
    ]);
  });

  it("reads what is written in another language, and both in one document", async () => {
    const pdf = await makeScannedPdf([{ shows: ["Überdruckventil öffnen"] }, { shows: ["Close the drain plug"] }]);
    const { sections } = await parsePdf(pdf, { ocr: { ...ocr, languages: ["deu", "eng"] } });
    expect(sections[0]?.text).to.contain("Überdruckventil öffnen");
    expect(sections[1]?.text).to.contain("Close the drain plug");
  });

  it("leaves out what is no text, and what it has no time for", async () => {
    const pdf = await makeScannedPdf([{ text }, { shows: [] }]);
    const unread = [{ code: "pages_without_text", pages: [2] }];
    for (const withinMs of [100_000, 1]) {
      const { warnings } = await parsePdf(pdf, { ocr: { ...ocr, withinMs } });
      expect(warnings?.map(({ code, pages }) => ({ code, pages }))).to.deep.equal(unread);
    }
  });

  it("takes its data from packages: a language without one is not known", () => {
    expect(languageFile("eng")).to.contain("eng.traineddata");
    expect(languageFile("xyz")).to.equal(undefined);
    expect(languageFile("../eng")).to.equal(undefined);
  });
});
