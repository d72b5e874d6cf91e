import { expect } from "chai";
import { AppError } from "../../src/lib/errors.ts";
import { parseSource } from "../../src/rag/parse/parse-source.ts";
import {
  makeDocx,
  makeDocxBomb,
  makePdf,
  makeProse,
  makeSizedPdf,
  makeTextsPdf,
  makeZip,
} from "../support/documents.ts";

const parse = (content: Buffer | string, hints: { type?: string; name?: string } = {}) =>
  parseSource({ bytes: Buffer.from(content), ...hints });

async function reasonOf(content: Buffer | string, hints: { type?: string; name?: string } = {}): Promise<string> {
  const error: unknown = await parse(content, hints).then(
    () => undefined,
    (cause: unknown) => cause,
  );
  expect(error).to.be.instanceOf(AppError);
  expect((error as AppError).code).to.equal("source_unreadable");
  return (error as AppError).message;
}

describe("parsing PDF", () => {
  it("keeps pages, and the title of the file", async () => {
    const pdf = await makePdf(["The first page is about pumps.", "The second page is about valves."], "Manual");
    expect(await parse(pdf)).to.deep.equal({
      type: "pdf",
      title: "Manual",
      sections: [
        { text: "The first page is about pumps.", page: 1 },
        { text: "The second page is about valves.", page: 2 },
      ],
    });
  });

  it("has the largest line of its first page for its title where its file names none", async () => {
    const pages: Parameters<typeof makeSizedPdf>[0] = [
      [
        ["Doc. 4711", 10],
        ["Pump P-9", 20],
        ["A pump moves water.", 10],
      ],
    ];
    expect((await parse(await makeSizedPdf(pages))).title).to.equal("Pump P-9");
    expect((await parse(await makePdf(["About valves."]))).title).to.equal("About valves.");
  });

  it("does not take what stands right below a title, smaller and to the right, for a part of it", async () => {
    const pdf = await makeTextsPdf([
      { text: "Pump P-9", x: 72, y: 100, size: 20 },
      { text: "Version 5.2, May 2026", x: 350, y: 125, size: 10 },
    ]);
    const { title, sections } = await parse(pdf);
    expect(title).to.equal("Pump P-9");
    expect(sections.map(({ text }) => text)).to.deep.equal(["Pump P-9\nVersion 5.2, May 2026"]);
  });

  it("reads a heading that is printed over several lines as one", async () => {
    const { sections } = await parse(
      await makeSizedPdf([
        [
          ["How do I bleed a pump that has been stand-", 14],
          ["ing dry for months?", 14],
          ["Open the valve first, and close it when no air comes out.", 10],
          ["1.2 Filling of the", 14],
          ["larger pumps", 14],
          ["They are filled at the side, while the motor stands still.", 10],
          ["1.3 Oil", 14],
          ["Oil is filled in while the pump is cold.", 10],
        ],
      ]),
    );
    const question = "How do I bleed a pump that has been standing dry for months?";
    expect(sections.map(({ headings }) => headings)).to.deep.equal([
      [question],
      [question, "1.2 Filling of the larger pumps"],
      [question, "1.3 Oil"],
    ]);
  });

  it("puts chapters above numbered headings, and what only the cover shows above neither", async () => {
    const prose: [string, number] = ["Open the valve first, and close it when no air comes out of the pump.", 10];
    const { sections } = await parse(
      await makeSizedPdf([
        [["Handbook", 30], ["Release 7", 24], prose],
        [["Pumps", 20], ["1.1 Bleeding", 14], prose, ["1.2 Filling", 14], prose],
        [["Valves", 20], prose, ["2.1 Closing", 14], prose, ["Afterwards", 12], prose],
      ]),
    );
    expect(sections.slice(1).map(({ headings }) => headings)).to.deep.equal([
      ["Pumps", "1.1 Bleeding"],
      ["Pumps", "1.2 Filling"],
      ["Valves"],
      ["Valves", "2.1 Closing"],
      ["Valves", "2.1 Closing", "Afterwards"],
    ]);
  });

  it("begins a section at each heading, which is a line in larger letters, and names those above it", async () => {
    const { sections } = await parse(
      await makeSizedPdf([
        [
          ["Pumps", 20],
          ["A pump moves water.", 10],
          ["Bleeding", 14],
          ["Open the valve first.", 10],
        ],
        [
          ["Close it when no air comes out.", 10],
          ["Valves", 20],
          ["A valve holds water back.", 10],
        ],
      ]),
    );
    expect(sections).to.deep.equal([
      { page: 1, headings: ["Pumps"], text: "Pumps\nA pump moves water." },
      { page: 1, headings: ["Pumps", "Bleeding"], text: "Bleeding\nOpen the valve first." },
      { page: 2, headings: ["Pumps", "Bleeding"], text: "Close it when no air comes out." },
      { page: 2, headings: ["Valves"], text: "Valves\nA valve holds water back." },
    ]);
  });

  it("reads running heads and feet of pages once", async () => {
    const pages = ["Open the valve.", "Close the valve.", "Oil the valve.", "Paint the valve."];
    const texts = pages.map((text, at) => `Pump manual, chapter ${at}\n${text}\npage ${at + 7}`);
    const { sections } = await parse(await makePdf(texts));
    expect(sections.map(({ text }) => text)).to.deep.equal([texts[0], ...pages.slice(1)]);
  });

  it("refuses one that is damaged, also when only its sender says that it is a PDF", async () => {
    const pdf = await makePdf(["text"]);
    expect(await reasonOf("%PDF-1.7 and then nothing")).to.contain("damaged");
    expect(await reasonOf(pdf.subarray(0, 200))).to.contain("damaged");
    expect(await reasonOf("no PDF", { type: "application/pdf" })).to.contain("damaged");
  });

  it("leaves out the dots of a table of contents, and keeps those of sentences", async () => {
    const lines = ["What is a package? . . . . . . . . . . 28", "Installing........... 31", "And so on... Done."];
    const { sections } = await parse(await makePdf([lines.join("\n")]));
    expect(sections[0]?.text).to.equal("What is a package? 28\nInstalling 31\nAnd so on... Done.");
  });

  it("refuses one without any text, as scans are", async () => {
    expect(await reasonOf(await makePdf([""]))).to.contain("no text");
  });
});

