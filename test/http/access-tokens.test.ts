import { expect } from "chai";
import { exportSPKI, generateKeyPair } from "jose";
import { makeClient } from "../support/http-client.ts";
import { rpc } from "../support/mcp-call.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { startTokenServer, type TokenServer } from "../support/token-server.ts";

const publicUrl = "https://ai.example.com";
const audience = `${publicUrl}/mcp`;
const later = () => Math.floor(Date.now() / 1_000) + 600;

describe("access tokens of the operator's authorization server", function () {
  this.timeout(30_000);
  let tokens: TokenServer;
  let test: TestPlatform;
  before(async () => {
    tokens = await startTokenServer({ audience, tenant: "acme" });
    test = await startPlatform({
      workers: false,
      env: { PUBLIC_URL: publicUrl, AUTH_ISSUER: tokens.issuer },
    });
    await test.platform.tenancy.ensureTenant("acme");
  });
  after(async () => {
    await test?.close();
    await tokens?.close();
  });

  const claims = () => ({
    iss: tokens.issuer,
    aud: audience,
    sub: "ada",
    exp: later(),
    scope: "switchyard:member",
    switchyard_tenant: "acme",
  });
  const clientOf = (key: string) => makeClient({ url: test.url, key });
  const statusOf = async (key: string, path = "/ai/models") => (await clientOf(key).get(path)).status;

  it("are keys of their tenant, on /mcp and elsewhere, with the role of their scope", async () => {
    const member = await tokens.grant("switchyard:member");
    const called = await clientOf(member).post("/mcp", rpc(1, "tools/list"));
    const names = (called.at("result.tools") as { name: string }[]).map(({ name }) => name);
    expect(names).to.include("svc_chat").and.not.to.include("svc_org_create");
    expect([await statusOf(member), await statusOf(member, "/keys")]).to.deep.equal([200, 403]);
    const owner = await tokens.grant("other switchyard:owner");
    expect(
      (await clientOf(owner).get("/keys")).at("data"),
      "the keys of acme, not of the default tenant",
    ).to.deep.equal([]);
    const made = await clientOf(owner).post("/agents", {
      name: "Desk",
      model: "meta-llm",
      systemPrompt: "You answer.",
    });
    expect([made.status, made.at("createdBy")]).to.deep.equal([201, "token:runtime"]);
    const path = `/agents/${made.string("agentId")}`;
    expect(await statusOf(member, path)).to.equal(200);
    expect(await statusOf(test.keys.owner, path), "of another tenant").to.equal(404);
  });

  it("name their tenant also by its id", async () => {
    const token = await tokens.sign({ ...claims(), switchyard_tenant: await tenantOf(test) });
    expect(await statusOf(token)).to.equal(200);
  });

  it("are refused of another issuer, audience, tenant or time, or without what they need", async () => {
    expect(await statusOf(await tokens.sign(claims())), "all as it should be").to.equal(200);
    const { sub: _sub, ...noSubject } = claims();
    const { exp: _exp, ...noEnd } = claims();
    const { switchyard_tenant: _tenant, ...noTenant } = claims();
    for (const [why, wrong] of Object.entries({
      issuer: { ...claims(), iss: "https://evil.example" },
      audience: { ...claims(), aud: "https://other.example/mcp" },
      expired: { ...claims(), exp: later() - 1_200 },
      early: { ...claims(), nbf: later() },
      "no such tenant": { ...claims(), switchyard_tenant: "nobody" },
      "tenant of another form": { ...claims(), switchyard_tenant: ["acme"] },
      noSubject,
      noEnd,
      noTenant,
    })) {
      const token = await tokens.sign(wrong);
      expect(await statusOf(token), why).to.equal(401);
    }
    const scopeless = await clientOf(await tokens.sign({ ...claims(), scope: "other" })).get("/ai/models");
    expect([scopeless.status, scopeless.at("error.code")]).to.deep.equal([403, "insufficient_scope"]);
  });

  it("are refused if their subject is no text of up to 256 characters", async () => {
    for (const sub of [7, ["ada"], { name: "ada" }, "", "a".repeat(257), null]) {
      const token = await tokens.sign({ ...claims(), sub } as unknown as ReturnType<typeof claims>);
      expect(await statusOf(token), JSON.stringify(sub)).to.equal(401);
    }
    expect(await statusOf(await tokens.sign({ ...claims(), sub: "a".repeat(256) }))).to.equal(200);
  });

  it("name their scopes in `scp`, too, as a list or as a text", async () => {
    const { scope: _scope, ...others } = claims();
    for (const scp of ["other switchyard:owner", ["switchyard:owner"]]) {
      expect(await statusOf(await tokens.sign({ ...others, scp }), "/keys"), JSON.stringify(scp)).to.equal(200);
    }
  });

  it("open no session, and make only keys that end with them and stand for nobody's subject", async () => {
    const exp = later();
    const owner = clientOf(await tokens.sign({ ...claims(), exp, scope: "switchyard:owner" }));
    const session = await owner.post("/session", undefined, { headers: { origin: test.url } });
    expect([session.status, session.at("error.code")]).to.deep.equal([403, "insufficient_scope"]);
    expect(session.headers.get("set-cookie")).to.equal(null);
    expect((await owner.get("/me")).at("subject")).to.equal("token:ada");
    const made = await owner.post("/keys", { role: "owner" });
    expect([made.status, made.at("expiresAt")]).to.deep.equal([201, new Date(exp * 1_000).toISOString()]);
    const posed = await owner.post("/keys", { subject: "token:eve" });
    expect([posed.status, posed.at("error.param")]).to.deep.equal([400, "subject"]);
  });

  it("are refused with a signature that is not the server's", async () => {
    const other = await generateKeyPair("RS256", { extractable: true });
    const forged = await tokens.sign(claims(), { key: other.privateKey });
    const spki = new TextEncoder().encode(await exportSPKI(other.publicKey));
    const symmetric = await tokens.sign(claims(), { alg: "HS256", key: spki });
    const [head = "", body = ""] = (await tokens.sign(claims())).split(".");
    const none = Buffer.from(JSON.stringify({ alg: "none" })).toString("base64url");
    for (const token of [forged, symmetric, `${none}.${body}.`, `${none}.${body}.x`, `${head}.${body}.x`]) {
      expect(await statusOf(token), token.slice(0, 40)).to.equal(401);
    }
  });

  it("are announced by a 401 with their server, and by the metadata of the resource", async () => {
    for (const [path, resource] of [
      ["/mcp", "/mcp"],
      ["/ai/models", ""],
    ] as const) {
      const { status, headers } = await makeClient({ url: test.url }).request(path === "/mcp" ? "POST" : "GET", path);
      expect(status).to.equal(401);
      const [, url = ""] = /resource_metadata="([^"]+)"/.exec(headers.get("www-authenticate") ?? "") ?? [];
      expect(url).to.equal(`${publicUrl}/.well-known/oauth-protected-resource${resource}`);
      const { at } = await makeClient({ url: test.url }).get(new URL(url).pathname);
      expect(at("resource")).to.equal(`${publicUrl}${resource}`);
      expect(at("authorization_servers")).to.deep.equal([tokens.issuer]);
      expect(at("scopes_supported")).to.include("switchyard:member");
    }
  });

  it("are refused once the server has another key", async () => {
    const before = await tokens.sign(claims());
    expect(await statusOf(before)).to.equal(200);
    await tokens.rotate();
    const after = await tokens.grant("switchyard:member");
    await pollUntil(async () => (await statusOf(after)) === 200); // the server's keys are read once a second at most
    expect(await statusOf(before)).to.equal(401);
  });
});

describe("access tokens without an authorization server", () => {
  it("are no keys, and the metadata name no server", async () => {
    const test = await startPlatform({ workers: false });
    try {
      const token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln";
      expect((await makeClient({ url: test.url, key: token }).get("/ai/models")).status).to.equal(401);
      const { at } = await makeClient({ url: test.url }).get("/.well-known/oauth-protected-resource/mcp");
      expect([at("resource"), at("authorization_servers")]).to.deep.equal([`${test.url}/mcp`, undefined]);
    } finally {
      await test.close();
    }
  });
});
