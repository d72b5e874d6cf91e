import { expect } from "chai";
import { parsePdf } from "../../src/rag/parse/pdf.ts";
import { draw, makeRawPdf, type RawPage, streamOf } from "../support/raw-pdf.ts";

const parse = (pages: readonly RawPage[], info?: string) => parsePdf(makeRawPdf(pages, info));
const parsePage = (content: string, page: Omit<RawPage, "content"> = {}) => parse([{ content, ...page }]);
const textOf = async (content: string, page: Omit<RawPage, "content"> = {}) =>
  (await parsePage(content, page)).sections.map(({ text }) => text).join("\n\n");

/** Lines of prose from the top of a page down. */
const prose = (from: number, count: number, x = 60) =>
  Array.from({ length: count }, (_, n) =>
    draw(`Sentence ${n} of the running text of the page.`, x, from - n * 14),
  ).join("");

describe("superscripts of PDF", () => {
  it("are marked, so that a power is no larger number and a note no part of a word", async () => {
    const rise =
      "BT /F1 11 Tf 60 780 Td (The count is 10) Tj /F1 7 Tf 4 Ts (6) Tj 0 Ts /F1 11 Tf ( per litre.) Tj ET\n";
    const apart = draw("Area 25 m", 60, 760) + draw("2", 110, 764, { size: 7 }) + draw("and value", 118, 760);
    const note = "BT /F1 11 Tf 60 740 Td (It turns at 300 rpm) Tj /F1 7 Tf 4 Ts (3) Tj ET\n";
    expect(await textOf(rise + apart + note)).to.equal(
      "The count is 10^6 per litre.\nArea 25 m^2 and value\nIt turns at 300 rpm^3",
    );
  });

  it("may have a sign before them and a numerator below them", async () => {
    const power = "BT /F1 11 Tf 60 780 Td (less than 10) Tj /F1 7 Tf 4 Ts (-3) Tj 0 Ts /F1 11 Tf ( bar) Tj ET\n";
    expect(await textOf(power)).to.equal("less than 10^-3 bar");
  });

  it("are none in ordinals, in logos and below the line", async () => {
    const ordinal = "BT /F1 11 Tf 60 780 Td (the 1) Tj /F1 7 Tf 4 Ts (st) Tj 0 Ts /F1 11 Tf ( pump) Tj ET\n";
    const logo = "BT /F1 11 Tf 60 760 Td (L) Tj /F1 7 Tf 3 Ts (A) Tj 0 Ts /F1 11 Tf (TEX) Tj ET\n";
    const index = "BT /F1 11 Tf 60 740 Td (CO) Tj /F1 7 Tf -2 Ts (2) Tj 0 Ts /F1 11 Tf ( gas) Tj ET\n";
    expect(await textOf(ordinal + logo + index)).to.equal("the 1st pump\nLATEX\nCO2 gas");
  });
});

describe("texts of PDF beside the running text", () => {
  const stamp = {
    Stamp: streamOf(
      draw("Received 2026-03-01", 400, 820, { size: 9 }),
      "/Type /XObject /Subtype /Form /BBox [0 0 595 842]",
    ),
  };
  const body = (at: number, words: string) => draw(words, 60, at);

  it("are lines of their own, as a stamp is", async () => {
    const content = `${body(780, "Body one")}${body(764, "Body two")}q /X0 Do Q\n${body(600, "Body three")}${body(586, "Body four")}`;
    const objects = { Stamp: stamp.Stamp.replace("/Subtype", "/Resources << /Font << /F1 1 0 R >> >> /Subtype") };
    expect(await textOf(content, { objects, forms: "/X0 %Stamp%" })).to.equal(
      "Body one\nBody two\nReceived 2026-03-01\nBody three\nBody four",
    );
  });

  it("are lines of their own, too, where they are drawn between two words of a page in another height", async () => {
    const content = body(780, "Body one") + draw("PAID", 300, 700, { font: "F2" }) + body(766, "Body two");
    expect(await textOf(content)).to.equal("Body one\nPAID\nBody two");
  });

  it("are named and left out where they are a watermark, which is neither heading nor title", async () => {
    const page = (n: number) => ({
      content: prose(780, 6) + draw("CONFIDENTIAL", 120, 300, { size: 60, turn: 45 }) + body(600, `Page ${n} ends.`),
    });
    const { title, sections, warnings } = await parse([page(1), page(2)]);
    expect(sections.flatMap(({ text, headings = [] }) => [text, ...headings]).join(" ")).not.to.contain("CONFIDENTIAL");
    expect(title).not.to.equal("CONFIDENTIAL");
    expect(warnings).to.deep.equal([
      {
        code: "parts_left_out",
        message: "The watermark on 2 pages (1–2) was left out: “CONFIDENTIAL”.",
        pages: [1, 2],
      },
    ]);
  });

  it("stand at the end of the page where they stand upright at its side, and are no heading", async () => {
    const side = draw("Order no. 4711-B", 30, 200, { size: 20, turn: 90 });
    const { title, sections } = await parsePage(side + prose(780, 4));
    expect(title).not.to.contain("4711");
    expect(sections).to.have.lengthOf(1);
    expect(sections[0]?.text).to.match(
      /^Sentence 0.+Sentence 3 of the running text of the page\.\nOrder no\. 4711-B$/s,
    );
  });

  it("are read as the running text where the whole page is turned", async () => {
    const lines = ["Wide tables are", "printed like this."].map((line, n) =>
      draw(line, 100 + n * 14, 60, { turn: 90 }),
    );
    expect(await textOf(lines.join(""), { entries: "/Rotate 90" })).to.equal("Wide tables are\nprinted like this.");
  });
});

