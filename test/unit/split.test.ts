import { expect } from "chai";
import type { Section } from "../../src/rag/parse/section.ts";
import { splitSections, toChunks, tokensOf } from "../../src/rag/split.ts";
import { makeProse } from "../support/documents.ts";

async function split(sections: Section[], type: "markdown" | "text" | "pdf" = "text") {
  const passages = await splitSections(sections, type);
  return (await Promise.all(passages.map((passage) => toChunks(passage, type)))).flat();
}

describe("splitting", () => {
  it("makes chunks of about 400 tokens that overlap and leave nothing out", async () => {
    const text = makeProse(300);
    const chunks = await split([{ text }]);
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

  it("splits again where characters mean more tokens", async () => {
    const chunks = await split([{ text: "機械学習は人工知能の一分野であり、複雑な問題を解く。".repeat(300) }]);
    for (const { tokens } of chunks) expect(tokens).to.be.at.most(512);
  });

  it("never mixes pages, and keeps page and heading", async () => {
    const pages = await split(
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
    const [only] = await split([{ text: makeProse(5), headings: ["A", "B"] }]);
    expect(only?.headings).to.deep.equal(["A", "B"]);
  });

  it("joins small sections under the heading that they share, and only those", async () => {
    const sections = [
      { text: "one", headings: ["A", "B"] },
      { text: "two", headings: ["A", "C"] },
      { text: "three", headings: ["D"] },
    ];
    expect((await split(sections, "markdown")).map(({ content, headings }) => [content, headings])).to.deep.equal([
      ["one\n\ntwo", ["A"]],
      ["three", ["D"]],
    ]);
  });

  it("gives the same chunks every time", async () => {
    const sections = [{ text: makeProse(200), headings: ["X"] }, { text: makeProse(100, "valve") }];
    expect(await split(sections)).to.deep.equal(await split(sections));
  });

  it("treats a model's control tokens as text", () => {
    expect(tokensOf("before <|endoftext|> after")).to.be.above(5);
  });

  it("cuts a text without any blanks", async () => {
    const chunks = await split([{ text: "x".repeat(20_000) }]);
    expect(Math.max(...chunks.map(({ content }) => content.length))).to.be.at.most(1_600);
  });
});
