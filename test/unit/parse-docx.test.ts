import { expect } from "chai";
import { parseSource } from "../../src/rag/parse/parse-source.ts";
import { item, level, lists, makeWord, paragraph, run, style, table } from "../support/office-files.ts";

type Options = Parameters<typeof makeWord>[1];
const parse = (body: string, options: Options = {}) => parseSource({ bytes: makeWord(body, options), name: "a.docx" });
const textOf = async (body: string, options: Options = {}) =>
  (await parse(body, options)).sections.map(({ text }) => text).join("\n\n");

const heading = (at: number) => `<w:pStyle w:val="Heading${at}"/>`;
const numbered = (at: number, list: number) => `<w:numPr><w:ilvl w:val="${at}"/><w:numId w:val="${list}"/></w:numPr>`;
const headingStyles = [1, 2]
  .map((at) => style(`Heading${at}`, { name: `heading ${at}`, properties: numbered(at - 1, 1) }))
  .join("");
const chapters = level(0, "%1") + level(1, "%1.%2");

describe("numbers of a DOCX", () => {
  it("stand in its headings, by their styles", async () => {
    const body = [
      paragraph("Safety", heading(1)),
      paragraph("Start-up", heading(1)),
      paragraph("Filling", heading(2)),
      paragraph("Text."),
    ];
    const { sections } = await parse(body.join(""), { styles: headingStyles, numbering: lists([chapters]) });
    expect(sections.map(({ headings }) => headings)).to.deep.equal([
      ["1 Safety"],
      ["2 Start-up"],
      ["2 Start-up", "2.1 Filling"],
    ]);
    expect(sections[2]?.text).to.equal("2.1 Filling\n\nText.");
  });

  it("go on after a paragraph, and begin where the list says", async () => {
    const body = [item("open", 1), item("wait", 1), paragraph("A note."), item("close", 1), item("start", 2)].join("");
    const numbering = lists([level(0, "%1."), level(0, "%1.", { start: 3 })]);
    expect(await textOf(body, { numbering })).to.equal("1. open\n2. wait\n\nA note.\n\n3. close\n3. start");
  });

  it("begin again below the item above, unless the level says otherwise", async () => {
    const levels = (more: string) => level(0, "%1.") + level(1, "%2)", { format: "lowerLetter", more });
    const body = [item("a", 1), item("b", 1, 1), item("c", 1, 1), item("d", 1), item("e", 1, 1)].join("");
    expect(await textOf(body, { numbering: lists([levels("")]) })).to.equal("1. a\n  a) b\n  b) c\n2. d\n  a) e");
    const kept = lists([levels('<w:lvlRestart w:val="0"/>')]);
    expect(await textOf(body, { numbering: kept })).to.equal("1. a\n  a) b\n  b) c\n2. d\n  c) e");
  });

  it("are shared by lists of one template, until one of them begins again", async () => {
    const again =
      '<w:num w:numId="9"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="10"><w:abstractNumId w:val="0"/>' +
      '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>';
    const body = [item("a", 1), item("b", 9), item("c", 10), item("d", 10)].join("");
    expect(await textOf(body, { numbering: lists([level(0, "%1.")], again) })).to.equal("1. a\n2. b\n1. c\n2. d");
  });

  it("have the format of their list", async () => {
    const formats = ["upperRoman", "lowerLetter", "decimalZero", "ordinal", "bullet", "none", "chicago"];
    const numbering = lists(formats.map((format) => level(0, format === "none" ? "Note" : "%1", { format, start: 4 })));
    const body = formats.map((format, at) => item(format, at + 1)).join("");
    expect(await textOf(body, { numbering })).to.equal(
      "IV upperRoman\nd lowerLetter\n04 decimalZero\n4th ordinal\n- bullet\nNote none\n4 chicago",
    );
  });

  it("are those of a style of lists, of a level in figures, and none where a paragraph takes them off", async () => {
    const legal = level(0, "%1", { format: "upperRoman" }) + level(1, "%1.%2", { more: "<w:isLgl/>" });
    const linked =
      '<w:abstractNum w:abstractNumId="7"><w:numStyleLink w:val="Steps"/></w:abstractNum><w:num w:numId="7"><w:abstractNumId w:val="7"/></w:num>';
    const styles =
      '<w:style w:type="numbering" w:styleId="Steps"><w:name w:val="Steps"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>' +
      style("Item", { properties: numbered(0, 1) });
    const body = [
      item("a", 7),
      item("b", 7, 1),
      paragraph("c", '<w:pStyle w:val="Item"/>'),
      paragraph("d", '<w:pStyle w:val="Item"/><w:numPr><w:numId w:val="0"/></w:numPr>'),
    ].join("");
    expect(await textOf(body, { styles, numbering: lists([legal], linked) })).to.equal("I a\n  1.1 b\nII c\n\nd");
  });
});

