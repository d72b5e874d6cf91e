import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

describe("knowledge retrieval with another embedding model", () => {
  let fake: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;

  before(async () => {
    fake = await startFakeProvider();
    test = await startPlatform({
      env: { EDGE_BASE_URL: fake.url, EDGE_MODEL: "small", EDGE_EMBEDDING_MODEL: "embed-test" },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(async () => {
    await test.close();
    await fake.close();
  });

  it("finds by vectors of any length that the model makes", async () => {
    const sentence = "The lighthouse keeper trims the wick.";
    const answer = await client.post("/rag/ingest", { content: sentence });
    expect(answer.status, answer.text).to.equal(201);
    for (const mode of ["vector", "hybrid", "lexical"]) {
      const found = await client.post("/rag/query", { query: sentence, mode });
      expect(found.status, found.text).to.equal(200);
      expect(found.at("results[0].content"), mode).to.equal(sentence);
      expect(found.at("results[0].similarity"), mode).to.be.closeTo(1, 1e-3);
    }
  });
});