describe("texts of PDF that are drawn twice", () => {
  it("are read once, be it for bold letters or for a shadow", async () => {
    const bold = draw("Warning: hot", 60, 780) + draw("Warning: hot", 60.3, 780);
    const shadow = draw("Pump P-9", 61, 739, { size: 20 }) + draw("Pump P-9", 60, 740, { size: 20 });
    const letters = [..."Valve"]
      .map((letter, n) => draw(letter, 60 + n * 8, 700) + draw(letter, 60.4 + n * 8, 700))
      .join("");
    expect(await textOf(bold)).to.equal("Warning: hot");
    expect(await textOf(shadow)).to.equal("Pump P-9");
    expect((await textOf(letters)).replace(/\s/g, "")).to.equal("Valve");
  });

  it("are read twice where they stand twice", async () => {
    expect(await textOf(draw("ll", 60, 780) + draw("l", 60, 760) + draw("l", 62.5, 760))).to.equal("ll\nll");
    expect(await textOf(draw("Step", 60, 780) + draw("Step", 60, 766))).to.equal("Step\nStep");
  });
});

describe("forms and annotations of PDF", () => {
  const rect = (x: number, y: number, right: number) => `/Rect [${x} ${y} ${right} ${y + 16}]`;
  const field = (kind: string, name: string, value: string, place: string, more = "") =>
    `<< /Type /Annot /Subtype /Widget /FT /${kind} /T (${name}) /V ${value} ${place} /DA (/F1 11 Tf) ${more} >>`;

  it("are read: the values of fields on the line of their label, else with the field's name; free texts", async () => {
    const objects = {
      beside: field("Tx", "serial", "(SN-99812)", rect(150, 776, 300)),
      below: field("Tx", "inspector", "(A. Miller)", rect(60, 660, 300)),
      choice: field("Ch", "class", "(IP 54)", rect(150, 756, 300)),
      free: `<< /Type /Annot /Subtype /FreeText ${rect(60, 600, 300)} /Contents (Checked on site) /DA (/F1 11 Tf) >>`,
    };
    const content = draw("Serial number:", 60, 780) + draw("Protection:", 60, 760) + draw("Remarks", 60, 740);
    expect(await textOf(content, { objects, entries: "/Annots [%beside% %below% %choice% %free%]" })).to.equal(
      "Serial number: SN-99812\nProtection: IP 54\nRemarks\ninspector: A. Miller\nChecked on site",
    );
  });

  it("show which boxes are checked, and neither hidden fields nor passwords", async () => {
    const on = "<< /N << /Yes 1 0 R /Off 1 0 R >> >>";
    const objects = {
      yes: field("Btn", "dry", "/Yes", "/Rect [60 776 70 786]", `/AS /Yes /AP ${on}`),
      no: field("Btn", "wet", "/Off", "/Rect [60 756 70 766]", `/AS /Off /AP ${on}`),
      hidden: field("Tx", "secret", "(hidden words)", rect(60, 600, 300), "/F 2"),
      password: field("Tx", "pass", "(open sesame)", rect(60, 560, 300), "/Ff 8192"),
    };
    const content = draw("Runs dry", 80, 778) + draw("Runs wet", 80, 758);
    expect(await textOf(content, { objects, entries: "/Annots [%yes% %no% %hidden% %password%]" })).to.equal(
      "[x] Runs dry\nRuns wet",
    );
  });

  it("are named where they are comments, which a reader sees only if they are opened", async () => {
    const note = "<< /Type /Annot /Subtype /Text /Rect [60 500 80 520] /Contents (Is this right?) >>";
    const { sections, warnings } = await parsePage(draw("A text.", 60, 780), {
      objects: { note },
      entries: "/Annots [%note%]",
    });
    expect(sections[0]?.text).to.equal("A text.");
    expect(warnings).to.deep.equal([
      { code: "parts_left_out", message: "Comments on page 1 were left out.", pages: [1] },
    ]);
  });
});

