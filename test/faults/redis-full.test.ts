import { expect } from "chai";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const later = { headers: { prefer: "respond-async" } };

describe("when the memory of Redis is used up", function () {
  this.timeout(40_000);
  let test: TestPlatform;
  let client: ApiClient;
  let site: DocumentServer;

  before(async function () {
    if (process.env.REDIS_URL) return skipTest(this, "only the embedded Redis is the test's own");
    site = await startDocumentServer();
    test = await startPlatform({
      services: "private",
      env: { FETCH_ALLOW_ORIGINS: site.origin, RECONCILE_EVERY_MS: "300" },
    });
    client = makeClient({ url: test.url, key: test.keys.owner });
  });
  after(async () => {
    await test?.close();
    site?.close();
  });

  const limitMemory = (bytes: number) => test.platform.redis.producer.config("SET", "maxmemory", bytes);
  const submit = (title: string) => client.post("/rag/ingest", { content: `About ${title}.`, title }, later);
  const untilReady = () =>
    pollUntil(async () => (await client.get("/readyz")).at("status") === "ready", {
      timeoutMs: 15_000,
      what: "readiness",
    });

  it("refuses jobs with the reason, answers chats and queries, and completes what it had accepted", async () => {
    await untilReady();
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    site.put("/held", () => held.then(() => ({ body: "Held by its server for a while." })));
    const running = await client.post("/rag/ingest", { url: `${site.origin}/held`, title: "Held" }, later);
    await pollUntil(() => site.hits("/held") === 1, { what: "the running job" });
    await limitMemory(1);
    try {
      const refused = await submit("Refused");
      expect([refused.status, refused.at("error.code")], refused.text).to.deep.equal([503, "unavailable"]);
      expect(refused.string("error.message")).to.include("Redis takes no writes").and.include("memory");
      expect(Number(refused.headers.get("retry-after"))).to.be.at.least(1);
      const chat = await client.post("/ai/chat", { messages: [{ role: "user", content: "Hello." }] });
      expect(chat.status).to.equal(200);
      expect((await client.post("/rag/query", { query: "dawn" })).status).to.equal(200);
      const ready = await pollUntil(
        async () => {
          const answer = await client.get("/readyz"); // a finding may be a second old
          return answer.at("parts.redis.status") === "down" ? answer : null;
        },
        { what: "the end of the redis part" },
      );
      expect([ready.status, ready.at("status")]).to.deep.equal([200, "degraded"]);
      expect(ready.string("parts.redis.detail")).to.include("memory");
      letGo();
      const isIndexed = async () => (await client.get(`/jobs/${running.string("jobId")}`)).at("status") === "completed";
      await pollUntil(isIndexed, { timeoutMs: 15_000, what: "the end of the job that was running" });
    } finally {
      await limitMemory(0);
    }
    await untilReady();
    const accepted = await submit("Accepted");
    expect(accepted.status).to.equal(202);
    const listed = async () => {
      const { body } = await client.get("/rag/documents");
      const documents = body as { title: string; status: string }[];
      return documents.filter(({ status }) => status === "indexed").map(({ title }) => title);
    };
    await pollUntil(async () => (await listed()).length === 2, { timeoutMs: 15_000, what: "the accepted document" });
    expect(await listed()).to.have.members(["Held", "Accepted"]);
  });
});
