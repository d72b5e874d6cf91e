import { expect } from "chai";
import { parseSource } from "../../src/rag/parse/parse-source.ts";
import { makeDeck, type SlideSource, shape } from "../support/office-files.ts";

const parse = (slides: readonly SlideSource[], options: Parameters<typeof makeDeck>[1] = {}) =>
  parseSource({ bytes: makeDeck(slides, options), name: "deck.pptx" });
const textOf = async (shapes: string) => (await parse([{ shapes }])).sections.map(({ text }) => text).join("\n\n");
const frame = (inner: string) =>
  `<p:graphicFrame><a:graphic><a:graphicData>${inner}</a:graphicData></a:graphic></p:graphicFrame>`;

describe("parsing PPTX", () => {
  it("has a section for each slide in the order in which they are shown, with title, page and notes", async () => {
    const slides = [
      { shapes: shape("Valves", "title") + shape("open\nclosed", "body"), notes: "Show the valve." },
      { shapes: shape("Pumps", "ctrTitle") + shape("A box of text") },
    ];
    expect(await parse(slides, { order: [1, 0] })).to.deep.equal({
      type: "pptx",
      title: "Pumps",
      sections: [
        { page: 1, headings: ["Pumps"], text: "Pumps\n\nA box of text" },
        { page: 2, headings: ["Valves"], text: "Valves\n\n- open\n- closed\n\nNotes: Show the valve." },
      ],
    });
  });

  it("numbers lists, and indents what is below an item", async () => {
    const line = (text: string, properties: string) => `<a:p>${properties}<a:r><a:t>${text}</a:t></a:r></a:p>`;
    const auto = (type: string, more = "") => `<a:pPr ${more}><a:buAutoNum type="${type}"/></a:pPr>`;
    const lines = [
      line("one", auto("arabicPeriod")),
      line("below", auto("alphaLcParenR", 'lvl="1"')),
      line("two", auto("arabicPeriod")),
      line("none", "<a:pPr><a:buNone/></a:pPr>"),
      line("again", auto("arabicPeriod")),
    ];
    const body = `<p:sp><p:nvSpPr><p:cNvPr id="1" name="x"/><p:nvPr><p:ph idx="1"/></p:nvPr></p:nvSpPr><p:txBody>${lines.join("")}</p:txBody></p:sp>`;
    expect(await textOf(body)).to.equal("1. one\n  a) below\n2. two\nnone\n1. again");
  });

  it("reads tables with their spans, and shapes in groups", async () => {
    const cell = (text: string, more = "") =>
      `<a:tc ${more}><a:txBody><a:p><a:r><a:t>${text}</a:t></a:r></a:p></a:txBody></a:tc>`;
    const rows = [
      cell("Name") + cell("Pressure", 'gridSpan="2"') + cell("", 'hMerge="1"'),
      cell("P-1", 'rowSpan="2"') + cell("1") + cell("2"),
      cell("", 'vMerge="1"') + cell("3") + cell("4"),
    ];
    const inGroup = `<p:grpSp>${frame(`<a:tbl>${rows.map((row) => `<a:tr>${row}</a:tr>`).join("")}</a:tbl>`)}<p:grpSp>${shape("deep")}</p:grpSp></p:grpSp>`;
    expect(await textOf(inGroup)).to.equal(
      "| Name | Pressure | Pressure |\n|---|---|---|\n| P-1 | 1 | 2 |\n| P-1 | 3 | 4 |\n\ndeep",
    );
  });

  it("marks what is raised, lowered or struck out, and writes equations", async () => {
    const r = (text: string, look = "") => `<a:r><a:rPr ${look}/><a:t>${text}</a:t></a:r>`;
    const runs = `${r("10")}${r("6", 'baseline="30000"')}${r(" and H")}${r("2", 'baseline="-25000"')}${r("O ")}${r("old", 'strike="sngStrike"')}<a:br/>`;
    const power = "<m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>";
    const math = `<mc:AlternateContent><mc:Choice><m:oMathPara><m:oMath>${power}</m:oMath></m:oMathPara></mc:Choice><mc:Fallback>${r("no")}</mc:Fallback></mc:AlternateContent>`;
    const body = shape("x").replace(/<a:p>.*<\/a:p>/, `<a:p>${runs}${math}</a:p>`);
    expect(await textOf(body)).to.equal("10^6 and H_2O ~~old~~\nx^2");
  });

  it("writes charts and diagrams by the texts that are stored with them", async () => {
    const point = (at: number, text: string) => `<c:pt idx="${at}"><c:v>${text}</c:v></c:pt>`;
    const series = `<c:ser><c:tx>${point(0, "Flow")}</c:tx><c:cat>${point(0, "May")}${point(1, "June")}</c:cat><c:val>${point(0, "1.5")}${point(1, "2")}</c:val></c:ser>`;
    const chart = `<c:chartSpace NS><c:chart><c:title><a:t>Flow of P-9</a:t></c:title><c:plotArea>${series}</c:plotArea></c:chart></c:chartSpace>`;
    const diagram =
      '<dgm:dataModel NS><dgm:ptLst><dgm:pt><a:t>Fill</a:t></dgm:pt><dgm:pt type="pres"><a:t>no</a:t></dgm:pt><dgm:pt><a:t>Bleed</a:t></dgm:pt></dgm:ptLst></dgm:dataModel>';
    const links = ["chart:../c.xml", "diagramData:../d.xml"];
    const shapes = frame('<c:chart r:id="chart:../c.xml"/>') + frame('<dgm:relIds r:dm="diagramData:../d.xml"/>');
    const { sections, warnings } = await parse([{ shapes, links }], {
      parts: { "ppt/c.xml": chart, "ppt/d.xml": diagram },
    });
    expect(sections[0]?.text).to.equal(
      "Flow of P-9\n\n|  | Flow |\n|---|---|\n| May | 1.5 |\n| June | 2 |\n\n- Fill\n- Bleed",
    );
    expect(warnings).to.equal(undefined);
  });

  it("names pictures, objects and hidden slides that are left out, with their pages", async () => {
    const picture = '<p:pic><p:nvPicPr><p:cNvPr id="1" name="x" descr="A pump in a cellar"/></p:nvPicPr></p:pic>';
    const { sections, warnings } = await parse([
      { shapes: shape("One", "title") + picture },
      { shapes: shape("Two", "title"), attributes: 'show="0"' },
      { shapes: shape("Three", "title") + frame("<p:oleObj/>") },
    ]);
    expect(sections.map(({ page, text }) => [page, text])).to.deep.equal([
      [1, "One\n\n[Picture: A pump in a cellar]"],
      [3, "Three"],
    ]);
    expect(warnings).to.deep.equal([
      { code: "parts_left_out", message: "Left out: 1 picture, 1 embedded object, 1 hidden slide.", pages: [1, 2, 3] },
    ]);
  });

  it("reads a foot that all slides have once, and no numbers of slides", async () => {
    const foot = shape("Acme, internal", "ftr") + shape("7", "sldNum");
    const { sections } = await parse([{ shapes: shape("a") + foot }, { shapes: shape("b") + foot }]);
    expect(sections.map(({ text }) => text)).to.deep.equal(["a\n\nAcme, internal", "b"]);
  });
});
