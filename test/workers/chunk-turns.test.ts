import { expect } from "chai";
import type { NewChunk } from "../../src/store/chunk-store.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const CHUNKS = 100;

describe("the chunks of a large document", () => {
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform({ workers: false });
  });
  after(() => test.close());

  it("are written and shown in several turns, between which others have theirs", async () => {
    const { chunks } = test.platform.store;
    const tenantId = await tenantOf(test);
    const place = { documentId: "doc_turns", version: 1 };
    let turns = 0;
    const inTurn = <T>(command: () => Promise<T>) => {
      turns += 1;
      return command();
    };
    const turnsOf = async (work: () => Promise<unknown>) => {
      turns = 0;
      await work();
      return turns;
    };
    const made = Array.from({ length: CHUNKS }, (_, n): NewChunk => {
      const embedding = new Float32Array(512).fill(1);
      const text = { content: `Page ${n}.`, tokens: 3, hash: `${n}`, title: "", model: "none" };
      return { ...place, ...text, n, embedding, live: false };
    });
    expect(await turnsOf(() => chunks.insert(tenantId, made, inTurn))).to.be.at.least(5);
    expect(await turnsOf(() => chunks.makeLive(tenantId, place, CHUNKS, inTurn))).to.be.at.least(5);
  });
});
