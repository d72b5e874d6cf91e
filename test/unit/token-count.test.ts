import { expect } from "chai";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { tokensOf } from "../../src/rag/token-count.ts";

/** What the words of a text are made of: letters of each case and script, marks, digits, signs, and every kind of space. */
const pieces = [
  ..."aZé\u0301ñßΩжЖ漢字あ한กا٣²7½_'’.,;!?/\\<>|-–—\"()[]{}@#$%^&*+=~`😀\ud800",
  ..."\n\r\t\v\f\u00a0\u2003\u2028\ufeff\u200b",
  ...Array.from({ length: 24 }, () => " "),
  ...["the", "Word", "HTTP", "it's", "I'LL", "12345", "://", "```", "<|endoftext|>", "\r\n", "  ", "\n\n", "ing"],
];

/** A text of `length` pieces; the same for the same seed (a linear congruential generator). */
function textOf(length: number, seed: number): string {
  let state = seed;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return pieces[Math.floor((state / 2 ** 32) * pieces.length)];
  }).join("");
}

describe("tokensOf", () => {
  it("counts as the tokenizer does, whatever stands beside the spaces", () => {
    for (let seed = 1; seed <= 20_000; seed += 1) {
      const text = textOf(1 + (seed % 40), seed);
      const expected = countTokens(text, { disallowedSpecial: new Set() });
      if (tokensOf(text) !== expected) expect.fail(`${JSON.stringify(text)}: ${tokensOf(text)}, not ${expected}`);
    }
  });

  it("counts the same again, once more words came than it remembers", () => {
    const text = "The pump's valve, once opened, stays open until 12:30.";
    const before = tokensOf(text);
    tokensOf(Array.from({ length: 70_000 }, (_, n) => `w${n}`).join(" "));
    expect(tokensOf(text)).to.equal(before);
  });
});