describe("parsing DOCX", () => {
  it("keeps heading paths and table cells", async () => {
    const docx = await makeDocx([
      { heading: "Safety", level: 1 },
      { text: "Wear gloves." },
      { heading: "Chemicals", level: 2 },
      { row: ["Acid", "burns"] },
      { heading: "Storage", level: 1 },
      { text: "Keep dry." },
    ]);
    const { type, title, sections } = await parse(docx, { name: "misleading.txt" });
    expect({ type, title }).to.deep.equal({ type: "docx", title: "Safety" });
    expect(sections.map(({ headings }) => headings)).to.deep.equal([["Safety"], ["Safety", "Chemicals"], ["Storage"]]);
    expect(sections[1]?.text).to.contain("Acid | burns");
  });

  it("refuses an archive that would inflate to gigabytes, whatever its directory says", async () => {
    expect(await reasonOf(makeDocxBomb(300 * 1024 * 1024))).to.contain("inflates");
    expect(await reasonOf(makeDocxBomb(64 * 1024 * 1024, 1_000))).to.contain("damaged");
  });

  it("refuses an archive of too many entries, one that is no DOCX, and one that is cut", async () => {
    const many = Array.from({ length: 5_001 }, (_, index) => ({ name: `word/${index}`, content: Buffer.from("x") }));
    expect(await reasonOf(makeZip(many), { name: "a.docx" })).to.contain("entries");
    const other = makeZip([{ name: "readme.txt", content: Buffer.from("hello") }]);
    expect(await reasonOf(other)).to.contain("a ZIP archive. What is read is PDF, DOCX");
    expect(await reasonOf(other, { name: "a.docx" })).to.contain("damaged");
    const docx = await makeDocx([{ text: "hello" }]);
    expect(await reasonOf(docx.subarray(0, docx.length - 100), { name: "a.docx" })).to.contain("damaged");
  });
});

describe("parsing HTML", () => {
  it("takes the article of a page, with its headings, lists, tables and code", async () => {
    const page = `<!doctype html><html><head><title>Pumps</title><script>var a = "hidden";</script></head><body>
      <nav><a href="/">Home</a></nav><article><h1>Pumps</h1><p>${makeProse(20)}</p>
      <h2>Care &amp; use</h2><ul><li>Oil it</li><li>Bleed it</li></ul><table><tr><td>a</td><td>b</td></tr></table>
      <pre>if (wet) {\n    stop();\n}</pre></article><footer>Imprint</footer></body></html>`;
    const { type, title, sections } = await parse(page);
    const text = sections.map((section) => section.text).join("\n");
    expect({ type, title }).to.deep.equal({ type: "html", title: "Pumps" });
    expect(sections.at(-1)?.headings).to.contain("Care & use");
    expect(text).to.contain("- Oil it\n- Bleed it").and.to.contain("a | b").and.to.contain("    stop();");
    expect(text).not.to.contain("hidden");
    expect(text).not.to.contain("Home");
  });

  it("puts the heading that is the title above the sections of an article", async () => {
    const page = `<!doctype html><html><head><title>Pump P-9 - Acme</title></head><body><nav><h2>Menu</h2></nav><article>
      <h1>Pump P-9</h1><p>${makeProse(20)}</p><h2>Care</h2><p>${makeProse(20)}</p></article></body></html>`;
    for (const html of [page, page.replace("Pump P-9 - Acme", "Pump P-9")]) {
      const { sections } = await parse(html);
      expect(sections.map(({ headings }) => headings)).to.deep.equal([["Pump P-9"], ["Pump P-9", "Care"]]);
    }
  });

  it("takes the whole body where there is no article", async () => {
    const { sections } = await parse("<p>Only this.</p>", { type: "text/html; charset=utf-8" });
    expect(sections).to.deep.equal([{ text: "Only this." }]);
  });

  it("reads the charset that a page declares", async () => {
    const page = Buffer.from(
      '<html><head><meta charset="iso-8859-1"></head><body><p>Grüße</p></body></html>',
      "latin1",
    );
    expect((await parse(page)).sections[0]?.text).to.equal("Grüße");
  });
});

