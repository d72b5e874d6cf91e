import { expect } from "chai";
import { type Citation, makeCitations } from "../../src/surfaces/responses/citations.ts";

const passages: Citation[] = ["a", "b", "c"].map((name) => {
  return { file_id: `file_${name}`, filename: `${name}.txt`, document_id: `doc_${name}`, chunk_id: name };
});

/** The text without marks, and the chunks that are cited with their places in it. */
function read(parts: readonly string[]) {
  const citations = makeCitations((mark) => passages[mark - 1]);
  let text = "";
  const cited: [string, number][] = [];
  for (const found of [...parts.map(citations.take), citations.end()]) {
    for (const part of found) {
      if (part.type === "text") text += part.text;
      else cited.push([part.of.chunk_id, text.length]);
    }
  }
  return { text, cited };
}

describe("marks in a text", () => {
  for (const [given, text, cited] of [
    ["In spring【1】.", "In spring.", [["a", 9]]],
    ["In spring 【1】.", "In spring.", [["a", 9]]],
    [
      "One【1】【2】 two 【3†c.txt】, three.",
      "One two, three.",
      [
        ["a", 3],
        ["b", 3],
        ["c", 7],
      ],
    ],
    [
      "Both【1, 3】",
      "Both",
      [
        ["a", 4],
        ["c", 4],
      ],
    ],
    ["【2】 first", " first", [["b", 0]]],
    ["No such【7】, nor 【x】 or 【", "No such【7】, nor 【x】 or 【", []],
    ["【重要】 text, a[1] and \n", "【重要】 text, a[1] and \n", []],
    ["【1 and no end of it", "【1 and no end of it", []],
    ["【【1】", "【", [["a", 1]]],
    [`【1†${"x".repeat(500)}`, `【1†${"x".repeat(500)}`, []],
  ] as [string, string, [string, number][]][]) {
    it(`are found in ${JSON.stringify(given).slice(0, 60)}, however it is cut`, () => {
      expect(read([given])).to.deep.equal({ text, cited });
      expect(read([...given])).to.deep.equal({ text, cited });
      for (let at = 1; at < Math.min(given.length, 60); at += 1)
        expect(read([given.slice(0, at), given.slice(at)]), `cut at ${at}`).to.deep.equal({ text, cited });
    });
  }

  it("hold back no more than may become one", () => {
    const { take } = makeCitations((mark) => passages[mark - 1]);
    expect(take("In spring").map((part) => "text" in part && part.text)).to.deep.equal(["In spring"]);
    expect(take(" 【1")).to.deep.equal([]);
    expect(take(" of nine")).to.deep.equal([{ type: "text", text: " 【1 of nine" }]);
  });
});
