import { expect } from "chai";
import { readPreference } from "../../api/prefer.ts";

describe("the Prefer header", () => {
  const cases: [string | undefined, number, string | undefined][] = [
    [undefined, 30_000, undefined],
    ["", 30_000, undefined],
    ["respond-async", 0, "respond-async"],
    ["Respond-Async", 0, "respond-async"],
    ["wait=5", 5_000, "wait=5"],
    ['wait="5"', 5_000, "wait=5"],
    ["wait = 7", 7_000, "wait=7"],
    ["wait=0", 0, "wait=0"],
    ["wait=120", 120_000, "wait=120"],
    ["wait=100000", 120_000, "wait=120"],
    ["respond-async, wait=10", 10_000, "wait=10"],
    ["return=minimal; foo=bar, wait=3", 3_000, "wait=3"],
    ["wait=-1", 30_000, undefined],
    ["wait=soon", 30_000, undefined],
    ["wait=1.5", 30_000, undefined],
    ["handling=lenient", 30_000, undefined],
  ];
  for (const [header, waitMs, applied] of cases) {
    it(`${JSON.stringify(header)} waits ${waitMs} ms`, () => {
      expect(readPreference(header)).to.deep.equal({ waitMs, applied });
    });
  }
});
