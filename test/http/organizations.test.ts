import { expect } from "chai";
import { newId } from "../../src/lib/ids.ts";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { callTool } from "../support/mcp-call.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

describe("organizations", () => {
  let test: TestPlatform;
  let owner: ApiClient;
  let stranger: ApiClient;
  let first: string;
  let second: string;
  before(async () => {
    test = await startPlatform({ workers: false });
    owner = makeClient({ url: test.url, key: test.keys.owner });
    stranger = makeClient({ url: test.url, key: test.keys.stranger });
    first = await tenantOf(test);
    second = await test.platform.tenancy.findTenant("second");
  });
  after(() => test.close());

  const call = async (client: ApiClient, tool: string, given: object) => {
    const { isError, value } = await callTool(client, tool, given);
    const text = (path: string) => String(valueAt(value, path));
    return { isError, value, text, code: valueAt(value, "error.code"), message: valueAt(value, "error.message") };
  };
  const create = async (name = "Acme Group", client = owner) =>
    (await call(client, "svc_org_create", { name })).text("organizationId");
  const get = (client: ApiClient, organizationId: string) => call(client, "svc_org_get", { organizationId });
  const add = (client: ApiClient, organizationId: string, given: { tenantId?: string; name?: string }) =>
    call(client, "svc_org_add_tenant", { organizationId, ...given });
  const withKey = (key: string) => makeClient({ url: test.url, key });
  /** A key of the role and subject in a tenant. */
  const keyOf = async (tenantId: string, role: "owner" | "admin" | "member", subject: string) =>
    withKey((await test.platform.tenancy.createKey({ tenantId, role, subject })).key);

  it("start with the founder's tenant, and with its subject as owner", async () => {
    const made = await call(owner, "svc_org_create", { name: "  Acme Group " });
    expect(made.text("organizationId")).to.match(/^org_[0-9A-Z]{26}$/);
    expect(made.value).to.deep.include({
      name: "Acme Group",
      tenants: [{ tenantId: first, name: "first" }],
      members: [{ subject: "owner@test", role: "owner", tenantId: first }],
    });
    expect(Date.parse(made.text("createdAt"))).to.be.closeTo(Date.now(), 60_000);
    expect((await get(owner, made.text("organizationId"))).value).to.deep.equal(made.value);
  });

  it("do not exist for anybody but members: their 404 is that of an unknown organization", async () => {
    const organizationId = await create();
    const absent = newId("organization");
    const impostor = await keyOf(second, "owner", "owner@test");
    const colleague = await keyOf(first, "owner", "other@test");
    for (const client of [stranger, impostor, colleague]) {
      for (const id of [organizationId, absent]) {
        const seen = await get(client, id);
        const added = await add(client, id, { name: "Mine" });
        const own = await add(client, id, { tenantId: second });
        for (const { isError, code, message } of [seen, added, own]) {
          expect([isError, code, message]).to.deep.equal([true, "not_found", "There is no such organization."]);
        }
      }
    }
    expect((await get(owner, organizationId)).value)
      .to.have.property("tenants")
      .with.lengthOf(1);
  });

  it("take the founder's tenant again without a change", async () => {
    const organizationId = await create();
    const before = await get(owner, organizationId);
    const { isError, value } = await add(owner, organizationId, { tenantId: first });
    expect([isError, value]).to.deep.equal([false, { ...(before.value as object), tenantId: first }]);
    expect((await get(owner, organizationId)).value).to.deep.equal(before.value);
  });

  it("do not add a foreign tenant, and answer as for an unknown one", async () => {
    const organizationId = await create();
    for (const tenantId of [second, newId("tenant")]) {
      const { isError, code, message } = await add(owner, organizationId, { tenantId });
      expect([isError, code, message]).to.deep.equal([true, "not_found", "There is no such tenant."]);
    }
    expect((await get(owner, organizationId)).value)
      .to.have.property("tenants")
      .with.lengthOf(1);
  });

  it("make a tenant, whose first key is shown once and works in that tenant only", async () => {
    const organizationId = await create();
    const made = await add(owner, organizationId, { name: "Subsidiary" });
    const key = made.text("apiKey");
    expect(key).to.match(/^sk_[0-9A-Za-z]{32}$/);
    const subsidiary = withKey(key);
    const listed = await subsidiary.get("/keys");
    expect(listed.at("data")).to.have.lengthOf(1);
    expect(listed.at("data[0]")).to.deep.include({ role: "owner", subject: "owner@test" });
    expect((await owner.get("/keys")).text).not.to.contain(listed.string("data[0].keyId"));

    const again = await add(owner, organizationId, { name: "Subsidiary" });
    expect(again.value).not.to.have.property("apiKey");
    expect(again.text("tenantId")).to.equal(made.text("tenantId"));
    expect((await get(owner, organizationId)).value)
      .to.have.property("tenants")
      .that.deep.equals([
        { tenantId: first, name: "first" },
        { tenantId: made.text("tenantId"), name: "Subsidiary" },
      ]);
    expect((await subsidiary.get("/keys")).at("data"), "no second key was made").to.have.lengthOf(1);
  });

  it("are visible to the tenant that was made, which may not add to them", async () => {
    const organizationId = await create();
    const made = await add(owner, organizationId, { name: "Branch" });
    const branch = withKey(made.text("apiKey"));
    expect((await get(branch, organizationId)).value)
      .to.have.property("members")
      .with.lengthOf(2);
    const { isError, code } = await add(branch, organizationId, { name: "Mine" });
    expect([isError, code]).to.deep.equal([true, "not_found"]);
  });

  it("make one tenant and one key for a name that is requested many times at once", async () => {
    const organizationId = await create();
    const answers = await Promise.all(Array.from({ length: 8 }, () => add(owner, organizationId, { name: "Race" })));
    expect(answers.map(({ isError }) => isError)).to.deep.equal(Array(8).fill(false));
    expect(new Set(answers.map(({ text }) => text("tenantId"))).size).to.equal(1);
    expect(answers.filter(({ value }) => valueAt(value, "apiKey") !== undefined)).to.have.lengthOf(1);
    expect((await get(owner, organizationId)).value)
      .to.have.property("tenants")
      .with.lengthOf(2);
  });

  it("never give out an existing tenant of the same name", async () => {
    const organizationId = await create();
    const keysBefore = (await stranger.get("/keys")).at("data");
    const made = await add(owner, organizationId, { name: "second" });
    expect(made.text("tenantId")).not.to.equal(second);
    expect((await stranger.get("/keys")).at("data"), "keys of the tenant that was there").to.deep.equal(keysBefore);
    expect(await test.platform.tenancy.findTenant("second"), "the operator's name still means it").to.equal(second);
    const other = await add(stranger, await create("Other", stranger), { name: "second" });
    expect(other.text("tenantId")).not.to.equal(made.text("tenantId"));
  });

  it("add a tenant that their owner administers in another organization", async () => {
    const [from, to] = [await create("From"), await create("To")];
    const tenantId = (await add(owner, from, { name: "Shared" })).text("tenantId");
    const added = await add(owner, to, { tenantId });
    expect(added.isError).to.equal(false);
    expect(added.value).to.have.property("tenants").that.deep.includes({ tenantId, name: "Shared" });
    expect(added.value).not.to.have.property("apiKey");
  });

  it("are founded and enlarged by owners' keys alone, and read by any key of a member", async () => {
    const organizationId = await create();
    for (const role of ["member", "admin"] as const) {
      const client = await keyOf(first, role, "owner@test");
      for (const refused of [
        await call(client, "svc_org_create", { name: "Mine" }),
        await add(client, organizationId, { name: "Mine" }),
      ]) {
        expect([refused.isError, refused.code]).to.deep.equal([true, "insufficient_role"]);
      }
      expect((await get(client, organizationId)).isError).to.equal(false);
    }
  });

  it("make no tenants for a tenant that was made so itself", async () => {
    const made = withKey((await add(owner, await create(), { name: "Maker" })).text("apiKey"));
    const organizationId = await create("Deeper", made);
    const { isError, code, message } = await add(made, organizationId, { name: "Made" });
    expect([isError, code]).to.deep.equal([true, "wrong_state"]);
    expect(message).to.contain("made by another tenant");
    expect((await get(made, organizationId)).value)
      .to.have.property("tenants")
      .with.lengthOf(1);
  });

  it("are bounded: 20 to a tenant, 100 tenants to each", async () => {
    const tenantId = await test.platform.tenancy.ensureTenant("founder");
    const founder = await keyOf(tenantId, "owner", "ana");
    const ids = await Promise.all(Array.from({ length: 20 }, (_, n) => create(`No. ${n}`, founder)));
    const refused = await call(founder, "svc_org_create", { name: "One more" });
    expect([refused.isError, refused.code]).to.deep.equal([true, "quota_exceeded"]);
    const [organizationId = ""] = ids;
    for (let n = 1; n < 100; n += 1) {
      const { isError } = await add(founder, organizationId, { name: `t${n}` });
      expect(isError).to.equal(false);
    }
    const over = await add(founder, organizationId, { name: "t100" });
    expect([over.isError, over.code]).to.deep.equal([true, "wrong_state"]);
    expect((await add(founder, organizationId, { name: "t7" })).isError, "one that is there").to.equal(false);
  });

  it("require either a tenant or a name", async () => {
    const organizationId = await create();
    for (const given of [{}, { tenantId: first, name: "x" }, { name: " " }, { tenantId: "x" }]) {
      const answer = await owner.post("/mcp", {
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "svc_org_add_tenant", arguments: { organizationId, ...given } },
      });
      expect([answer.status, answer.at("error.code")], JSON.stringify(given)).to.deep.equal([200, -32_602]);
    }
  });
});
