import { randomBytes } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { parseMasterKeys } from "../../src/config/master-key.ts";
import { bytesOf } from "../../src/store/provider-key-store.ts";
import { type MasterKeys, makeDataKeys, makeMasterKeys, openMasterKeys } from "../../src/tenancy/data-keys.ts";
import { makeProviderKeys } from "../../src/tenancy/provider-keys.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const first = "sk-own-first-0123456789abcdef";
const second = "sk-own-second-0123456789abcde";
const anthropicKey = "sk-ant-own-0123456789abcdef";
const ask = { model: "gpt-5.4-nano", messages: [{ role: "user", content: "Which key is it?" }] };

describe("customers' provider keys", () => {
  let upstream: FakeProvider;
  let test: TestPlatform;
  let admin: ApiClient;
  let stranger: ApiClient;
  let tenantId: string;
  before(async () => {
    upstream = await startFakeProvider();
    test = await startPlatform({
      workers: false,
      env: {
        OPENAI_API_KEY: "sk-of-the-platform-0123456789",
        OPENAI_BASE_URL: upstream.url,
        ANTHROPIC_BASE_URL: upstream.origin,
      },
    });
    admin = makeClient({ url: test.url, key: test.keys.admin });
    stranger = makeClient({ url: test.url, key: test.keys.stranger });
    tenantId = await tenantOf(test);
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const put = (provider: string, key: unknown, query = "") =>
    admin.request("PUT", `/ai/providers/${provider}/key${query}`, { body: { key } });
  const rotate = (provider: string, key: string) => admin.post(`/ai/providers/${provider}/rotate`, { key });
  const remove = (provider: string) => admin.delete(`/ai/providers/${provider}/key`);
  const keyUsed = async (client: ApiClient) => {
    expect((await client.post("/ai/chat", ask)).status).to.equal(200);
    return upstream.requests.at(-1)?.headers.authorization?.replace("Bearer ", "");
  };
  const stored = async () => {
    const record = await test.platform.store.providerKeys.find(tenantId, "openai");
    const dataKey = await test.platform.store.providerKeys.findDataKey(tenantId);
    if (!record || !dataKey) throw new Error("no key is stored");
    return { record, sealed: bytesOf(record.sealed), dataKey, wrapped: bytesOf(dataKey.wrapped) };
  };

  it("lists both providers, whether a key is set or not", async () => {
    const { status, body } = await admin.get("/ai/providers");
    expect(status).to.equal(200);
    expect(body).to.deep.equal({
      data: ["openai", "anthropic"].map((provider) => ({ provider, configured: false })),
      ...{ nextCursor: null, total: 2 },
    });
  });

  it("a tenant's calls use its own key from the moment it is set, and the platform's after it is removed", async () => {
    expect(await keyUsed(admin)).to.equal("sk-of-the-platform-0123456789");
    const set = await put("openai", first);
    expect([set.status, set.body]).to.deep.equal([200, { provider: "openai", configured: true }]);
    expect(await keyUsed(admin)).to.equal(first);
    expect(await keyUsed(stranger), "another tenant").to.equal("sk-of-the-platform-0123456789");

    const rotated = await rotate("openai", second);
    expect(rotated.status).to.equal(200);
    expect(rotated.body).to.include({ provider: "openai", configured: true });
    expect(Date.parse(rotated.string("rotatedAt"))).to.be.closeTo(Date.now(), 10_000);
    expect(await keyUsed(admin)).to.equal(second);

    const listed = await admin.get("/ai/providers");
    expect(listed.at("data[0]")).to.deep.include({
      provider: "openai",
      configured: true,
      decryptable: true,
      keyPreview: "sk-o…bcde",
      updatedAt: rotated.string("rotatedAt"),
    });
    expect(listed.text).not.to.contain(second);
    expect((await stranger.get("/ai/providers")).at("data[0].configured"), "another tenant").to.equal(false);

    expect((await remove("openai")).status).to.equal(204);
    expect(await keyUsed(admin)).to.equal("sk-of-the-platform-0123456789");
    expect((await remove("openai")).status, "nothing is there any more").to.equal(404);
    expect((await rotate("openai", first)).status, "nothing to rotate").to.equal(404);
  });

  it("a call to a provider without a key is refused with the reason, and works once a key is set", async () => {
    const chat = { ...ask, model: "claude-haiku-5-5" };
    const without = await admin.post("/ai/chat", chat);
    expect([without.status, without.at("error.code")]).to.deep.equal([400, "provider_not_configured"]);
    expect((await put("anthropic", anthropicKey)).status).to.equal(200);
    expect((await admin.post("/ai/chat", chat)).status).to.equal(200);
    expect(upstream.requests.at(-1)?.headers["x-api-key"]).to.equal(anthropicKey);
    expect((await remove("anthropic")).status).to.equal(204);
  });

  it("refuses keys of another shape, and never quotes them", async () => {
    for (const [provider, key] of [
      ["openai", "short"],
      ["openai", anthropicKey],
      ["anthropic", first],
      ["openai", `${first} with blanks`],
      ["openai", `sk-${"x".repeat(600)}`],
      ["openai", 7],
    ] as const) {
      const { status, at, text } = await put(provider, key);
      expect([status, at("error.param")], String(key)).to.deep.equal([400, "key"]);
      if (typeof key === "string" && key.length > 5) expect(text).not.to.contain(key.slice(0, 20));
    }
    expect((await put("mistral", first)).status, "no such provider").to.equal(404);
    expect((await put("edge", first)).status, "the platform's own takes none").to.equal(404);
  });

  it("asks the provider about a key on request", async () => {
    upstream.next({ status: 401, rawBody: `{"error":{"message":"bad key ${first}"}}` });
    const refused = await put("openai", first, "?verify=true");
    expect([refused.status, refused.at("error.code")]).to.deep.equal([400, "provider_key_refused"]);
    expect(refused.text).not.to.contain(first);
    upstream.next({ status: 500, rawBody: "{}" });
    expect((await put("openai", first, "?verify=true")).status).to.equal(502);
    expect((await admin.get("/ai/providers")).at("data[0].configured"), "nothing was kept").to.equal(false);
    upstream.next({ status: 200, rawBody: '{"data":[]}' });
    expect((await put("openai", first, "?verify=true")).status).to.equal(200);
    expect(upstream.requests.at(-1)?.path).to.equal("/v1/models");
    expect((await remove("openai")).status).to.equal(204);

    upstream.next({ status: 200, rawBody: '{"data":[]}' });
    expect((await put("anthropic", anthropicKey, "?verify=true")).status).to.equal(200);
    expect(upstream.requests.at(-1)?.path).to.equal("/v1/models");
    expect(upstream.requests.at(-1)?.headers).to.include({ "x-api-key": anthropicKey });
    expect(upstream.requests.at(-1)?.headers).not.to.have.property("authorization");
    expect((await remove("anthropic")).status).to.equal(204);
  });

  it("lets only admins change keys", async () => {
    const member = makeClient({ url: test.url, key: test.keys.member });
    const attempts = [
      member.request("PUT", "/ai/providers/openai/key", { body: { key: first } }),
      member.post("/ai/providers/openai/rotate", { key: first }),
      member.delete("/ai/providers/openai/key"),
    ];
    for (const { status } of await Promise.all(attempts)) expect(status).to.equal(403);
  });

  describe("as they are stored", () => {
    before(() => put("openai", first));

    it("the bytes hold neither the key nor the data key, and differ each time", async () => {
      const one = await stored();
      expect((await put("openai", first)).status).to.equal(200);
      const other = await stored();
      expect(one.sealed.equals(other.sealed), "a fresh nonce each time").to.equal(false);
      for (const { sealed, record } of [one, other]) {
        expect(sealed.length).to.equal(12 + 16 + first.length);
        expect(sealed.includes(Buffer.from(first.slice(3, 12)))).to.equal(false);
        expect(JSON.stringify(record)).not.to.contain(first).and.not.to.contain(Buffer.from(first).toString("base64"));
      }
    });

    it("rotating the provider's key leaves the wrapped data key's bytes as they are", async () => {
      const one = await stored();
      expect((await rotate("openai", second)).status).to.equal(200);
      const other = await stored();
      expect(other.wrapped.equals(one.wrapped)).to.equal(true);
      expect(other.dataKey).to.deep.equal(one.dataKey);
      expect(other.sealed.equals(one.sealed)).to.equal(false);
      expect((await rotate("openai", first)).status).to.equal(200);
    });

    it("the made master key is the owner's alone to read", async function () {
      if (process.env.MONGODB_URL) return skipTest(this, "with MONGODB_URL the key comes from MASTER_KEY");
      const { mode, size } = await stat(join(test.platform.config.dataDir, "master.key"));
      expect([mode & 0o777, size]).to.deep.equal([0o600, 45]);
    });

    const keysWith = (masterKeys: MasterKeys | null) =>
      makeProviderKeys({
        store: test.platform.store.providerKeys,
        dataKeys: makeDataKeys({ store: test.platform.store.providerKeys, masterKeys }),
        platform: test.platform.config.gateway,
        logger: test.platform.logger,
      });
    const codeOf = async (calling: () => unknown) => {
      try {
        await calling();
        return "it was read";
      } catch (error) {
        return error instanceof Error && "code" in error ? error.code : error;
      }
    };

    it("another master key reads nothing, says so, and the platform's key does not step in", async () => {
      const { dataKey } = await stored();
      const foreign = keysWith(makeMasterKeys([{ id: "other", key: randomBytes(32) }]));
      expect(await codeOf(() => foreign.find(tenantId, "openai"))).to.equal("provider_key_unreadable");
      expect((await foreign.list(tenantId))[0]).to.include({ configured: true, decryptable: false });
      // Also when it claims the id of the right one.
      const liar = keysWith(makeMasterKeys([{ id: dataKey.masterKeyId, key: randomBytes(32) }]));
      expect(await codeOf(() => liar.find(tenantId, "openai"))).to.equal("provider_key_unreadable");
      expect(await codeOf(() => liar.put(tenantId, "openai", second)), "nor is it overwritten").to.equal(
        "provider_key_unreadable",
      );
      expect(await keyUsed(admin)).to.equal(first);
    });

    it("bytes of another tenant, of another provider, cut or changed do not open", async () => {
      const { sealed, record } = await stored();
      const { providerKeys } = test.platform.store;
      const other = await test.platform.tenancy.findTenant("second");
      await stranger.request("PUT", "/ai/providers/openai/key", { body: { key: second } }); // so that it has a data key
      const { config } = test.platform;
      const masterKeys = await openMasterKeys({
        setting: config.identity.masterKey,
        dataDir: config.dataDir,
        mongoUrl: undefined,
      });
      const fields = { preview: record.preview, at: new Date() };
      const cases: [string, string, Buffer][] = [
        [other, "openai", sealed],
        [tenantId, "anthropic", sealed],
        [tenantId, "openai", sealed.subarray(0, -1)],
        [tenantId, "openai", sealed.subarray(0, 20)],
        [tenantId, "openai", Buffer.concat([sealed.subarray(0, 12), Buffer.alloc(16), sealed.subarray(28)])],
        [tenantId, "openai", Buffer.from(sealed.map((byte, n) => (n === 30 ? byte ^ 1 : byte)))],
      ];
      for (const [owner, provider, bytes] of cases) {
        await providerKeys.put(owner, provider, { ...fields, sealed: bytes });
        const fresh = keysWith(masterKeys);
        const name = provider === "anthropic" ? "anthropic" : "openai";
        expect(await codeOf(() => fresh.find(owner, name)), `${owner} ${provider} ${bytes.length}`).to.equal(
          "provider_key_unreadable",
        );
        await providerKeys.remove(owner, provider);
      }
    });
  });
});

describe("MASTER_KEY", () => {
  const base64 = (fill: number) => Buffer.alloc(32, fill).toString("base64");

  it("takes one key, or several with ids, and nothing else", () => {
    expect(parseMasterKeys(base64(1))).to.have.lengthOf(1);
    expect(parseMasterKeys(`new:${base64(1)}, old:${base64(2)}`)?.map(({ id }) => id)).to.deep.equal(["new", "old"]);
    for (const wrong of ["", "abc", base64(1).slice(4), `a:${base64(1)},a:${base64(2)}`, `${base64(1)},`, "x:y:z"]) {
      expect(parseMasterKeys(wrong), wrong).to.equal(null);
    }
  });

  it("its rotation wraps the data keys again and touches no provider key", async () => {
    const env = { MASTER_KEY: `old:${base64(1)}` };
    const test = await startPlatform({ workers: false, env });
    try {
      const { platform } = test;
      const { store } = platform;
      const tenants = ["first", "second"];
      const ids = await Promise.all(tenants.map((name) => platform.tenancy.findTenant(name)));
      for (const tenantId of ids) await platform.providerKeys.put(tenantId, "openai", `${first}-${tenantId}`);
      const before = await Promise.all(ids.map((tenantId) => store.providerKeys.find(tenantId, "openai")));

      const dataKeysOf = (setting: string) =>
        makeDataKeys({ store: store.providerKeys, masterKeys: makeMasterKeys(parseMasterKeys(setting) ?? []) });
      const during = makeProviderKeys({
        store: store.providerKeys,
        dataKeys: dataKeysOf(`new:${base64(2)},old:${base64(1)}`),
        platform: platform.config.gateway,
        logger: platform.logger,
      });
      expect(await during.rewrapAll()).to.deep.equal({ rewrapped: 2, unreadable: 0 });
      expect(await during.rewrapAll(), "run twice").to.deep.equal({ rewrapped: 0, unreadable: 0 });
      const after = await Promise.all(ids.map((tenantId) => store.providerKeys.find(tenantId, "openai")));
      expect(after).to.deep.equal(before);

      const onlyNew = makeProviderKeys({
        store: store.providerKeys,
        dataKeys: dataKeysOf(`new:${base64(2)}`),
        platform: platform.config.gateway,
        logger: platform.logger,
      });
      for (const tenantId of ids) {
        expect((await onlyNew.find(tenantId, "openai"))?.apiKey).to.equal(`${first}-${tenantId}`);
      }
    } finally {
      await test.close();
    }
  });
});
