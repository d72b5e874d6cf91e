import { expect } from "chai";
import { AppError } from "../../src/lib/errors.ts";
import { parseSource, rejectUnreadable } from "../../src/rag/parse/parse-source.ts";
import { makeZip } from "../support/documents.ts";
import { makeDeck, makeOffice, makeWord, makeWorkbook, paragraph, shape, sheetRow } from "../support/office-files.ts";

async function reasonOf(
  bytes: Buffer,
  read: (source: { bytes: Buffer; name: string }) => Promise<unknown>,
  name = "a.bin",
) {
  const error: unknown = await read({ bytes, name }).then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (!(error instanceof AppError)) throw new TypeError(`not refused: ${String(error)}`);
  expect(error.code).to.equal("source_unreadable");
  return error.message;
}

const word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
const documentOf = (text: string, before = "") =>
  makeOffice(
    { "word/document.xml": `${before}<w:document xmlns:w="${word}"><w:body>${text}</w:body></w:document>` },
    { "": ["officeDocument:word/document.xml"] },
  );

describe("a document of Office", () => {
  it("is known by what it holds, whatever it is called", async () => {
    const files = [
      makeWord(paragraph("text")),
      makeWorkbook([{ name: "S", rows: sheetRow(["text"]) }]),
      makeDeck([{ shapes: shape("text") }]),
    ];
    for (const name of ["a.txt", "", "a.zip"]) {
      const types = await Promise.all(files.map(async (bytes) => (await parseSource({ bytes, name })).type));
      expect(types).to.deep.equal(["docx", "xlsx", "pptx"]);
    }
  });

  it("may have other names for its parts and namespaces, and be of the strict edition", async () => {
    const strict = "http://purl.oclc.org/ooxml/wordprocessingml/main";
    const bodies = [
      `<x:document xmlns:x="${strict}"><x:body><x:p><x:r><x:t>text</x:t></x:r></x:p></x:body></x:document>`,
      `<document xmlns="${word}"><body><p><r><t>text</t></r></p></body></document>`,
      `<document xmlns="${word}" xmlns:q="${word}"><body><p><pPr><pStyle q:val="Heading1"/></pPr><r><t>text</t></r></p></body></document>`,
    ];
    for (const body of bodies) {
      const { sections } = await parseSource({
        bytes: makeOffice({ "Odd/Main.xml": body }, { "": ["officeDocument:/odd/main.xml"] }),
      });
      expect(sections.map(({ text }) => text)).to.deep.equal(["text"]);
    }
  });

  it("may be written in UTF-16", async () => {
    const body = `<w:document xmlns:w="${word}"><w:body>${paragraph("größer")}</w:body></w:document>`;
    const content = Buffer.from(`\ufeff${body}`, "utf16le");
    const { sections } = await parseSource({ bytes: makeZip([{ name: "word/document.xml", content }]) });
    expect(sections).to.deep.equal([{ text: "größer" }]);
  });

  it("expands no entities", async () => {
    const levels = Array.from({ length: 12 }, (_, at) => `<!ENTITY e${at + 1} "${`&e${at};`.repeat(10)}">`).join("");
    const bomb = documentOf(paragraph("&e12;"), `<!DOCTYPE w:document [<!ENTITY e0 "lol">${levels}]>`);
    expect(await reasonOf(bomb, parseSource)).to.contain("document type");
    const foreign = documentOf(paragraph("&x;"), '<!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/passwd">]>');
    expect(await reasonOf(foreign, parseSource)).to.contain("document type");
    expect(await reasonOf(documentOf(paragraph("&unknown;")), parseSource)).to.contain("damaged");
  });

  it("is refused where its directory lies, in any part that is read", async () => {
    const bytes = 64 << 20;
    const part = (name: string, declaredBytes?: number) => ({
      name,
      content: Buffer.alloc(bytes, "a"),
      ...(declaredBytes ? { declaredBytes } : {}),
    });
    const main = {
      name: "xl/workbook.xml",
      content: Buffer.from('<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"/>'),
    };
    const rels = '<Relationships><Relationship Id="a" Type="x/styles" Target="styles.xml"/></Relationships>';
    const links = { name: "xl/_rels/workbook.xml.rels", content: Buffer.from(rels) };
    expect(await reasonOf(makeZip([main, links, part("xl/styles.xml", 1_000)]), parseSource)).to.contain("damaged");
    expect(await reasonOf(makeZip([main, links, part("xl/styles.xml")]), parseSource)).to.contain("inflates");
  });

  it("is refused where its parts are nested without an end, or cut", async () => {
    expect(await reasonOf(documentOf("<w:p><w:r><w:t>".repeat(10_000)), parseSource)).to.contain("nested too deeply");
    expect(await reasonOf(documentOf("<w:p>"), parseSource)).to.contain("damaged");
    expect(await reasonOf(makeOffice({}, { "": ["officeDocument:word/none.xml"] }), parseSource, "a.docx")).to.contain(
      "DOCX is damaged",
    );
  });

  it("refers to itself without harm", async () => {
    const list = ["slide:slides/slide1.xml"].map((id) => `<p:sldId r:id="${id}"/>`.repeat(1_000)).join("");
    const space =
      'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"';
    const slide = `<p:sld ${space}><p:cSld><p:spTree>${shape("once")}</p:spTree></p:cSld></p:sld>`;
    const deck = makeOffice(
      {
        "ppt/presentation.xml": `<p:presentation ${space}><p:sldIdLst>${list}</p:sldIdLst></p:presentation>`,
        "ppt/slides/slide1.xml": slide,
      },
      { "": ["officeDocument:ppt/presentation.xml"], "ppt/presentation.xml": ["slide:slides/slide1.xml"] },
    );
    expect((await parseSource({ bytes: deck })).sections).to.have.length(1);
    const based =
      '<w:style w:type="paragraph" w:styleId="A"><w:basedOn w:val="B"/></w:style><w:style w:type="paragraph" w:styleId="B"><w:basedOn w:val="A"/></w:style>';
    const { sections } = await parseSource({
      bytes: makeWord(paragraph("text", '<w:pStyle w:val="A"/>'), { styles: based }),
    });
    expect(sections).to.deep.equal([{ text: "text" }]);
  });
});

