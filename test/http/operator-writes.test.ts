import { expect } from "chai";
import { operatorWriteRoutes } from "../../api/routes/operator-writes.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const PASSWORD = "operator-token-of-the-tests";

describe("the operator's writes", () => {
  let test: TestPlatform;
  let operator: ApiClient;
  before(async () => {
    test = await startPlatform({ workers: false });
    operator = makeClient({ url: test.url, key: PASSWORD });
  });
  after(() => test.close());

  const client = (key: string) => makeClient({ url: test.url, key });

  for (const { method, path } of operatorWriteRoutes) {
    it(`are refused to a tenant's owner: ${method.toUpperCase()} ${path}`, async () => {
      const refused = await client(test.keys.owner).request(method.toUpperCase(), path.replace(/:\w+/g, "x"));
      expect(refused.status).to.equal(401);
    });
  }

  it("make a tenant with an owner's key, once by a name", async () => {
    const made = await operator.post("/operator/tenants", { name: "made", subject: "ana@made.io" });
    expect(made.status).to.equal(201);
    const me = await client(made.string("key")).get("/me");
    expect([me.at("tenantName"), me.at("role"), me.at("subject")]).to.deep.equal(["made", "owner", "ana@made.io"]);
    expect((await operator.post("/operator/tenants", { name: "made", subject: "eve@made.io" })).status).to.equal(409);
  });

  it("set and remove a tenant's budget", async () => {
    const made = await operator.post("/operator/tenants", { name: "budgeted", subject: "ana@made.io" });
    const path = `/operator/tenants/${made.string("tenantId")}/budget`;
    const owner = client(made.string("key"));
    expect((await operator.request("PUT", path, { body: { limitUsd: 5 } })).at("limitUsd")).to.equal(5);
    expect((await owner.get("/usage")).at("budget.limitUsd")).to.equal(5);
    await operator.request("PUT", path, { body: { limitUsd: null } });
    expect((await owner.get("/usage")).at("budget")).to.equal(null);
    const none = path.replace(/tnt_\w+|ten_\w+/, (id) => `${id.slice(0, -1)}${id.endsWith("0") ? "1" : "0"}`);
    expect((await operator.request("PUT", none, { body: { limitUsd: 5 } })).status).to.equal(404);
  });

  it("make and revoke a tenant's keys, but not the last owner's", async () => {
    const made = await operator.post("/operator/tenants", { name: "keyed", subject: "ana@made.io" });
    const path = `/operator/tenants/${made.string("tenantId")}/keys`;
    const member = await operator.post(path, { subject: "ben@made.io", role: "member" });
    expect((await client(member.string("key")).get("/me")).at("role")).to.equal("member");
    const listed = (await operator.get(path)).at("data") as { subject: string; keyId: string }[];
    expect(listed.map(({ subject }) => subject)).to.deep.equal(["ben@made.io", "ana@made.io"]);
    expect((await operator.request("DELETE", `${path}/${listed[0]?.keyId}`)).status).to.equal(204);
    expect((await operator.request("DELETE", `${path}/${listed[1]?.keyId}`)).status).to.equal(409);
  });

  it("pause a queue and let it go on", async () => {
    const isPaused = async () => {
      const queues = (await operator.get("/operator/parts")).at("queues") as { queue: string; isPaused: boolean }[];
      return queues.find(({ queue }) => queue === "ingestion")?.isPaused;
    };
    for (const wanted of [true, false]) {
      await operator.request("PUT", "/operator/queues/ingestion", { body: { isPaused: wanted } });
      expect(await isPaused()).to.equal(wanted);
    }
    expect((await operator.request("PUT", "/operator/queues/none", { body: { isPaused: true } })).status).to.equal(404);
  });

  it("show a tenant's use by the day, and callbacks that failed by their host alone", async () => {
    const tenants = (await operator.get("/operator/tenants")).at("data") as { tenantId: string }[];
    const usage = await operator.get(`/operator/tenants/${tenants[0]?.tenantId}/usage`);
    expect([usage.at("step"), (usage.at("times") as string[]).length]).to.deep.equal(["day", 30]);
    const [createdAt, nextAt] = [new Date(), new Date(Date.now() + 60_000)];
    const tenantId = String(tenants[0]?.tenantId);
    const record = { tenantId, url: "https://desk.example.com/secret?token=x", createdAt, nextAt, owner: tenantId };
    await test.platform.store.callbacks.ensure({ ...record, _id: "job_none", attempts: 2 });
    await test.platform.store.callbacks.ensure({ ...record, _id: "job_new" });
    const failed = await operator.get("/operator/callbacks");
    expect(failed.at("data")).to.deep.equal([
      {
        callbackId: "job_none",
        tenantId,
        host: "desk.example.com",
        attempts: 2,
        createdAt: createdAt.toISOString(),
        nextAt: nextAt.toISOString(),
      },
    ]);
  });
});