describe("headings and title of a DOCX", () => {
  it("come from styles that are based on others, from an outline, and not from what takes it back", async () => {
    const styles = [
      style("berschrift1", { name: "heading 1" }),
      style("Chapter", { basedOn: "berschrift1" }),
      style("Part", { properties: '<w:outlineLvl w:val="1"/>' }),
      style("TOCHeading", { basedOn: "berschrift1", properties: '<w:outlineLvl w:val="9"/>' }),
    ].join("");
    const body = [
      ["Contents", "TOCHeading"],
      ["One", "Chapter"],
      ["Two", "Part"],
    ].map(([text = "", id]) => paragraph(text, `<w:pStyle w:val="${id}"/>`));
    const last = paragraph("Three", '<w:outlineLvl w:val="2"/>');
    const { sections } = await parse(body.join("") + last, { styles });
    expect(sections.map(({ headings }) => headings)).to.deep.equal([
      undefined,
      ["One"],
      ["One", "Two"],
      ["One", "Two", "Three"],
    ]);
  });

  it("prefer the style of titles, then the properties that a person wrote, then the first heading", async () => {
    const styles = style("T", { name: "Title" }) + style("H", { name: "heading 1" });
    const body = paragraph("Chapter", '<w:pStyle w:val="H"/>') + paragraph("Text.");
    const titled = paragraph("The pump", '<w:pStyle w:val="T"/>') + body;
    expect((await parse(titled, { styles, title: "Other" })).title).to.equal("The pump");
    expect((await parse(body, { styles, title: "Manual of the pump" })).title).to.equal("Manual of the pump");
    expect((await parse(body, { styles, title: "Microsoft Word - x.doc" })).title).to.equal("Chapter");
  });
});