describe("a type of document that is not read", () => {
  const odf = (type: string) => {
    const mime = Buffer.from(`application/vnd.oasis.opendocument.${type}`);
    return makeZip([
      { name: "mimetype", content: mime, isStored: true },
      { name: "content.xml", content: Buffer.from("<x/>") },
    ]);
  };
  const container = (stream: string) => {
    const head = Buffer.alloc(4_096);
    head.write("d0cf11e0a1b11ae1", "hex");
    return Buffer.concat([head, Buffer.alloc(20_000), Buffer.from(stream, "utf16le"), Buffer.alloc(512)]);
  };
  const zipOf = (...names: string[]) => makeZip(names.map((name) => ({ name, content: Buffer.from("x") })));
  const cases: [string, Buffer][] = [
    ["an OpenDocument text", odf("text")],
    ["an OpenDocument spreadsheet", odf("spreadsheet")],
    ["an OpenDocument presentation", odf("presentation")],
    ["an encrypted document of Office", container("EncryptedPackage")],
    ["a Word document of the format before DOCX (.doc)", container("WordDocument")],
    ["an Excel workbook of the format before XLSX (.xls)", container("Workbook")],
    ["a PowerPoint presentation of the format before PPTX (.ppt)", container("PowerPoint Document")],
    ["an RTF text", Buffer.from("{\\rtf1\\ansi text}")],
    ["a picture (image/png)", Buffer.from("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489", "hex")],
    ["a binary Excel workbook (.xlsb)", zipOf("xl/workbook.bin")],
    ["an OpenDocument file", zipOf("META-INF/manifest.xml", "content.xml")],
    ["an EPUB book", zipOf("META-INF/container.xml")],
    ["a ZIP archive", zipOf("readme.txt")],
  ];
  for (const [kind, bytes] of cases) {
    it(`is named, with what is read: ${kind}`, async () => {
      const reason = await reasonOf(bytes, parseSource);
      expect(reason).to.contain(`It is ${kind}`).and.to.contain("What is read is PDF, DOCX, XLSX, PPTX");
    });
  }

  it("is refused before it is kept, by its first bytes", async () => {
    expect(await reasonOf(container("WordDocument"), rejectUnreadable)).to.contain("(.doc)");
    expect(await reasonOf(odf("text"), rejectUnreadable)).to.contain("an OpenDocument text");
  });
});
