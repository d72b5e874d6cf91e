import { expect } from "chai";
import { type Mark, makeMarkReader } from "../../src/rag/answer/marks.ts";
import { findQuote, findSentence } from "../../src/rag/quotes.ts";

/** The text in which passages 1 to 3 are there, and the marks that were read, with the statements before them. */
function read(parts: readonly string[]) {
  const marks: Mark[] = [];
  const statements: string[] = [];
  const reader = makeMarkReader((mark, statement) => {
    marks.push(mark);
    statements.push(statement);
    return mark.map(({ number }) => (number <= 3 ? `[${number}]` : "")).join("");
  });
  const text = parts.map(reader.take).join("") + reader.end();
  return { text, marks, statements };
}

const one = [{ number: 1 }];
const quoted = (number: number, words: string) => ({ number, quoted: words });

describe("the marks in an answer", () => {
  for (const [given, text, marks] of [
    ["In spring [1].", "In spring [1].", [one]],
    ["In spring【1】.", "In spring[1].", [one]],
    ["In spring 【1†pump.md】.", "In spring [1].", [one]],
    ["In spring[^1].", "In spring[1].", [one]],
    ["Both [1, 3].", "Both [1][3].", [[{ number: 1 }, { number: 3 }]]],
    ["Both [1][3].", "Both [1][3].", [one, [{ number: 3 }]]],
    ['In spring [1: "Bleed the pump"].', "In spring [1].", [[quoted(1, "Bleed the pump")]]],
    ["In spring [1: “Bleed the “P-100” pump”].", "In spring [1].", [[quoted(1, "Bleed the “P-100” pump")]]],
    ['Values [2: "a [mm] of 3"] ok', "Values [2] ok", [[quoted(2, "a [mm] of 3")]]],
    ['Both [1: "this"; 2: "that"].', "Both [1][2].", [[quoted(1, "this"), quoted(2, "that")]]],
    ['Twice [1: "this", "that"].', "Twice [1][1].", [[quoted(1, "this"), quoted(1, "that")]]],
    ["Bare [1: Bleed the pump].", "Bare [1].", [[quoted(1, "Bleed the pump")]]],
    ["Foreign [7], and so on", "Foreign, and so on", [[{ number: 7 }]]],
    ["No mark: [x], [], [2026], a [link](x) and [", "No mark: [x], [], [2026], a [link](x) and [", []],
    ["Code `argv[1]` and [1]", "Code `argv[1]` and [1]", [one]],
    ["```\nlist[1]\n```\nthen [1]", "```\nlist[1]\n```\nthen [1]", [one]],
    ["A lone ` and\n[1]", "A lone ` and\n[1]", [one]],
    ['Cut [1: "Bleed the pu', "Cut [1]", [[quoted(1, "Bleed the pu")]]],
    ["Cut [1", "Cut [1", []],
  ] as [string, string, Mark[]][]) {
    it(`are read in ${JSON.stringify(given)}, however it is cut`, () => {
      expect(read([given])).to.deep.include({ text, marks });
      expect(read([...given])).to.deep.include({ text, marks });
      for (let at = 1; at < given.length; at += 1)
        expect(read([given.slice(0, at), given.slice(at)]), `cut at ${at}`).to.deep.include({ text, marks });
    });
  }

  it("come with the statement before them", () => {
    const { statements } = read(['It runs. Bleed it in spring [1: "x"], and in autumn [2].\nNext line [3]']);
    expect(statements).to.deep.equal(["Bleed it in spring", "Bleed it in spring , and in autumn", "Next line"]);
  });

  it("end though a quote does not", () => {
    const { text } = read([`Say [1: "${"word ".repeat(400)}`]);
    expect(text.length).to.be.lessThan(1_200);
  });
});

describe("quotes", () => {
  const passage = "Bleed the pump **before**  each\nseason.\n\nThe “E-04” fault means: no flow — call service.";

  it("are found whatever the white space, case, emphasis and quotation marks, and are the passage's own words", () => {
    expect(findQuote(passage, "bleed the pump before each season")).to.equal("Bleed the pump **before** each season");
    expect(findQuote(passage, 'The "E-04" fault means')).to.equal("The “E-04” fault means");
    expect(findQuote(passage, "no flow - call")).to.equal("no flow — call");
    expect(findQuote(passage, "Bleed the pump … call service")).to.equal("Bleed the pump");
  });

  it("are not found if the passage says something else", () => {
    for (const words of ["Bleed the pump after each season", "", ".", "…"])
      expect(findQuote(passage, words), words).to.equal(undefined);
  });

  it("are replaced by the sentence that has most of the statement", () => {
    const found = findSentence(passage, "Before the season the pump is bled");
    expect(found?.quote).to.equal("Bleed the pump **before** each season.");
    expect(findSentence(passage, "Zeppelins fly")).to.equal(undefined);
    expect(findSentence("", "pump")).to.equal(undefined);
  });
});
