import { expect } from "chai";
import { MongoNetworkError } from "mongodb";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { loseAnswer } from "../support/lose-answer.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const DAY_MS = 86_400_000;

describe("sources that no record has", () => {
  let test: TestPlatform;
  let client: ApiClient;
  before(async () => {
    test = await startPlatform();
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test.close());

  const upload = (name: string) => {
    const form = new FormData();
    form.set("purpose", "user_data");
    form.set("file", new File([`The file ${name}.`.repeat(40_000)], `${name}.txt`, { type: "text/plain" }));
    return client.request("POST", "/v1/files", { raw: form });
  };
  const ingest = (externalId: string, content: string) => client.post("/rag/ingest", { externalId, content });
  const used = async () => (await client.get("/usage")).at("quotas.storedBytes.used") as number;
  const sweep = (inDays: number) =>
    test.platform.store.retention.removeUnownedSources(new Date(Date.now() + inDays * DAY_MS));

  it("are removed a day later and count no more, and those of documents and files stay", async () => {
    const { store } = test.platform;
    const kept = await upload("kept");
    expect(kept.status, kept.text).to.equal(200);
    expect((await ingest("one", "The first edition.")).status).to.equal(201);
    expect((await ingest("one", "The second edition.")).status).to.equal(201);
    const lost = await ingest("two", "A text whose answer is lost.").then(async ({ status }) => {
      expect(status).to.equal(201);
      loseAnswer(store.documents, "reassign");
      return ingest("two", "Its next edition.");
    });
    expect(lost.status, "the store has the new source").to.equal(503);
    const before = await used();
    const away = async () => {
      throw new MongoNetworkError("the store is away");
    };
    const [{ insert }, { ensure }] = [store.documents, store.files];
    [store.documents.insert, store.files.ensure] = [away, away];
    try {
      expect((await ingest("three", "A text without a record.")).status).to.equal(503);
      expect((await upload("cut")).status).to.equal(503);
    } finally {
      [store.documents.insert, store.files.ensure] = [insert, ensure];
    }
    expect(await used()).to.be.above(before + 500_000);
    expect(await sweep(0), "while they may be at work").to.equal(0);
    expect(await sweep(2)).to.equal(6);
    expect(await used()).to.equal(before);
    expect(await sweep(2), "those that have an owner are not looked at again").to.equal(0);
    expect((await client.get(`/v1/files/${kept.string("id")}/content`)).text).to.contain("The file kept.");
    const again = await ingest("two", "Its last edition.");
    expect([again.status, again.at("status")], again.text).to.deep.equal([201, "indexed"]);
    expect((await client.post("/rag/query", { query: "edition" })).text).to.contain("Its last edition.");
  });
});