describe("the runs of a DOCX", () => {
  it("are read as they are shown", async () => {
    const field = (inner: string) => `<w:r><w:fldChar w:fldCharType="${inner}"/></w:r>`;
    const bodies: [string, string][] = [
      [`${run("Part 12")}<w:r><w:noBreakHyphen/></w:r>${run("A")}`, "Part 12-A"],
      [`${run("dis")}<w:r><w:softHyphen/></w:r>${run("char\u00adge")}`, "discharge"],
      [`${run("secret", "<w:vanish/>")}${run("shown")}`, "shown"],
      [`${run("not secret", '<w:vanish w:val="0"/>')}`, "not secret"],
      [
        `<w:r><w:sym w:font="Symbol" w:char="F0B1"/></w:r>${run("5 ")}${run("\uf06d", '<w:rFonts w:ascii="Symbol"/>')}${run("m")}`,
        "±5 μm",
      ],
      [
        `${field("begin")}<w:r><w:instrText> IF x </w:instrText></w:r>${run("code")}${field("separate")}${run("result")}${field("end")}`,
        "result",
      ],
      [`${field("begin")}${run("never ended")}`, "never ended"],
      [
        `<w:sdt><w:sdtContent>${run("control")}</w:sdtContent></w:sdt><w:smartTag>${run(" tag")}</w:smartTag>`,
        "control tag",
      ],
      [
        `<w:r><w:ruby><w:rt>${run("kanji")}</w:rt><w:rubyBase>${run("漢字")}</w:rubyBase></w:ruby></w:r>`,
        "漢字(kanji)",
      ],
      [
        `<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:checked/></w:checkBox></w:ffData></w:fldChar></w:r>${field("end")}${run(" yes")}`,
        "☒ yes",
      ],
    ];
    for (const [body, expected] of bodies) expect(await textOf(`<w:p>${body}</w:p>`)).to.equal(expected);
  });

  it("leave out text that a style hides", async () => {
    const styles = style("Gone", { look: "<w:vanish/>" }) + style("Below", { basedOn: "Gone" });
    const body = paragraph("secret", '<w:pStyle w:val="Below"/>') + paragraph("shown");
    const { sections, warnings } = await parse(body, { styles });
    expect(sections).to.deep.equal([{ text: "shown" }]);
    expect(warnings).to.deep.equal([{ code: "parts_left_out", message: "Left out: 1 piece of hidden text." }]);
  });

  it("mark what is raised, lowered or struck out, where it changes the meaning", async () => {
    const [up, down, struck] = ["superscript", "subscript"]
      .map((place) => `<w:vertAlign w:val="${place}"/>`)
      .concat("<w:strike/>");
    const bodies: [string, string][] = [
      [run("10") + run("6", up), "10^6"],
      [run("H") + run("2", down) + run("O"), "H_2O"],
      [run("x") + run("n", up) + run("+1", up) + run(" m"), "x^(n+1) m"],
      [run("10") + run("-3", up), "10^-3"],
      [run("the 1") + run("st", up) + run(" of Acme") + run("®", up), "the 1st of Acme®"],
      [run("6 bar ", struck) + run("8 bar", struck) + run(" 9 bar"), "~~6 bar 8 bar~~ 9 bar"],
      [run("none", '<w:strike w:val="false"/>'), "none"],
      [run("4", "<w:dstrike/>") + run("5"), "~~4~~5"],
    ];
    for (const [body, expected] of bodies) expect(await textOf(`<w:p>${body}</w:p>`)).to.equal(expected);
  });

  it("are the final text where changes are tracked", async () => {
    const deleted = `<w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:moveFrom>${run("moved")}</w:moveFrom>`;
    const joined = `<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>${run("one ")}</w:p>${paragraph("line")}`;
    const row = `<w:tr><w:trPr><w:del/></w:trPr><w:tc>${paragraph("gone")}</w:tc></w:tr>`;
    const rows = table([
      ["a", "b"],
      ["1", "2"],
    ]).replace("</w:tbl>", `${row}</w:tbl>`);
    const text = await textOf(`<w:p>${deleted}<w:ins>${run("new")}</w:ins></w:p>${joined}${rows}`);
    expect(text).to.equal("new\n\none line\n\n| a | b |\n|---|---|\n| 1 | 2 |");
  });
});

