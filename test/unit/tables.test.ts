import { expect } from "chai";
import { parseSource } from "../../src/rag/parse/parse-source.ts";
import type { Section } from "../../src/rag/parse/section.ts";
import { splitSections, toChunks } from "../../src/rag/split.ts";
import { makeTextsPdf } from "../support/documents.ts";

const textOf = async (source: string | Buffer, name = "a.html") =>
  (await parseSource({ bytes: Buffer.from(source), name })).sections.map(({ text }) => text).join("\n\n");

const pieces = (text: string) => {
  const found: Section[] = splitSections([{ text }], "markdown");
  return found.flatMap((piece) => toChunks(piece, "markdown")).map(({ content }) => content);
};

describe("tables of HTML", () => {
  it("have one head, and cells that span several columns or rows in each of them", async () => {
    const rows =
      "<tr><th rowspan=2>Pump<th colspan=2>Pressure</tr><tr><th>low<th>high</tr>" +
      "<tr><td rowspan=2>P-1<td>1<td>2</tr><tr><td colspan=2>none</tr><tr><td colspan=3>Spare parts</tr>";
    expect(await textOf(`<table><caption>Pumps</caption>${rows}</table>`)).to.equal(
      "Pumps\n\n| Pump | Pressure low | Pressure high |\n|---|---|---|\n" +
        "| P-1 | 1 | 2 |\n| P-1 | none | none |\n| Spare parts |",
    );
  });

  it("have cells on one line, with their bars escaped, and no empty columns", async () => {
    const table = "<table><tr><td>a<td><td>b</tr><tr><td><p>x</p><p>y|z</p><td><td>1<br>2</tr></table>";
    expect(await textOf(table)).to.equal("| a | b |\n|---|---|\n| x y\\|z | 1 2 |");
  });

  it("have an empty head where the first column names the rows", async () => {
    const table = "<table><tr><th>Weight<td>3 kg</tr><tr><th>Height<td>2 m</tr></table>";
    expect(await textOf(table)).to.equal("|  |  |\n|---|---|\n| Weight | 3 kg |\n| Height | 2 m |");
  });

  it("have nested tables in their cells as lists, while a table that lays out a page is none", async () => {
    const inner = "<table><tr><td>1<td>2</tr><tr><td>3<td>4</tr></table>";
    expect(await textOf(`<table><tr><th>a<th>b</tr><tr><td>x<td>${inner}</tr></table>`)).to.contain(
      "| x | 1, 2; 3, 4 |",
    );
    const layout = `<table><tr><td>menu<td>top</tr><tr><td>left<td><h2>Data</h2>${inner}</tr></table>`;
    const { sections } = await parseSource({ bytes: Buffer.from(layout), name: "a.html" });
    expect(sections.at(-1)?.headings).to.deep.equal(["Data"]);
    expect(sections.at(-1)?.text).to.contain("| 1 | 2 |\n|---|---|\n| 3 | 4 |");
  });

  it("do not grow without bound by the cells that span a million columns or rows", async () => {
    const wide = `<tr><td colspan=1000000 rowspan=1000000>${"wide ".repeat(100)}</tr>`;
    const text = await textOf(`<table><tr><td>a<td>b</tr>${wide.repeat(50)}${"<tr><td>c".repeat(5_000)}</table>`);
    expect(text.length).to.be.below(400_000);
    expect(text.match(/\| c\b/g)).to.have.lengthOf(5_000);
  });
});

