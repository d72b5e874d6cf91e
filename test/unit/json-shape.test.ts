import { expect } from "chai";
import { isCostlyJson } from "../../src/lib/bounded-json.ts";

const MIB = 1 << 20;

describe("a JSON text of an outside", () => {
  for (const [what, text] of [
    ["very many objects", `[${"{},".repeat(MIB)}{}]`],
    ["very many fields", `{${Array.from({ length: 100_000 }, (_, n) => `"f${n}":1`).join()}}`],
    ["lists in lists", "[".repeat(MIB) + "]".repeat(MIB)],
  ] as const) {
    it(`is not parsed if it has ${what}, which is found within some milliseconds`, () => {
      const before = process.cpuUsage();
      expect(isCostlyJson(text)).to.equal(true);
      expect(process.cpuUsage(before).user / 1_000).to.be.below(200);
    });
  }
  for (const [what, value] of [
    ["one long text with every sign of JSON in it", { text: '[{"a":1},\\"'.repeat(MIB / 8) }],
    ["vectors", { data: Array.from({ length: 500 }, () => ({ embedding: Array(1_536).fill(0.0123456789) })) }],
    ["a short text of any shape", Array(5_000).fill({})],
  ] as const) {
    it(`is parsed if it has ${what}`, () => {
      expect(isCostlyJson(JSON.stringify(value))).to.equal(false);
    });
  }
});
