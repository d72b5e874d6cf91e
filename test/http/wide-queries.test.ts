import { expect } from "chai";
import { makePace } from "../../src/isolation/pace.ts";
import { makeEmbeddingModels } from "../../src/rag/embedding-models.ts";
import { makeQuery } from "../../src/rag/query.ts";
import { makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

describe("queries at the same time", () => {
  let test: TestPlatform;
  let tenantId: string;
  let atOnce = 0;
  let mostAtOnce = 0;
  before(async () => {
    test = await startPlatform();
    tenantId = await tenantOf(test);
    const client = makeClient({ url: test.url, key: test.keys.member });
    expect((await client.post("/rag/ingest", { content: "Bleed the pump at its highest valve." })).status).to.equal(
      201,
    );
  });
  after(() => test.close());

  /** The most searches that the store had at the same time; each waits until `gathered` of them are there. */
  const run = async (tenants: readonly string[], topK: number, gathered = 1) => {
    const { store, gateway } = test.platform;
    const { promise: met, resolve } = Promise.withResolvers<void>();
    const searchText: typeof store.chunks.searchText = async (...given) => {
      atOnce += 1;
      if (atOnce >= gathered) resolve();
      await met;
      mostAtOnce = Math.max(mostAtOnce, atOnce);
      return store.chunks.searchText(...given).finally(() => {
        atOnce -= 1;
      });
    };
    const pace = makePace();
    let paced = 0;
    const share: typeof pace.share = (...given) => {
      paced += 1;
      return pace.share(...given);
    };
    const embeddingModels = makeEmbeddingModels({ store }, gateway.defaultEmbeddingModel);
    const query = makeQuery({
      store: { ...store, chunks: { ...store.chunks, searchText } },
      gateway,
      embeddingModels,
      pace: { ...pace, share },
      logger: test.platform.logger,
    });
    mostAtOnce = 0;
    const found = tenants.map((id) => {
      const caller = {
        tenantId: id,
        keyId: "key_test",
        collections: undefined,
        surface: "api",
        signal: new AbortController().signal,
      };
      return query(caller, { query: "pump", topK, mode: "hybrid" });
    });
    return { found: await Promise.all(found), mostAtOnce, paced };
  };

  it("are searched one after the other when they are wide and of one tenant", async () => {
    const { found, mostAtOnce: most, paced } = await run([tenantId, tenantId, tenantId], 100);
    expect(most).to.equal(1);
    expect(paced, "with pauses beside others").to.equal(3);
    expect(found.map(({ results }) => results.length)).to.deep.equal([1, 1, 1]);
  });

  it("do not wait for each other when they are ordinary, or of several tenants", async () => {
    const ordinary = await run([tenantId, tenantId, tenantId], 5, 3);
    expect([ordinary.mostAtOnce, ordinary.paced]).to.deep.equal([3, 0]);
    expect((await run([tenantId, "ten_other"], 100, 2)).mostAtOnce).to.equal(2);
  });
});
