import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect } from "chai";
import { keepOnDisk } from "../../src/isolation/keep-on-disk.ts";
import { skipTest } from "../support/skip-test.ts";

const CANARY = "219-09-8642 of Kim Walrus";

/** What the open files that have no name any more hold; only Linux shows it. */
function namelessFiles(): string[] {
  const folder = "/proc/self/fd";
  return readdirSync(folder).flatMap((fd) => {
    try {
      return readlinkSync(`${folder}/${fd}`).includes("switchyard-parts-")
        ? [readFileSync(`${folder}/${fd}`, "latin1")]
        : [];
    } catch {
      return []; // it was closed meanwhile
    }
  });
}

describe("parts of a document that wait on disk", () => {
  const parts = Array.from({ length: 300 }, (_, n) => ({ n, texts: [`${CANARY}, part ${n}. `.repeat(n)] }));
  async function* made() {
    yield* parts;
  }

  it("come back as they were, in their order", async () => {
    expect(await Array.fromAsync(keepOnDisk(made()))).to.deep.equal(parts);
  });

  it("stand there under no name, and so that nobody can read them", async function () {
    if (process.platform !== "linux") skipTest(this, "only Linux shows files without a name");
    const kept = keepOnDisk(made());
    await kept.next();
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith("switchyard-parts-"))).to.deep.equal([]);
    const files = namelessFiles();
    expect(files.some(({ length }) => length > 1_000_000)).to.equal(true);
    for (const text of files) expect(text.includes("219-09") || text.includes("Walrus")).to.equal(false);
    await kept.return();
    expect(namelessFiles()).to.deep.equal([]);
  });
});
