import { RecursiveCharacterTextSplitter } from "@langchain/textsplitters";
import { expect } from "chai";
import fc from "fast-check";
import { splitRecursively } from "../../src/rag/split-recursively.ts";
import { makeProse } from "../support/documents.ts";

/** The library's splitter, whose parts are joined up to a fiftieth of a piece. */
class Reference extends RecursiveCharacterTextSplitter {
  protected override splitOnSeparator(text: string, separator: string): string[] {
    const length = Math.max(2, Math.floor(this.chunkSize / 50));
    const parts = separator === "" ? pairsOf(text, length) : super.splitOnSeparator(text, separator);
    const joined: string[] = [];
    for (const part of parts) {
      const last = joined.at(-1);
      const isRoom = last !== undefined && separator !== "" && last.length + part.length <= length;
      if (isRoom) joined[joined.length - 1] = last + part;
      else joined.push(part);
    }
    return joined;
  }
}

/** A text every `length` units, or one less where that would cut a surrogate pair. */
function pairsOf(text: string, length: number): string[] {
  if (text === "") return [];
  const isCut = length < text.length && /[\ud800-\udbff]/.test(text[length - 1] ?? "") && length > 1;
  const end = isCut ? length - 1 : length;
  return [text.slice(0, end), ...pairsOf(text.slice(end), length)];
}

function referenceOf(text: string, isMarkdown: boolean, { size, overlap }: { size: number; overlap: number }) {
  const separators = isMarkdown ? RecursiveCharacterTextSplitter.getSeparatorsForLanguage("markdown") : undefined;
  const fields = { chunkSize: size, chunkOverlap: overlap, ...(separators ? { separators } : {}) };
  return new Reference(fields).splitText(text);
}

describe("splitting a text where it is best", () => {
  const pieces = [
    "a",
    "word",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\n\n\n",
    "\n## ",
    "\n### Head",
    "```\n\n",
    "\n\n---\n\n",
    "𝒳",
    "é",
    "\t",
    ".",
  ];
  const text = fc.array(fc.constantFrom(...pieces), { maxLength: 400 }).map((parts) => parts.join(""));
  const bounds = fc
    .tuple(fc.integer({ min: 4, max: 400 }), fc.double({ min: 0, max: 0.5, noNaN: true }))
    .map(([size, share]) => ({ size, overlap: Math.floor(size * share) }));

  it("makes the pieces of LangChain's splitter", async () => {
    const same = fc.asyncProperty(text, fc.boolean(), bounds, async (given, isMarkdown, of) => {
      expect([...splitRecursively(given, isMarkdown, of)]).to.deep.equal(await referenceOf(given, isMarkdown, of));
    });
    await fc.assert(same, { numRuns: 2_000 });
    const prose = makeProse(500);
    const whole = { size: 1_600, overlap: 240 };
    expect([...splitRecursively(prose, false, whole)]).to.deep.equal(await referenceOf(prose, false, whole));
  });

  it("takes a time that grows with the text, whatever it is made of", () => {
    for (const part of ["\n", "\n\n", "a", " ", "\n## ", "𝒳"]) {
      const long = part.repeat(65_536 / part.length);
      const startedAt = performance.now();
      let characters = 0;
      for (const { length } of splitRecursively(long, true, { size: 1_600, overlap: 240 })) {
        expect(length).to.be.at.most(1_600);
        characters += length;
      }
      if (/\S/.test(part)) expect(characters, JSON.stringify(part)).to.be.at.least(long.length * 0.9);
      else expect(characters, JSON.stringify(part)).to.equal(0);
      expect(performance.now() - startedAt, JSON.stringify(part)).to.be.below(2_000);
    }
  });
});