describe("equations of a DOCX", () => {
  const r = (text: string) => `<m:r><m:t>${text}</m:t></m:r>`;
  const e = (inner: string) => `<m:e>${inner}</m:e>`;
  const equations: [string, string, string][] = [
    ["a fraction", `<m:f><m:num>${r("a+b")}</m:num><m:den>${r("2")}</m:den></m:f>`, "(a+b)/2"],
    ["a power", `<m:sSup>${e(r("10"))}<m:sup>${r("6")}</m:sup></m:sSup>`, "10^6"],
    [
      "a power of a sum",
      `<m:sSup><m:e><m:d>${e(r("x+1"))}</m:d></m:e><m:sup>${r("n-1")}</m:sup></m:sSup>`,
      "(x+1)^(n-1)",
    ],
    ["an index", `<m:sSub>${e(r("v"))}<m:sub>${r("max")}</m:sub></m:sSub>`, "v_max"],
    ["a root", `<m:rad><m:deg/>${e(r("2gh"))}</m:rad>`, "√(2gh)"],
    ["a cubic root", `<m:rad><m:deg>${r("3")}</m:deg>${e(r("x"))}</m:rad>`, "root(3, x)"],
    [
      "a sum",
      `<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>${r("i=1")}</m:sub><m:sup>${r("n")}</m:sup>${e(r("i"))}</m:nary>`,
      "∑_(i=1)^n i",
    ],
    ["a function", `<m:func><m:fName>${r("sin")}</m:fName>${e(r("α"))}</m:func>`, "sin(α)"],
    [
      "a matrix",
      `<m:m><m:mr>${e(r("a"))}${e(r("b"))}</m:mr><m:mr>${e(r("c"))}${e(r("d"))}</m:mr></m:m>`,
      "[a, b; c, d]",
    ],
    ["letters of mathematics", r("𝐹=𝑚𝑎"), "F=ma"],
  ];
  for (const [what, source, expected] of equations) {
    it(`are written on a line: ${what}`, async () => {
      expect(await textOf(`<w:p>${run("so ")}<m:oMath>${source}</m:oMath></w:p>`)).to.equal(`so ${expected}`);
    });
  }

  it("are counted where they cannot be written", async () => {
    const object = '<w:r><w:object><o:OLEObject ProgID="Equation.DSMT4"/></w:object></w:r>';
    const field =
      '<w:r><w:fldChar w:fldCharType="begin"/><w:instrText>EQ \\f(1;2)</w:instrText><w:fldChar w:fldCharType="end"/></w:r>';
    const { warnings } = await parse(`<w:p>${run("text")}${object}${field}<m:oMath/></w:p>`);
    expect(warnings?.[0]?.message).to.equal("Left out: 3 equations that could not be written.");
  });
});

describe("boxes and pictures of a DOCX", () => {
  const content = (text: string) => `<w:txbxContent>${paragraph(text)}</w:txbxContent>`;
  const vml = (text: string) => `<w:pict><v:shape><v:textbox>${content(text)}</v:textbox></v:shape></w:pict>`;
  const dml = (text: string) =>
    `<w:drawing><wp:inline><a:graphic><a:graphicData><wps:wsp><wps:txbx>${content(text)}</wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:inline></w:drawing>`;
  const both = (choice: string, fallback: string) =>
    `<mc:AlternateContent><mc:Choice Requires="wps">${choice}</mc:Choice><mc:Fallback>${fallback}</mc:Fallback></mc:AlternateContent>`;

  it("are read once, of each kind, behind their paragraph", async () => {
    const forms = [
      vml("in VML"),
      dml("in DrawingML"),
      both(dml("in both"), vml("in both")),
      both("", vml("in the second")),
    ];
    const body = `<w:p>${run("Holds boxes")}${forms.map((form) => `<w:r>${form}</w:r>`).join("")}</w:p>${paragraph("End.")}`;
    expect(await textOf(body)).to.equal("Holds boxes\n\nin VML\n\nin DrawingML\n\nin both\n\nin the second\n\nEnd.");
  });

  it("hold lists, tables and boxes of their own", async () => {
    const inner = `${item("one", 1)}${table([
      ["a", "b"],
      ["1", "2"],
    ])}<w:p><w:r>${vml("inner box")}</w:r></w:p>`;
    const body = `<w:p><w:r><w:pict><v:textbox><w:txbxContent>${inner}</w:txbxContent></v:textbox></w:pict></w:r></w:p>`;
    expect(await textOf(body, { numbering: lists([level(0, "%1.")]) })).to.equal(
      "1. one\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\ninner box",
    );
  });

  it("tell what describes a picture, and that the picture is left out", async () => {
    const picture = (words: string) =>
      `<w:r><w:drawing><wp:inline><wp:docPr id="1" name="x" descr="${words}"/><pic:pic/></wp:inline></w:drawing></w:r>`;
    const { sections, warnings } = await parse(
      `<w:p>${run("See")}${picture("A valve that is open")}${picture("IMG_1.png")}</w:p>`,
    );
    expect(sections[0]?.text).to.equal("See\n\n[Picture: A valve that is open]");
    expect(warnings).to.deep.equal([{ code: "parts_left_out", message: "Left out: 2 pictures." }]);
  });
});

