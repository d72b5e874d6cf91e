import { expect } from "chai";
import { parseSource } from "../../src/rag/parse/parse-source.ts";
import { makeOffice, makeWorkbook, type SheetSource, sheetRow } from "../support/office-files.ts";

const parse = (sheets: readonly SheetSource[], options: Parameters<typeof makeWorkbook>[1] = {}) =>
  parseSource({ bytes: makeWorkbook(sheets, options), name: "folder/prices.xlsx" });
const textOf = async (
  rows: readonly string[],
  options: Parameters<typeof makeWorkbook>[1] & { more?: string } = {},
) => {
  const { more = "" } = options;
  const { sections } = await parse([{ name: "S", rows: rows.join(""), more }], options);
  return sections.map(({ text }) => text.replace(/^S\n\n/, "")).join("");
};
const formats = (codes: readonly string[]) =>
  `<numFmts>${codes.map((code, at) => `<numFmt numFmtId="${200 + at}" formatCode="${code}"/>`).join("")}</numFmts><cellXfs><xf numFmtId="0"/>${codes.map((_, at) => `<xf numFmtId="${200 + at}"/>`).join("")}</cellXfs>`;

describe("parsing XLSX", () => {
  it("has a section for each sheet under its name, and the file's name as title", async () => {
    const sheets = ["Pumps", "Valves"].map((name) => ({
      name,
      rows: sheetRow(["Name", "Price"]) + sheetRow([`${name} 1`, 2]),
    }));
    expect(await parse(sheets)).to.deep.equal({
      type: "xlsx",
      title: "prices",
      sections: [
        { headings: ["Pumps"], text: "Pumps\n\n| Name | Price |\n|---|---|\n| Pumps 1 | 2 |" },
        { headings: ["Valves"], text: "Valves\n\n| Name | Price |\n|---|---|\n| Valves 1 | 2 |" },
      ],
    });
  });

  it("has lines above a table as text, and its head again where it goes on behind an empty row", async () => {
    const rows = [
      sheetRow(["Prices of 2026"], 'r="1"'),
      sheetRow(["Name", "Price"], 'r="3"'),
      sheetRow(["a", 1], 'r="4"'),
      sheetRow(["b", 2], 'r="6"'),
      sheetRow(["Other", "Table"], 'r="9"'),
      sheetRow(["c", "d"], 'r="10"'),
    ];
    const [one, two, three] = ["| a | 1 |", "| b | 2 |", "| c | d |"];
    const head = "| Name | Price |\n|---|---|\n";
    expect(await textOf(rows)).to.equal(
      `Prices of 2026\n\n${head}${one}\n\n${head}${two}\n\n| Other | Table |\n|---|---|\n${three}`,
    );
  });

  it("writes dates as dates, whatever their format and their first year", async () => {
    const codes = ["dd.mm.yyyy", "m/d/yy h:mm", "[$-407]d. mmmm yyyy", "mmm yyyy", "[h]:mm", "h:mm:ss"];
    const row = sheetRow(["x", ...codes.map((_, at) => [45_000.5, at + 1] as const)]);
    const options = { styles: formats(codes) };
    expect(await textOf([sheetRow(["a", "b", "c", "d", "e", "f", "g"]), row], options)).to.contain(
      "| x | 2023-03-15 | 2023-03-15 12:00 | 2023-03-15 | Mar 2023 | 1080012:00 | 12:00:00 |",
    );
    const old = await textOf([sheetRow(["a", "b"]), sheetRow(["x", [43_538, 1]])], {
      ...options,
      properties: '<workbookPr date1904="1"/>',
    });
    expect(old).to.contain("| x | 2023-03-15 |");
    expect(
      await textOf([sheetRow(["a", "b"]), sheetRow(["x", [45_000, 1]])], {
        styles: '<cellXfs><xf/><xf numFmtId="14"/></cellXfs>',
      }),
    ).to.contain("2023-03-15");
  });

  it("writes numbers as they are shown, without marks between thousands", async () => {
    const codes = ["0.0%", "#,##0.00 &quot;€&quot;", "00000", "0.00E+00", "General", "not [ valid", ";;;"];
    const values = [0.125, 1_234.5, 42, 12_345, 0.1 + 0.2, 7, 5];
    const row = sheetRow(["x", ...values.map((value, at) => [value, at + 1] as const)]);
    const text = await textOf([sheetRow(["a", ...codes.map((_, at) => `${at}`)]), row], { styles: formats(codes) });
    expect(text.split("\n").at(-1)).to.equal("| x | 12.5% | 1234.50 € | 00042 | 1.23E+04 | 0.3 | 7 |");
  });

  it("reads texts of all kinds, results of formulas, and errors", async () => {
    const strings =
      '<si><t>shared</t></si><si><r><t>10</t></r><r><rPr><vertAlign val="superscript"/></rPr><t>6</t></r><r><rPr><strike/></rPr><t> old</t></r><rPh><t>furigana</t></rPh></si>';
    const cells =
      '<c t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="str"><f>A1</f><v>made</v></c><c><f>1+1</f><v>2</v></c><c t="b"><v>1</v></c><c t="e"><v>#N/A</v></c><c t="d"><v>2026-05-01T08:00</v></c><c><f>B1</f></c>';
    const { sections, warnings } = await parse([{ name: "S", rows: `<row>${cells}</row>` }], { strings });
    expect(sections[0]?.text).to.contain("| shared | 10^6 ~~old~~ | made | 2 | TRUE | #N/A | 2026-05-01 08:00 |");
    expect(warnings?.[0]?.message).to.equal("Left out: 1 formula without a stored result.");
  });

  it("leaves out what is hidden, and says so", async () => {
    const rows =
      sheetRow(["a", "b", "c"]) +
      sheetRow(["1", "2", "3"], 'hidden="1"').replaceAll("is>", "v>").replaceAll("<t>", "").replaceAll("</t>", "") +
      sheetRow(["4", "5", "6"]);
    const { sections, warnings } = await parse([
      { name: "Shown", rows, before: '<cols><col min="2" max="2" hidden="1"/></cols>' },
      { name: "Secret", rows, state: "hidden" },
      { name: "More", rows, state: "veryHidden" },
    ]);
    expect(sections).to.deep.equal([{ headings: ["Shown"], text: "Shown\n\n| a | c |\n|---|---|\n| 4 | 6 |" }]);
    expect(warnings).to.deep.equal([
      { code: "parts_left_out", message: "Left out: 2 hidden sheets, 1 hidden row, 1 hidden column." },
    ]);
  });

  it("repeats cells that are shown as one, joins the rows of a head, and has a title once", async () => {
    const rows = [
      sheetRow(["Pumps of 2026"], 'r="1"'),
      sheetRow(["Name", "Pressure"], 'r="2"'),
      sheetRow([null, "low", "high"], 'r="3"'),
      sheetRow(["P-1", 1, 2], 'r="4"'),
      sheetRow([null, 3, 4], 'r="5"'),
    ];
    const more = `<mergeCells>${["A1:C1", "A2:A3", "B2:C2", "A4:A5"].map((ref) => `<mergeCell ref="${ref}"/>`).join("")}</mergeCells>`;
    expect(await textOf(rows, { more })).to.equal(
      "Pumps of 2026\n\n| Name | Pressure low | Pressure high |\n|---|---|---|\n| P-1 | 1 | 2 |\n| P-1 | 3 | 4 |",
    );
  });

  it("reads the boxes, charts and pictures that lie over a sheet", async () => {
    const main = "http://schemas.openxmlformats.org";
    const space = `xmlns="${main}/spreadsheetml/2006/main" xmlns:r="${main}/officeDocument/2006/relationships"`;
    const file = makeOffice(
      {
        "xl/workbook.xml": `<workbook ${space}><sheets><sheet name="S" r:id="worksheet:s.xml"/></sheets></workbook>`,
        "xl/s.xml": `<worksheet ${space}><sheetData>${sheetRow(["a"])}</sheetData></worksheet>`,
        "xl/d.xml": `<xdr:wsDr xmlns:xdr="${main}/drawingml/2006/spreadsheetDrawing" xmlns:a="${main}/drawingml/2006/main"><xdr:twoCellAnchor><xdr:sp><xdr:txBody><a:p><a:r><a:t>A box</a:t></a:r></a:p></xdr:txBody></xdr:sp></xdr:twoCellAnchor><xdr:twoCellAnchor><xdr:pic/></xdr:twoCellAnchor></xdr:wsDr>`,
      },
      { "": ["officeDocument:xl/workbook.xml"], "xl/workbook.xml": ["worksheet:s.xml"], "xl/s.xml": ["drawing:d.xml"] },
    );
    const { sections, warnings } = await parseSource({ bytes: file, name: "a.xlsx" });
    expect(sections[0]?.text).to.equal("S\n\na\n\nA box");
    expect(warnings?.[0]?.message).to.equal("Left out: 1 picture.");
  });

  it("reads a sheet by the cells that it has, whatever size it claims", async () => {
    const far =
      '<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>far</t></is></c><c r="A1048576"><v>1</v></c></row>';
    const before = '<dimension ref="A1:XFD1048576"/>';
    const { sections } = await parse([{ name: "S", rows: sheetRow(["near"]) + far, before }]);
    expect(sections[0]?.text).to.equal("S\n\nnear\n\n| 1 | far |\n|---|---|");
  });

  it("does not grow without bound by cells in places of their own, nor by cells shown as one", async () => {
    const places = Array.from(
      { length: 16_000 },
      (_, at) =>
        `<row r="${at + 1}"><c r="A${at + 1}"><v>1</v></c><c r="${columnName(at)}${at + 1}"><v>7</v></c></row>`,
    );
    const sparse = await textOf(places);
    expect(sparse.length).to.be.below(1_000_000);
    const rows = Array.from({ length: 2_000 }, (_, at) => sheetRow(["long text ".repeat(20), 1], `r="${at + 1}"`));
    const merges = Array.from({ length: 2_000 }, (_, at) => `<mergeCell ref="A${at + 1}:XFD1048576"/>`).join("");
    const merged = await textOf(rows, { more: `<mergeCells>${merges}</mergeCells>` });
    expect(merged.length).to.be.below(2_000_000);
  });
});

function columnName(at: number): string {
  return at < 26 ? String.fromCharCode(65 + at) : columnName(Math.floor(at / 26) - 1) + columnName(at % 26);
}