describe("fonts of PDF without a character map", () => {
  /** A font that prints by the numbers of its glyphs, as subsets do: the letters are 29 places further in it. */
  const subset = {
    descriptor:
      "<< /Type /FontDescriptor /FontName /ABCDEF+Foo /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >>",
    cid: "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /ABCDEF+Foo /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor %descriptor% /DW 600 >>",
    font: "<< /Type /Font /Subtype /Type0 /BaseFont /ABCDEF+Foo /Encoding /Identity-H /DescendantFonts [%cid%] >>",
  };
  const fonts = "/F3 %font%";
  const encode = (text: string, shift = -29) =>
    `<${[...text].map((letter) => (letter.charCodeAt(0) + shift).toString(16).padStart(4, "0")).join("")}>`;
  const write = (text: string, y: number, shift?: number) => draw(encode(text, shift), 60, y, { font: "F3" });
  const salad =
    write("The pump is bled in spring", 780) + write("Pressure is sixteen bar", 764) + write("Close the valve", 748);

  it("are refused where they print the whole document", async () => {
    const error = await parsePage(salad, { objects: subset, fonts }).catch((cause: unknown) => cause);
    expect(error).to.have.property("code", "source_unreadable");
    expect(error).to.have.property("message").that.contains("do not say which letters their codes stand for");
  });

  it("are left out with a warning where they print a part of it", async () => {
    const { sections, warnings } = await parse([
      { content: prose(780, 3) },
      { content: draw("A page with a heading.", 60, 800) + salad, objects: subset, fonts },
    ]);
    expect(sections[1]?.text).to.equal("A page with a heading.");
    expect(warnings?.map(({ code, pages }) => ({ code, pages }))).to.deep.equal([
      { code: "unreadable_fonts", pages: [2] },
    ]);
  });

  it("are read where their codes happen to be letters", async () => {
    const text = await textOf(write("The pump is bled in spring, when it is cold.", 780, 0), {
      objects: subset,
      fonts,
    });
    expect(text).to.equal("The pump is bled in spring, when it is cold.");
  });

  it("are read where a map says what the codes stand for", async () => {
    const map = streamOf(
      "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def 1 begincodespacerange <0000> <FFFF> endcodespacerange 1 beginbfrange <0003> <005D> <0020> endbfrange endcmap end end",
    );
    const objects = { ...subset, map, font: subset.font.replace("/Encoding", "/ToUnicode %map% /Encoding") };
    expect(await textOf(salad, { objects, fonts })).to.match(/^The pump is bled in spring\nPressure/);
  });

  it("are no reason to leave out the variables of equations, which have no vowels either", async () => {
    const variables = Array.from({ length: 120 }, (_, n) =>
      draw("ghkrtb"[n % 6] ?? "g", 60 + (n % 10) * 40, 600 - n * 3, { font: "F2" }),
    );
    const { warnings, sections } = await parsePage(prose(800, 4) + variables.join(""));
    expect(warnings).to.equal(undefined);
    expect(sections.map(({ text }) => text).join(" ")).to.match(/\bg\b.*\bk\b/s);
  });

  it("are no reason to leave out lists of part numbers, which have no vowels either", async () => {
    const parts = Array.from({ length: 30 }, (_, n) => `PN ${n * 37} KTR-${n}X`);
    const { warnings, sections } = await parsePage(parts.map((part, n) => draw(part, 60, 800 - n * 14)).join(""));
    expect(warnings).to.equal(undefined);
    expect(sections[0]?.text).to.contain("PN 37 KTR-1X");
  });
});

