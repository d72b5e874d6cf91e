import { expect } from "chai";
import type { Section } from "../../src/rag/parse/section.ts";
import { splitSections, toChunks } from "../../src/rag/split.ts";
import { tokensOf } from "../../src/rag/token-count.ts";
import { makeProse } from "../support/documents.ts";

function split(sections: Section[], type: "markdown" | "text" | "pdf" = "text") {
  const passages = splitSections(sections, type);
  return passages.flatMap((passage) => toChunks(passage, type));
}

describe("splitting", () => {
  it("makes chunks of about 400 tokens that overlap and leave nothing out", () => {
    const text = makeProse(300);
    const chunks = split([{ text }]);
    expect(chunks.length).to.be.within(12, 25);
    for (const chunk of chunks.slice(0, -1)) expect(chunk.tokens).to.be.within(250, 512);
    for (let index = 0; index < 300; index += 1) {
      expect(
        chunks.some(({ content }) => content.includes(`Sentence ${index} tells`)),
        `sentence ${index}`,
      ).to.equal(true);
    }
    const [first, second] = chunks;
    expect(first?.content).to.contain(second?.content.slice(0, 60));
  });

  it("splits again where characters mean more tokens", () => {
    const chunks = split([{ text: "機械学習は人工知能の一分野であり、複雑な問題を解く。".repeat(300) }]);
    for (const { tokens } of chunks) expect(tokens).to.be.at.most(512);
  });

  it("never mixes pages, and keeps page and heading", () => {
    const pages = split(
      [
        { text: "short one", page: 1 },
        { text: "short two", page: 2 },
      ],
      "pdf",
    );
    expect(pages.map(({ page, content }) => ({ page, content }))).to.deep.equal([
      { page: 1, content: "short one" },
      { page: 2, content: "short two" },
    ]);
    const [only] = split([{ text: makeProse(5), headings: ["A", "B"] }]);
    expect(only?.headings).to.deep.equal(["A", "B"]);
  });

  it("joins small sections under the heading that they share, and only those", () => {
    const sections = [
      { text: "one", headings: ["A", "B"] },
      { text: "two", headings: ["A", "C"] },
      { text: "three", headings: ["D"] },
    ];
    expect(split(sections, "markdown").map(({ content, headings }) => [content, headings])).to.deep.equal([
      ["one\n\ntwo", ["A"]],
      ["three", ["D"]],
    ]);
  });

  it("gives the same chunks every time", () => {
    const sections = [{ text: makeProse(200), headings: ["X"] }, { text: makeProse(100, "valve") }];
    expect(split(sections)).to.deep.equal(split(sections));
  });

  it("treats a model's control tokens as text", () => {
    expect(tokensOf("before <|endoftext|> after")).to.be.above(5);
  });

  it("cuts a text without any blanks", () => {
    const chunks = split([{ text: "x".repeat(20_000) }]);
    expect(Math.max(...chunks.map(({ content }) => content.length))).to.be.at.most(1_600);
  });
});
