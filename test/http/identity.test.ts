import { expect } from "chai";
import { makeClient, valueAt } from "../support/http-client.ts";
import { callTool } from "../support/mcp-call.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

describe("identity and keys", () => {
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform({ workers: false });
  });
  after(() => platform.close());

  const client = (key?: string) => makeClient({ url: platform.url, key });

  it("a request without a key is answered with how to send one", async () => {
    const { status, headers, at } = await client().get("/jobs");
    expect(status).to.equal(401);
    expect(headers.get("www-authenticate")).to.match(/^Bearer/);
    expect(at("error.code")).to.equal("missing_api_key");
    expect(at("error.type")).to.equal("authentication_error");
    expect(at("error.requestId")).to.equal(headers.get("x-request-id"));
  });

  for (const authorization of [
    `Bearer sk_${"x".repeat(32)}`,
    "Bearer ",
    "Bearer",
    "Basic dXNlcjpwYXNz",
    "Bearer not a key",
    `Bearer sk_${"x".repeat(5_000)}`,
    `Bearer ${"sk_".repeat(11)}`,
  ]) {
    it(`refuses ${authorization.slice(0, 40)}`, async () => {
      const { status, at } = await client().get("/jobs", { headers: { authorization } });
      expect(status).to.equal(401);
      expect(at("error.code")).to.equal("invalid_api_key");
    });
  }

  it("takes the scheme in any case, as RFC 9110 wants it", async () => {
    const authorization = `bearer ${platform.keys.member}`;
    expect((await client().get("/jobs", { headers: { authorization } })).status).to.equal(200);
  });

  it("an owner makes a key, which works, is listed by its preview and never shown again", async () => {
    const owner = client(platform.keys.owner);
    const made = await owner.post("/keys", { role: "admin", subject: "ana@acme.io", name: "laptop" });
    expect(made.status).to.equal(201);
    expect(made.string("key")).to.match(/^sk_[0-9A-Za-z]{32}$/);
    expect(made.headers.get("cache-control")).to.equal("no-store");
    expect((await client(made.string("key")).get("/jobs")).status).to.equal(200);
    const listed = await owner.get("/keys");
    expect(listed.text).not.to.contain(made.string("key"));
    expect(listed.at("data[0]")).to.deep.include({
      keyId: made.string("keyId"),
      role: "admin",
      subject: "ana@acme.io",
    });
  });

  it("the store holds no key, only hashes", async () => {
    const made = await client(platform.keys.owner).post("/keys", {});
    const stored = await platform.platform.store.apiKeys.list(
      (await platform.platform.tenancy.authenticate(made.string("key")))?.tenantId ?? "",
      { limit: 200 },
    );
    expect(JSON.stringify(stored)).not.to.contain(made.string("key"));
  });

  it("members and admins may not manage keys", async () => {
    for (const key of [platform.keys.member, platform.keys.admin]) {
      for (const answer of [
        await client(key).get("/keys"),
        await client(key).post("/keys", { role: "owner" }),
        await client(key).delete("/keys/key_01J00000000000000000000000"),
      ]) {
        expect(answer.status).to.equal(403);
        expect(answer.at("error.code")).to.equal("insufficient_role");
      }
    }
  });

  it("a revoked key is refused within 5 seconds, even if it was just used", async () => {
    const owner = client(platform.keys.owner);
    const made = await owner.post("/keys", { role: "member" });
    const revoked = client(made.string("key"));
    expect((await revoked.get("/jobs")).status).to.equal(200);
    expect((await owner.delete(`/keys/${made.string("keyId")}`)).status).to.equal(204);
    await pollUntil(async () => (await revoked.get("/jobs")).status === 401, { timeoutMs: 5_000 });
    expect((await owner.delete(`/keys/${made.string("keyId")}`)).status, "a second time").to.equal(404);
  });

  it("a key that was revoked by another process is refused within 5 seconds", async () => {
    const { tenancy, store } = platform.platform;
    const tenantId = await tenancy.ensureTenant("first");
    const { key, record } = await tenancy.createKey({ tenantId, role: "member", subject: "x" });
    expect((await client(key).get("/jobs")).status).to.equal(200);
    await store.apiKeys.revoke(tenantId, record._id, new Date()); // behind this process's back
    await pollUntil(async () => (await client(key).get("/jobs")).status === 401, { timeoutMs: 5_000 });
  });

  it("an open stream ends soon after its key is revoked", async () => {
    const owner = client(platform.keys.owner);
    const made = await owner.post("/keys", {});
    const later = { headers: { prefer: "respond-async" } };
    const jobId = (await owner.post("/rag/ingest", { content: "Nobody takes it." }, later)).string("jobId");
    const { events } = await client(made.string("key")).events("GET", `/jobs/${jobId}/events`);
    const end = Array.fromAsync(events).then(
      () => "ended",
      () => "cut",
    );
    expect((await owner.delete(`/keys/${made.string("keyId")}`)).status).to.equal(204);
    expect(await end).to.equal("cut");
  }).timeout(20_000);

  it("a key ends when it expires", async () => {
    const owner = client(platform.keys.owner);
    const expiresAt = new Date(Date.now() + 1_000).toISOString();
    const made = await owner.post("/keys", { expiresAt });
    expect((await client(made.string("key")).get("/jobs")).status).to.equal(200);
    await pollUntil(async () => (await client(made.string("key")).get("/jobs")).status === 401, { timeoutMs: 3_000 });
    const past = await owner.post("/keys", { expiresAt: "2020-01-01T00:00:00Z" });
    expect([past.status, past.at("error.param")]).to.deep.equal([400, "expiresAt"]);
  });

  it("what an expiring key makes ends with it at the latest", async () => {
    const expiresAt = new Date(Date.now() + 60_000).toISOString();
    const made = await client(platform.keys.owner).post("/keys", { role: "owner", expiresAt });
    const expiring = client(made.string("key"));
    const later = new Date(Date.now() + 120_000).toISOString();
    const sooner = new Date(Date.now() + 30_000).toISOString();
    const refused = await expiring.post("/keys", { expiresAt: later });
    expect([refused.status, refused.at("error.code"), refused.at("error.param")]).to.deep.equal([
      403,
      "insufficient_scope",
      "expiresAt",
    ]);
    expect((await expiring.post("/keys", { expiresAt: sooner })).at("expiresAt")).to.equal(sooner);
    const second = await expiring.post("/keys", { role: "owner" });
    expect(second.at("expiresAt"), "without one").to.equal(expiresAt);
    expect((await client(second.string("key")).post("/keys", {})).at("expiresAt"), "of a made one").to.equal(expiresAt);
    await expiring.post("/ai/widget/key", {});
    expect((await expiring.get("/ai/widget/keys")).at("data[0].expiresAt")).to.equal(expiresAt);
    const { value: organization } = await callTool(expiring, "svc_org_create", { name: "Brief" });
    const organizationId = valueAt(organization, "organizationId");
    const { value: tenant } = await callTool(expiring, "svc_org_add_tenant", { organizationId, name: "branch" });
    const keys = await client(String(valueAt(tenant, "apiKey"))).get("/keys");
    expect(keys.at("data[0].expiresAt")).to.equal(expiresAt);
  });

  it("the last owner's key of a tenant cannot be revoked", async () => {
    const { tenancy } = platform.platform;
    const tenantId = await tenancy.ensureTenant("alone");
    const { key, record } = await tenancy.createKey({ tenantId, role: "owner", subject: "only@alone" });
    await tenancy.createKey({ tenantId, role: "member", subject: "m@alone" });
    const refused = await client(key).delete(`/keys/${record._id}`);
    expect([refused.status, refused.at("error.code")]).to.deep.equal([409, "wrong_state"]);
    const second = await client(key).post("/keys", { role: "owner" });
    expect((await client(key).delete(`/keys/${record._id}`)).status).to.equal(204);
    expect((await client(second.string("key")).get("/keys")).status).to.equal(200);
  });

  it("pages through keys without missing or repeating one", async () => {
    const { tenancy } = platform.platform;
    const tenantId = await tenancy.ensureTenant("many-keys");
    const { key } = await tenancy.createKey({ tenantId, role: "owner", subject: "o" });
    for (let n = 0; n < 6; n += 1) await tenancy.createKey({ tenantId, role: "member", subject: `s${n}` });
    const seen: unknown[] = [];
    let cursor = "";
    do {
      const page = await client(key).get(`/keys?limit=3${cursor && `&cursor=${cursor}`}`);
      for (let n = 0; page.at(`data[${n}]`); n += 1) seen.push(page.at(`data[${n}].subject`));
      cursor = page.at("nextCursor") === null ? "" : page.string("nextCursor");
    } while (cursor !== "");
    expect(seen).to.deep.equal(["s5", "s4", "s3", "s2", "s1", "s0", "o"]);
  });

  it("the bootstrap key is an owner's key of the tenant default, whichever process makes it", async () => {
    const { tenancy } = platform.platform;
    const key = `sk_${"B".repeat(32)}`;
    await Promise.all([1, 2, 3].map(() => tenancy.ensureBootstrapKey(key)));
    const caller = await tenancy.authenticate(key);
    expect(caller?.role).to.equal("owner");
    expect(caller?.tenantId).to.equal(await tenancy.ensureTenant("default"));
    const { data } = await tenancy.listKeys(caller?.tenantId ?? "", { limit: 10 });
    expect(data).to.have.length(1);
  });
});
