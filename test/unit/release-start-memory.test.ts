import { getHeapSpaceStatistics } from "node:v8";
import { expect } from "chai";
import { releaseStartMemory } from "../../src/release-start-memory.ts";

const MB = 1_048_576;
/** V8's space for new objects, in MB. */
const newSpaceMb = () =>
  (getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")?.space_size ?? 0) / MB;

describe("releaseStartMemory", () => {
  it("gives back the space that many objects at once have taken", () => {
    let kept: object[] = [];
    for (let count = 0; newSpaceMb() < 8 && count < 100; count += 1) {
      kept.push(...Array.from({ length: 20_000 }, (_, at) => ({ at })));
    }
    expect(newSpaceMb(), "before").to.be.at.least(8);
    kept = [];
    releaseStartMemory();
    expect(newSpaceMb(), "after").to.be.below(4);
    expect(kept).to.deep.equal([]);
  });

  it("leaves no way to collect garbage behind", () => {
    releaseStartMemory();
    expect(globalThis.gc).to.equal(undefined);
  });
});
