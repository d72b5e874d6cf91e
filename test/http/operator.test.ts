import { expect } from "chai";
import { boardPath } from "../../api/operator-pages.ts";
import { operatorRoutes } from "../../api/routes/operator.ts";
import { startWorkers } from "../../workers/start-workers.ts";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const PASSWORD = "operator-token-of-the-tests";
const HOSTILE = `<img src=x onerror=alert(1)>"'\u202e{{7*7}} ${"W".repeat(100)}`;

describe("the operator", () => {
  let test: TestPlatform;
  let operator: ApiClient;
  before(async () => {
    test = await startPlatform({ env: { TRUSTED_PROXIES: "127.0.0.1,::1" } });
    operator = makeClient({ url: test.url, key: PASSWORD });
  });
  after(() => test.close());

  const client = (key?: string) => makeClient({ url: test.url, key });
  let addresses = 0;
  /** An address that has not been wrong yet. */
  const from = () => ({ "x-forwarded-for": `203.0.113.${++addresses}` });
  const open = async () => {
    const opened = await operator.post("/operator/session", undefined, { headers: { origin: test.url } });
    expect(opened.status).to.equal(201);
    return { opened, cookie: (opened.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? "" };
  };
  const reads = operatorRoutes.filter(({ method }) => method === "get");

  for (const { method, path } of operatorRoutes) {
    it(`alone may ${method.toUpperCase()} ${path}`, async () => {
      const basic = (password: string) => `Basic ${Buffer.from(`operator:${password}`).toString("base64")}`;
      const tenantSession = await client(test.keys.owner).post("/session", undefined, { headers: from() });
      const [cookie = ""] = (tenantSession.headers.get("set-cookie") ?? "").split(";", 1);
      const others: Record<string, string>[] = [
        {},
        { authorization: `Bearer ${test.keys.owner}` },
        { authorization: basic(test.keys.owner) },
        { authorization: `Bearer ${PASSWORD}x` },
        { authorization: PASSWORD },
        { cookie, origin: test.url },
        { cookie: cookie.replace("switchyard=", "switchyard-operator="), origin: test.url },
        { "x-api-key": PASSWORD },
      ];
      for (const headers of others) {
        const refused = await client().request(method.toUpperCase(), path, { headers: { ...from(), ...headers } });
        expect(refused.status, JSON.stringify(headers)).to.equal(401);
        expect(refused.headers.get("www-authenticate"), "no prompt of the browser").not.to.match(/basic/i);
      }
    });
  }

  it("sees all tenants with their use, newest first, and nothing of what they keep", async () => {
    const owner = client(test.keys.owner);
    await owner.post("/ai/chat", { messages: [{ role: "user", content: "The walrus sleeps." }] });
    await owner.post("/rag/ingest", { title: "Walrus", content: "The walrus sleeps under the lighthouse." });
    await test.platform.gateway.flush();
    await test.platform.tenancy.ensureTenant(HOSTILE);
    const page = await operator.get("/operator/tenants?limit=2");
    expect([page.at("data[0].name"), page.at("data[1].name")]).to.deep.equal([HOSTILE, "second"]);
    const next = await operator.get(`/operator/tenants?limit=2&cursor=${page.string("nextCursor")}`);
    expect([next.at("data[0].name"), next.at("nextCursor")]).to.deep.equal(["first", null]);
    const first = (await operator.get("/operator/tenants?name=first")).at("data") as Record<string, unknown>[];
    expect(first).to.have.length(1);
    expect(first[0]).to.deep.include({ documents: 1, openJobs: 0, keys: 3, organizations: [] });
    expect(first[0]?.month).to.deep.include({ month: new Date().toISOString().slice(0, 7), errors: 0 });
    expect(valueAt(first, "[0].month.requests"), "the chat and its embeddings").to.be.at.least(2);
    for (const { path } of reads) expect((await operator.get(path)).text, path).not.to.match(/walrus sleeps|sk_/);
    const wrong = await operator.get("/operator/tenants?limit=51");
    expect([wrong.status, wrong.at("error.param")]).to.deep.equal([400, "limit"]);
  });

  it("sees the workers that are alive, and the parts with queues, versions and disk", async () => {
    const list = () => operator.get("/operator/workers");
    const worker = await pollUntil(async () => (await list()).at("data[0]"));
    expect(worker).to.include({ pid: process.pid, node: process.version, version: "0.2.0" });
    expect(valueAt(worker, "queues")).to.deep.include({ queue: "agent-runs", concurrency: 16 });
    const { producer, prefix } = test.platform.redis;
    await producer.zadd(`${prefix}:workers`, Date.now(), "gone"); // as one whose report has ended
    expect((await list()).at("total")).to.equal(1);
    const second = await startWorkers(test.platform, {
      concurrencyFactor: 1,
      shutdownGraceMs: 1_000,
      queues: ["ingestion"],
    });
    await pollUntil(async () => (await list()).at("total") === 2);
    expect((await list()).at("data[0].queues"), "the one that began last").to.have.length(1);
    await second.close();
    expect((await list()).at("total"), "after its end").to.equal(1);
    const parts = await operator.get("/operator/parts");
    expect(parts.body).to.include({ status: "ready" });
    expect(parts.at("versions")).to.deep.include({ switchyard: "0.2.0", node: process.version });
    expect(parts.at("versions.data")).to.be.a("number");
    expect(parts.at("disk.totalBytes")).to.be.above(1e6);
    const queues = parts.at("queues") as { queue: string; workers: number }[];
    expect(queues.find(({ queue }) => queue === "ingestion")?.workers).to.equal(1);
  });

  it("has its own session, also for the board, which ends by sign-out and opens no tenant's route", async () => {
    const { opened, cookie } = await open();
    expect(opened.headers.get("set-cookie")).to.match(
      /^switchyard-operator=[0-9A-Za-z]{32}; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Strict$/,
    );
    const headers = { cookie, origin: test.url };
    for (const { path } of reads) expect((await client().get(path, { headers })).status, path).to.equal(200);
    const board = () => fetch(`${test.url}${boardPath}/api/queues`, { headers });
    expect((await board()).status).to.equal(200);
    expect((await client().get("/me", { headers })).status).to.equal(401);
    const again = await client().post("/operator/session", undefined, { headers });
    expect([again.status, again.at("error.code")]).to.deep.equal([403, "insufficient_scope"]);
    expect((await client().delete("/operator/session", { headers })).status).to.equal(204);
    for (const { path } of reads) {
      const replayed = await client().get(path, { headers: { ...headers, ...from() } });
      expect([replayed.status, replayed.at("error.code")], path).to.deep.equal([401, "invalid_api_key"]);
    }
    expect((await board()).status).to.equal(401);
  });

  it("does nothing that another site made the browser send", async () => {
    const { cookie } = await open();
    const basic = `Basic ${Buffer.from(`operator:${PASSWORD}`).toString("base64")}`;
    for (const origin of ["http://evil.example", "null"]) {
      const ended = await client().delete("/operator/session", { headers: { cookie, origin } });
      expect([ended.status, ended.at("error.code")], origin).to.deep.equal([403, "foreign_origin"]);
      const signedIn = await client().post("/operator/session", undefined, {
        headers: { authorization: basic, origin },
      });
      expect(signedIn.status, origin).to.equal(403);
      const paused = await fetch(`${test.url}${boardPath}/api/queues/ingestion/pause`, {
        method: "PUT",
        headers: { cookie, origin },
      });
      expect(paused.status, origin).to.equal(403);
    }
    expect((await client().delete("/operator/session", { headers: { cookie } })).status, "without one").to.equal(403);
    const headers = { cookie, "sec-fetch-site": "cross-site" };
    expect((await client().get("/operator/tenants", { headers })).at("error.code")).to.equal("foreign_origin");
  });

  it("is not found by guessing: an address that was wrong 20 times waits, but not with the right password", async () => {
    const headers = from();
    const guess = (key: string) => client(key).get("/operator/parts", { headers });
    const guesses = await Promise.all(Array.from({ length: 20 }, (_, at) => guess(`wrong-password-${at}`)));
    expect(new Set(guesses.map(({ status }) => status))).to.deep.equal(new Set([401]));
    const refused = await guess("wrong-password-20");
    expect([refused.status, refused.at("error.code")]).to.deep.equal([429, "rate_limited"]);
    expect(Number(refused.headers.get("retry-after"))).to.be.within(1, 60);
    const board = (address: object, password = PASSWORD) =>
      fetch(`${test.url}${boardPath}/api/queues`, { headers: { ...address, authorization: `Bearer ${password}` } });
    expect((await board(headers, "wrong-password-21")).status, "at the board, too").to.equal(429);
    expect((await board(headers)).status, "with the right one").to.equal(200);
    expect((await guess(PASSWORD)).status).to.equal(200);
  });

  it("does not exist without ADMIN_TOKEN", async () => {
    const without = await startPlatform({ workers: false, env: { ADMIN_TOKEN: "" } });
    try {
      const anybody = makeClient({ url: without.url, key: PASSWORD });
      for (const { method, path } of operatorRoutes) {
        expect((await anybody.request(method.toUpperCase(), path)).status, path).to.equal(404);
      }
    } finally {
      await without.close();
    }
  });
});
