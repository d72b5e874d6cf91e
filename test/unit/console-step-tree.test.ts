import { expect } from "chai";

type Node = { step: { path: string }; branch: string; within: Node[] };

/** A module of the console, which browsers load as it is. */
const { isOfItems, itemOf, toTree } = (await import(
  new URL("../../api/console/step-tree.js", import.meta.url).href
)) as {
  isOfItems: (job: { parentStep?: { path: string } }, path: string) => boolean;
  itemOf: (path: string) => string;
  toTree: (steps: { path: string }[]) => Node[];
}; // as its own types say

const shapeOf = (nodes: readonly Node[]): string =>
  nodes.map(({ step, within }) => (within.length > 0 ? `${step.path}(${shapeOf(within)})` : step.path)).join(" ");
const tree = (...paths: string[]) => shapeOf(toTree(paths.map((path) => ({ path }))));

describe("the steps of a run in the console", () => {
  it("stand within the steps that hold them, in the order in which they ended", () => {
    expect(tree("0", "1/branches/b/0", "1/branches/a/0", "1", "2", "2/then/0", "2/then/1/else/0", "2/then/1")).to.equal(
      "0 1(1/branches/b/0 1/branches/a/0) 2(2/then/0 2/then/1(2/then/1/else/0))",
    );
  });

  it("stand beside the others while the step that holds them has not ended, and never within one of a similar path", () => {
    expect(tree("0", "10/branches/a/0", "1")).to.equal("0 10/branches/a/0 1");
    expect(toTree([{ path: "10/branches/a/0" }])[0]).to.have.property("branch", "a");
    expect(toTree([{ path: "1" }])[0]).to.have.property("branch", "");
  });

  it("say which jobs the items of a list have started", () => {
    expect(isOfItems({ parentStep: { path: "1/do[3]/0" } }, "1")).to.equal(true);
    expect(isOfItems({ parentStep: { path: "11/do[3]/0" } }, "1")).to.equal(false);
    expect(isOfItems({ parentStep: { path: "1" } }, "1")).to.equal(false);
    expect(isOfItems({}, "1")).to.equal(false);
    expect(itemOf("1/do[3]/0/do[12]/1")).to.equal("item 3, item 12");
  });
});
