import { expect } from "chai";
import { firstIdAt } from "../../src/lib/ids.ts";
import { makeTextRemoval } from "../../workers/maintenance.ts";
import { makeCompletion } from "../support/completion-record.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const DAY_MS = 86_400_000;
const question = { model: "meta-llm", messages: [{ role: "user", content: "Who holds the walrus?" }] };

describe("the texts of model calls", () => {
  let test: TestPlatform;
  let owner: ApiClient;
  let member: ApiClient;
  let stranger: ApiClient;
  before(async () => {
    test = await startPlatform({ env: { CALL_LOG_DAYS: "60" } });
    [owner, member, stranger] = [test.keys.owner, test.keys.member, test.keys.stranger].map((key) =>
      makeClient({ url: test.url, key }),
    ) as [ApiClient, ApiClient, ApiClient];
  });
  after(() => test?.close());

  const set = (callTextDays: unknown, client = owner) => client.request("PUT", "/settings", { body: { callTextDays } });
  const logOf = (logId: string, client = member) => client.get(`/ai/logs/${logId}`);
  const ask = async (client = member) => (await client.post("/ai/chat", question)).string("logId");
  let made = 0;
  /** A call of so many days ago, whose texts were kept. */
  const addOld = async (days: number) => {
    made += 1;
    const createdAt = new Date(Date.now() - days * DAY_MS);
    const _id = `${firstIdAt("log", createdAt).slice(0, -4)}${String(made).padStart(4, "0")}`;
    const content = { messages: [], text: "It was the otter." };
    const tenantId = await tenantOf(test);
    await test.platform.store.completions.insertMany([{ ...makeCompletion(), _id, tenantId, createdAt, content }]);
    return _id;
  };
  const bytesKept = async () => {
    await test.platform.store.use.settled();
    return test.platform.store.use.bytes(await tenantOf(test), "callLogs");
  };

  it("are kept for nobody at first, and for the tenant alone whose owner wants them, request and answer", async () => {
    expect((await owner.get("/settings")).body).to.deep.equal({ callTextDays: "off" });
    expect((await logOf(await ask())).at("content")).to.equal(undefined);
    const wanted = await set(30);
    expect([wanted.status, wanted.body]).to.deep.equal([200, { callTextDays: 30 }]);
    const logId = await ask();
    const log = await logOf(logId);
    expect(log.at("content.messages")).to.deep.equal([{ role: "user", content: "Who holds the walrus?" }]);
    expect(log.string("content.text")).to.not.equal("");
    expect((await logOf(await ask(stranger), stranger)).at("content"), "another tenant").to.equal(undefined);
    expect((await stranger.get("/settings")).body).to.deep.equal({ callTextDays: "off" });
  });

  it("are kept of streams and of the other surfaces too", async () => {
    await set(1);
    const opened = await member.events("POST", "/ai/chat", { body: { ...question, stream: true } });
    await Array.fromAsync(opened.events);
    for (const [path, more] of [
      ["/v1/chat/completions", {}],
      ["/v1/messages", { max_tokens: 50 }],
    ] as const) {
      expect((await member.post(path, { ...question, ...more })).status, path).to.equal(200);
    }
    await test.platform.gateway.flush();
    const calls = (await member.get("/ai/logs?limit=3")).at("data") as { logId: string }[];
    for (const { logId } of calls) {
      expect((await logOf(logId)).at("content.messages[0].content")).to.equal("Who holds the walrus?");
    }
  });

  it("are set by owners, by `off` or 1 to 90 days within the platform's limit, and by nothing else", async () => {
    for (const wrong of [null, 0, 91, 1.5, "on", "30", true, undefined]) {
      const refused = await set(wrong);
      expect([refused.status, refused.at("error.param")], String(wrong)).to.deep.equal([400, "callTextDays"]);
    }
    const beyond = await set(61);
    expect([beyond.status, beyond.at("error.param")]).to.deep.equal([400, "callTextDays"]);
    expect(beyond.string("error.message")).to.contain("60 days");
    const misspelt = await owner.request("PUT", "/settings", { body: { callTextDays: 5, callTextsDays: 5 } });
    expect(misspelt.status).to.equal(400);
    expect(misspelt.string("error.message")).to.match(/callTextsDays.*callTextDays/);
    for (const client of [member, makeClient({ url: test.url, key: test.keys.admin })]) {
      expect((await set(5, client)).status).to.equal(403);
      expect((await client.get("/settings")).status).to.equal(403);
    }
    expect((await set(60)).status).to.equal(200);
  });

  it("are gone after their days, at once for readers and then from the store; the records stay", async () => {
    await set(30);
    const [old, young] = [await addOld(31), await addOld(29)];
    expect((await logOf(old)).at("content"), "of 31 days").to.equal(undefined);
    expect((await logOf(young)).at("content.text")).to.equal("It was the otter.");
    const tenantId = await tenantOf(test);
    const kept = async (id: string) => (await test.platform.store.completions.get(tenantId, id))?.content?.text;
    expect(await kept(old)).to.equal("It was the otter.");
    const removeTexts = makeTextRemoval(test.platform);
    const before = await bytesKept();
    await removeTexts();
    expect(before - (await bytesKept()), "bytes given back").to.be.within(17, 100);
    expect([await kept(old), await kept(young)]).to.deep.equal([undefined, "It was the otter."]);
    expect((await logOf(old)).status).to.equal(200);
    await set(10);
    expect((await logOf(young)).at("content"), "of 29 days, with fewer days").to.equal(undefined);
    const now = await ask();
    await test.platform.gateway.flush();
    await set("off");
    expect((await logOf(now)).at("content")).to.equal(undefined);
    await removeTexts();
    expect([await kept(young), await kept(now)]).to.deep.equal([undefined, undefined]);
    expect((await logOf(await ask())).at("content")).to.equal(undefined);
  });
});
