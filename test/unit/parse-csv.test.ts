import { expect } from "chai";
import { parseSource } from "../../src/rag/parse/parse-source.ts";

const parse = (text: string | Buffer, hints: { type?: string; name?: string } = { name: "folder/Price list.csv" }) =>
  parseSource({ bytes: Buffer.from(text), ...hints });
const textOf = async (text: string | Buffer) => (await parse(text)).sections.map((section) => section.text).join("");

describe("parsing CSV", () => {
  it("is a table under its first row, with the file's name as title", async () => {
    expect(await parse("Name,Price\nP-1,2\n")).to.deep.equal({
      type: "csv",
      title: "Price list",
      sections: [{ text: "| Name | Price |\n|---|---|\n| P-1 | 2 |" }],
    });
  });

  const table = "| Name | Price |\n|---|---|\n| P-1 | 1,50 |\n| P-2 | 2,75 |";
  const separators: [string, string][] = [
    ["semicolons", "Name;Price\nP-1;1,50\nP-2;2,75\n"],
    ["tabs", "Name\tPrice\nP-1\t1,50\nP-2\t2,75"],
    ["bars", "Name|Price\r\nP-1|1,50\r\nP-2|2,75\r\n"],
    ["commas and quotes", 'Name,Price\n"P-1","1,50"\n"P-2","2,75"\n'],
    ["a hint in its first line", "sep=;\nName;Price\nP-1;1,50\nP-2;2,75\n"],
  ];
  for (const [what, text] of separators) {
    it(`is told apart by its separator: ${what}`, async () => {
      expect(await textOf(text)).to.equal(table);
    });
  }

  it("keeps line ends, quotes and separators that stand in quotes, each row on a line", async () => {
    expect(await textOf('a;b\n"one\ntwo";"say ""yes""; now"\n"bad"x;2\n')).to.equal(
      '| a | b |\n|---|---|\n| one two | say "yes"; now |\n| "bad"x | 2 |',
    );
  });

  it("loses no row where a quote is never closed", async () => {
    expect(await textOf('a,b\n"one,2\nthree,4\n')).to.equal('| a | b |\n|---|---|\n| "one | 2 |\n| three | 4 |');
  });

  it("has lines above its table as text", async () => {
    expect(await textOf("Prices of 2026\nAll in euros;;\nName;Price;Unit\nP-1;2;piece\n")).to.equal(
      "Prices of 2026\nAll in euros\n\n| Name | Price | Unit |\n|---|---|---|\n| P-1 | 2 | piece |",
    );
  });

  it("is a list where it has one column", async () => {
    expect(await textOf('one\ntwo\n"three, four"\n')).to.equal("one\ntwo\nthree, four");
  });

  it("is recognized by its media type or its name, in any charset", async () => {
    expect((await parse("a,b\n1,2", { type: "text/csv; charset=utf-8" })).type).to.equal("csv");
    expect((await parse("a\tb\n1\t2", { name: "x.TSV", type: "application/vnd.ms-excel" })).type).to.equal("csv");
    expect((await parse("a,b\n1,2", { name: "x.txt" })).type).to.equal("text");
    expect(await textOf(Buffer.from("Größe;Maß\n1;2", "latin1"))).to.contain("| Größe | Maß |");
  });
});