describe("titles of PDF", () => {
  const content = draw("Manual of the pump", 60, 780, { size: 20 }) + prose(740, 3);
  const names = [
    "top.dvi",
    "Microsoft Word - manual.doc",
    "P9_en_v3.indd",
    "untitled",
    "C:\\\\docs\\\\x",
    "Document1",
    "pump.pdf",
  ];
  for (const name of names) {
    it(`are printed ones where the metadata say ${name.replaceAll("\\\\", "\\")}`, async () => {
      expect((await parse([{ content }], `/Title (${name})`)).title).to.equal("Manual of the pump");
    });
  }

  it("are those of the metadata where these are words", async () => {
    for (const name of ["Pumps and valves", "Node.js in production", "Microsoft Word for beginners"]) {
      expect((await parse([{ content }], `/Title (${name})`)).title).to.equal(name);
    }
  });
});

describe("headings, words and notes of PDF", () => {
  it("are numbered lines of one level in another font, if three of them rise by one", async () => {
    const heads = ["1 Scope", "2 Terms", "3. Safety of the pump"];
    const page = heads
      .map((head, n) => draw(head, 60, 780 - n * 100, { font: "F2" }) + prose(764 - n * 100, 3))
      .join("");
    expect((await parsePage(page)).sections.map(({ headings }) => headings?.at(-1))).to.deep.equal(heads);
    const roman = ["I. SCOPE", "II. TERMS", "III. SAFETY", "IV. CARE"];
    const paper = roman
      .map((head, n) => draw(head, 60, 780 - n * 100, { font: "F2" }) + prose(764 - n * 100, 3))
      .join("");
    expect((await parsePage(paper)).sections.map(({ headings }) => headings?.at(-1))).to.deep.equal(roman);
  });

  it("have one-level numbers above those of two levels", async () => {
    const heads = ["1 Scope", "1.1 Pumps", "2 Terms", "2.1 Valves", "3 Care"];
    const page = heads.map((head, n) => draw(head, 60, 780 - n * 80, { font: "F2" }) + prose(764 - n * 80, 3)).join("");
    expect((await parsePage(page)).sections.map(({ headings }) => headings)).to.deep.equal([
      ["1 Scope"],
      ["1 Scope", "1.1 Pumps"],
      ["2 Terms"],
      ["2 Terms", "2.1 Valves"],
      ["3 Care"],
    ]);
  });

  it("are no headings where only two numbers rise, or in the font of the text", async () => {
    const two =
      draw("1 Scope", 60, 780, { font: "F2" }) +
      prose(764, 3) +
      draw("2 Terms", 60, 700, { font: "F2" }) +
      prose(686, 3);
    const steps =
      prose(600, 4) + [1, 2, 3].map((n) => draw(`${n}. Open valve ${"ABC"[n]} of it`, 60, 500 - n * 14)).join("");
    for (const content of [two, steps]) expect((await parsePage(content)).sections[0]?.headings).to.equal(undefined);
  });

  it("are joined where a hyphen parts a word in capitals, and not where one joins two", async () => {
    const lines = [
      "SET THE PA-",
      "RAMETERS OF THE COM-",
      "PRESSOR BY TCP-",
      "IP OR BY USB-",
      "HUB AND A WELL-",
      "known way",
      "of USB.",
    ];
    expect(await textOf(lines.map((line, n) => draw(line, 60, 780 - n * 14)).join(""))).to.equal(
      "SET THE PARAMETERS OF THE COMPRESSOR BY TCP-\nIP OR BY USB-\nHUB AND A WELL-\nknown way\nof USB.",
    );
  });

  it("have footnotes at the end of the page where a sentence goes on in the next column", async () => {
    const left = prose(780, 8) + draw("The pump is started by the", 60, 668);
    const note =
      draw("1", 60, 103, { size: 5 }) +
      draw("See the plate at its side,", 64, 100, { size: 8 }) +
      draw("below the handle.", 60, 90, { size: 8 });
    const right = draw("green key, and stopped by the red one.", 330, 780) + prose(766, 5, 330);
    const text = await textOf(left + note + right);
    expect(text).to.contain("started by the\ngreen key");
    expect(text).to.match(/\^1 See the plate at its side,\nbelow the handle\.$/);
  });

  it("leave footnotes where they stand if nothing goes on after them", async () => {
    const note = draw("1", 60, 103, { size: 5 }) + draw("See the plate.", 64, 100, { size: 8 });
    expect(await textOf(prose(780, 4) + note + draw("page 7", 280, 40))).to.match(/See the plate\.\npage 7$/);
  });
});