describe("tables of PDF", () => {
  const table = [
    ["Pump", "Flow", "Price"],
    ["P-1", "40", "7"],
    ["P-22", "8", "1,250"],
    ["P-333", "120", "99"],
  ];
  const cells = table.flatMap((row, n) => row.map((text, at) => ({ text, x: 72 + at * 120, y: 100 + n * 16 })));

  it("are found by the places of their texts; lines beside them stay lines", async () => {
    const around = [
      { text: "Prices hold until May.", x: 72, y: 60 },
      { text: "Ask for more.", x: 72, y: 220 },
    ];
    expect(await textOf(await makeTextsPdf([...around.slice(0, 1), ...cells, ...around.slice(1)]), "a.pdf")).to.equal(
      "Prices hold until May.\n\n| Pump | Flow | Price |\n|---|---|---|\n| P-1 | 40 | 7 |\n| P-22 | 8 | 1,250 |\n" +
        "| P-333 | 120 | 99 |\n\nAsk for more.",
    );
  });

  it("are not seen in columns of prose, nor in lists", async () => {
    const columns = [72, 320].flatMap((x) =>
      Array.from({ length: 8 }, (_, n) => ({ text: `Line ${n} of a column of prose.`, x, y: 100 + n * 14 })),
    );
    const list = [1, 2, 3, 4].flatMap((n) => [
      { text: `${n}.`, x: 72, y: 300 + n * 14 },
      { text: `Step ${n}: open the valve.`, x: 100, y: 300 + n * 14 },
    ]);
    expect(await textOf(await makeTextsPdf([...columns, ...list]), "a.pdf")).not.to.contain("|");
  });

  it("join the lines of a cell", async () => {
    const more = { text: "and more", x: 192, y: 128 };
    const words = cells.map((cell) => (/^\d/.test(cell.text) ? { ...cell, text: `about ${cell.text}` } : cell));
    const spread = words.map((cell) => (cell.y > 116 ? { ...cell, y: cell.y + 16 } : cell));
    expect(await textOf(await makeTextsPdf([...spread, more]), "a.pdf")).to.contain(
      "| P-1 | about 40 and more | about 7 |",
    );
  });
});

describe("splitting of tables", () => {
  const head = "| Pump | Flow |\n|---|---|";
  const rows = Array.from({ length: 200 }, (_, n) => `| P-${n} | ${n * 3} litres |`);

  it("repeats the head in each piece, and has each row once", () => {
    const found = pieces(`Before.\n\n${head}\n${rows.join("\n")}\n\nAfter.`);
    expect(found.length).to.be.above(2);
    for (const piece of found) expect(piece).to.contain(head);
    for (const row of rows) expect(found.filter((piece) => piece.includes(row))).to.have.lengthOf(1);
    expect(found[0]).to.match(/^Before\.\n\n\|/);
    expect(found.at(-1)).to.match(/\|\n\nAfter\.$/);
  });

  it("writes a row that is too long as lines with the columns' names", () => {
    const found = pieces(`${head}\n| P-1 | ${"word ".repeat(1_000)}|\n| P-2 | 5 |`);
    expect(found[0]).to.match(/^Pump: P-1\nFlow: word/);
    expect(found[1]).to.match(/^Pump: P-1\nword/);
    expect(found.at(-1)).to.equal(`${head}\n| P-2 | 5 |`);
  });

  it("leaves tables in code as they are", () => {
    const code = `\`\`\`\n${head}\n${rows.join("\n")}\n\`\`\``;
    expect(pieces(code)[1]).not.to.contain("Flow |\n|---");
  });

  it("splits a table with a long head by columns, each part with the first of them", () => {
    const names = Array.from({ length: 150 }, (_, n) => `measured value ${n}`);
    const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
    const text = [
      line(["Pump", ...names]),
      `|${"---|".repeat(151)}`,
      ...["P-1", "P-2"].map((pump) => line([pump, ...names.map((_, n) => `${pump} has ${n}`)])),
    ].join("\n");
    const found = pieces(text);
    for (const n of [0, 77, 149]) {
      const [piece = "", ...others] = found.filter((one) => new RegExp(`P-2 has ${n}\\b`).test(one));
      expect(others).to.deep.equal([]);
      expect(piece).to.contain(`measured value ${n}`).and.to.contain("Pump").and.to.contain("P-2");
    }
  });

  it("takes no more than a few times the text for a table with a long head", () => {
    const wide = `| ${"a column | ".repeat(120)}\n|${"---|".repeat(120)}\n`;
    const text = wide + "| 1 | 2 |\n".repeat(5_000);
    const length = pieces(text).reduce((sum, piece) => sum + piece.length, 0);
    expect(length).to.be.below(5 * text.length);
  });
});