describe("parsing Markdown", () => {
  const source = [
    "---",
    'title: "The pump"',
    "tags: [a, b",
    "---",
    "Before.",
    "# One",
    "```",
    "# no heading",
    "```",
    "Two",
    "---",
    "- item",
    "---",
    "### Deep `code` [link](http://x)",
    "end",
  ].join("\n");

  it("keeps heading paths and the source, and takes front matter off", async () => {
    const { type, title, sections } = await parse(source, { name: "a.md" });
    expect({ type, title }).to.deep.equal({ type: "markdown", title: "The pump" });
    expect(sections).to.deep.equal([
      { text: "Before." },
      { text: "# One\n```\n# no heading\n```", headings: ["One"] },
      { text: "Two\n---\n- item\n---", headings: ["One", "Two"] },
      { text: "### Deep `code` [link](http://x)\nend", headings: ["One", "Two", "Deep code link"] },
    ]);
  });

  it("has front matter only where its first lines are a YAML mapping; any other --- is a rule", async () => {
    const textOf = async (markdown: string) => {
      const { title, sections } = await parse(markdown, { name: "a.md" });
      return { title, text: sections.map(({ text }) => text).join("\n") };
    };
    const slides = "---\n\n# One\n\nPress the red button.\n\n---\n\n# Two\n\nWait.";
    expect(await textOf(slides)).to.deep.equal({
      title: "One",
      text: slides.replace("---\n\n# One", "---\n# One").replace("---\n\n# Two", "---\n# Two"),
    });
    for (const prose of [
      "Welcome to all.",
      "- a\n- b",
      "| a | b |",
      "Note: wait.\nThen go on.",
      "\ntitle: none",
      "http://x.y",
    ]) {
      expect((await textOf(`---\n${prose}\n---\nRest.`)).text.replace(/\n+/g, " "), prose).to.contain(
        prose.trim().replace(/\n/g, " "),
      );
    }
    expect((await textOf("Intro.\n\n---\ntitle: none\n---\nRest.")).text).to.contain("title: none");
    expect(await textOf("---\ntitle: none\nNo end.")).to.include({ text: "---\ntitle: none\nNo end." });
    const matter = "---\n# a comment\ntitle: Pumps: a guide\ntags:\n- a\n\n- b\ndescription: >\n  long\n...\nBody.";
    expect(await textOf(matter)).to.deep.equal({ title: "Pumps: a guide", text: "Body." });
    expect(await textOf("---\r\ntitle: >-\r\n  Folded\r\n---\r\nBody.")).to.deep.equal({
      title: "Folded",
      text: "Body.",
    });
  });

  it("is recognized by its look where no type is declared, but not against a file name", async () => {
    expect((await parse("# Title\ntext")).type).to.equal("markdown");
    expect((await parse("# Title\ntext", { name: "a.txt" })).type).to.equal("text");
    expect((await parse("plain", { type: "text/markdown" })).type).to.equal("markdown");
  });
});

describe("parsing text", () => {
  const text = "Naïve café “quoted” 日本";
  const encodings: [string, Buffer, string][] = [
    ["UTF-8", Buffer.from(text), text],
    ["UTF-8 with a byte order mark", Buffer.from(`\ufeff${text}`), text],
    ["UTF-16LE with a byte order mark", Buffer.from(`\ufeff${text}`, "utf16le"), text],
    ["UTF-16BE with a byte order mark", Buffer.from(`\ufeff${text}`, "utf16le").swap16(), text],
    ["Latin-1", Buffer.from("Naïve café", "latin1"), "Naïve café"],
  ];
  for (const [name, bytes, expected] of encodings) {
    it(`reads ${name}`, async () => {
      expect((await parse(bytes)).sections).to.deep.equal([{ text: expected }]);
    });
  }

  it("refuses pictures, bytes that are not text, and an empty file", async () => {
    const png = Buffer.from("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489", "hex");
    expect(await reasonOf(png, { type: "text/plain" })).to.contain("image/png");
    expect(await reasonOf(Buffer.alloc(1_000))).to.contain("neither text");
    expect(await reasonOf(" \n\t ")).to.contain("no text");
  });
});