describe("notes, heads and feet of a DOCX", () => {
  const note = (kind: string, id: number, text: string) => `<w:${kind} w:id="${id}">${paragraph(text)}</w:${kind}>`;
  const reference = (kind: string, id: number) => `<w:r><w:${kind}Reference w:id="${id}"/></w:r>`;

  it("stand behind what refers to them, each once", async () => {
    const footnotes = `<w:footnote w:id="0" w:type="separator">${paragraph("line")}</w:footnote>${note("footnote", 5, "at 20 °C")}`;
    const endnotes = note("endnote", 5, "see the standard");
    const body = `<w:p>${run("300 rpm")}${reference("footnote", 5)}</w:p><w:p>${run("again")}${reference("footnote", 5)}${reference("endnote", 5)}</w:p>`;
    expect(await textOf(body, { footnotes, endnotes })).to.equal(
      "300 rpm[^1]\n\n[^1]: at 20 °C\n\nagain[^1][^i]\n\n[^i]: see the standard",
    );
  });

  it("stand behind the table that refers to them, and may refer to others", async () => {
    const footnotes = `<w:footnote w:id="1"><w:p>${run("first")}${reference("footnote", 2)}</w:p></w:footnote>${note("footnote", 2, "second")}`;
    const body = table([
      ["a", "b"],
      ["1", `<w:p>${run("2")}${reference("footnote", 1)}</w:p>`],
    ]);
    expect(await textOf(body, { footnotes })).to.equal(
      "| a | b |\n|---|---|\n| 1 | 2[^1] |\n\n[^1]: first[^2]\n\n[^2]: second",
    );
  });

  it("are read at the end of the document, without numbers of pages", async () => {
    expect(await textOf(paragraph("Text."), { header: paragraph("Order 4711") + paragraph("Page 1 of 7") })).to.equal(
      "Text.\n\nOrder 4711",
    );
  });
});

describe("tables of a DOCX", () => {
  const spanning = (text: string, properties: string) => `<w:tcPr>${properties}</w:tcPr>${paragraph(text)}`;

  it("stay tables where a cell holds one", async () => {
    const inner = table([
      ["a", "1"],
      ["b", "2"],
    ]);
    expect(
      await textOf(
        table([
          ["Code", "Values"],
          ["E01", inner],
        ]),
      ),
    ).to.equal("| Code | Values |\n|---|---|\n| E01 | a, 1; b, 2 |");
    const deep = table([
      ["x", "y"],
      ["z", inner],
    ]);
    expect(
      await textOf(
        table([
          ["Code", "Values"],
          ["E01", deep],
        ]),
      ),
    ).to.equal("| Code | Values |\n|---|---|\n| E01 | x, y; z, a, 1; b, 2 |");
  });

  it("repeat cells that span rows and columns, and join the rows of their head", async () => {
    const [twoRows, twoColumns, go] = ['<w:vMerge w:val="restart"/>', '<w:gridSpan w:val="2"/>', "<w:vMerge/>"];
    const rows = table([
      [spanning("Name", twoRows), spanning("Pressure", twoColumns)],
      [spanning("", go), "low", "high"],
      [spanning("P-1", twoRows), "1", "2"],
      [spanning("", go), "3", "4"],
    ]);
    const text = await textOf(rows.replaceAll(/<w:tr>(?=.*low)/g, "<w:tr><w:trPr><w:tblHeader/></w:trPr>"));
    expect(text).to.equal("| Name | Pressure low | Pressure high |\n|---|---|---|\n| P-1 | 1 | 2 |\n| P-1 | 3 | 4 |");
  });

  it("are read as text where they lay out a page", async () => {
    const styles = style("H", { name: "heading 1" });
    const body = table([
      [paragraph("Pumps", '<w:pStyle w:val="H"/>'), "x"],
      ["y", "z"],
    ]);
    const { sections } = await parse(body, { styles });
    expect(sections).to.deep.equal([{ text: "Pumps\n\nx\n\ny\n\nz", headings: ["Pumps"] }]);
    expect(await textOf(table([["only"], ["one column"]]))).to.equal("only\n\none column");
  });
});
