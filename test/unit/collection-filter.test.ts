import { expect } from "chai";
import { atlasTextFilter, atlasVectorFilter } from "../../src/store/collection-filter.ts";

describe("the filters by collection that Atlas takes", () => {
  const absent = { compound: { mustNot: [{ exists: { path: "collection" } }] } };
  const cases: [string, string[] | undefined, object, object[]][] = [
    ["all", undefined, {}, []],
    [
      "named ones",
      ["a", "b"],
      { collection: { $in: ["a", "b"] } },
      [{ in: { path: "collection", value: ["a", "b"] } }],
    ],
    ["default", ["default"], { collection: { $exists: false } }, [absent]],
    [
      "both",
      ["default", "a"],
      { $or: [{ collection: { $in: ["a"] } }, { collection: { $exists: false } }] },
      [{ compound: { should: [{ in: { path: "collection", value: ["a"] } }, absent], minimumShouldMatch: 1 } }],
    ],
  ];
  for (const [name, names, vector, text] of cases) {
    it(`ask for ${name}, without null`, () => {
      expect(atlasVectorFilter(names)).to.deep.equal(vector);
      expect(atlasTextFilter(names)).to.deep.equal(text);
    });
  }
});
