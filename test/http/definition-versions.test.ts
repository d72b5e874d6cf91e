import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

describe("versions of definitions", () => {
  let test: TestPlatform;
  let owner: ApiClient;
  let member: ApiClient;
  before(async () => {
    test = await startPlatform();
    owner = makeClient({ url: test.url, key: test.keys.owner });
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test.close());

  const put = (path: string, body: object) => owner.request("PUT", path, { body });
  const agent = { name: "Desk", model: "meta-llm", systemPrompt: "First." };
  const steps = (message: string) => ({
    name: "Desk",
    steps: [{ type: "human_approval", assigneeRole: "owner", message }],
  });
  type Version = { version: number; by?: string; at: string; bytes: number };
  const versionsOf = async (path: string) => (await owner.get(`${path}/versions`)).at("data") as Version[];

  it("are listed with who wrote them, read and restored, of agents", async () => {
    const made = await member.post("/agents", agent);
    const path = `/agents/${made.string("agentId")}`;
    await put(path, { ...agent, systemPrompt: "Second.", publish: { name: "desk", description: "Asks." } });
    const run = await owner.post(`${path}/run`, { input: "When?" });
    await put(path, { ...agent, systemPrompt: "Third." });
    const versions = await versionsOf(path);
    expect(versions.map(({ version, by }) => [version, by])).to.deep.equal([
      [3, "owner@test"],
      [2, "owner@test"],
      [1, "member@test"],
    ]);
    const runs = (await owner.get(`${path}/runs`)).at("data[0]");
    expect(runs).to.include({ runId: run.string("runId"), agentVersion: 2 });
    expect((await owner.get(`${path}/versions/2`)).body).to.include({ systemPrompt: "Second.", version: 2 });
    const restored = await owner.post(`${path}/versions/1/restore`);
    expect(restored.body).to.include({ systemPrompt: "First.", version: 4, createdBy: "member@test" });
    expect((await owner.get(path)).body).to.deep.equal(restored.body);
    const current = await owner.post(`${path}/versions/4/restore`);
    expect([current.status, current.at("error.code")]).to.deep.equal([409, "wrong_state"]);
    for (const version of ["5", "0", "-1", "x", "1.5", "9999999999"]) {
      expect((await owner.get(`${path}/versions/${version}`)).status, version).to.equal(404);
    }
  });

  it("are restored with the secret headers of their tools", async () => {
    const tool = (token: string) => ({
      type: "http_request",
      config: { allowedHosts: ["desk.example.com"], headers: { authorization: `Bearer ${token}` } },
    });
    const made = await owner.post("/agents", { ...agent, tools: [tool("first-secret-of-the-desk-1111")] });
    const path = `/agents/${made.string("agentId")}`;
    await put(path, { ...agent, tools: [tool("second-secret-of-the-desk-2222")] });
    const old = await owner.get(`${path}/versions/1`);
    expect(old.at("tools[0].config.headers.authorization")).to.equal("Bearer …1111");
    expect(old.text).not.to.contain("secret");
    const restored = await owner.post(`${path}/versions/1/restore`);
    expect(restored.at("tools[0].config.headers.authorization")).to.equal("Bearer …1111");
    const tenantId = (await owner.get("/me")).string("tenantId");
    const stored = await test.platform.store.agents.get(tenantId, made.string("agentId"));
    const first = await test.platform.store.definitionVersions.find(tenantId, made.string("agentId"), 1);
    const headers = stored?.definition.tools[0]?.config.headers;
    expect(JSON.parse(first?.text ?? "{}").definition.tools[0].config.headers).to.deep.equal(headers);
  });

  it("keep a credential that was sent back as its preview only for the addresses that had it", async () => {
    const secret = "Bearer first-secret-of-the-desk-1111";
    const preview = "Bearer …1111";
    const http = (allowedHosts: string[], authorization: string) => ({
      type: "http_request",
      config: { allowedHosts, headers: { authorization, "x-user": "{{context.user}}" } },
    });
    const mcp = (url: string, authorization: string) => ({ type: "mcp", config: { url, headers: { authorization } } });
    const hosts = ["desk.example.com", "docs.example.com"];
    const moves = [
      [http(hosts, secret), http(["desk.example.com"], preview), 200],
      [http(hosts, secret), http([...hosts, "evil.example.com"], preview), 400],
      [http(hosts, secret), http(["http://desk.example.com"], preview), 400],
      [http(hosts, secret), { ...mcp("https://evil.example.com/mcp", preview), name: "http_request" }, 400],
      [mcp("https://desk.example.com/mcp", secret), mcp("https://desk.example.com/v2", preview), 200],
      [mcp("https://desk.example.com/mcp", secret), mcp("https://desk.example.com:8443/mcp", preview), 400],
      [mcp("https://desk.example.com/mcp", secret), mcp("https://desk.example.com.evil.example/mcp", preview), 400],
      [mcp("https://desk.example.com/mcp", secret), mcp("https://evil.example.com/mcp", "Bearer my-own"), 200],
    ] as const;
    for (const [before, after, status] of moves) {
      const made = await owner.post("/agents", { ...agent, tools: [before] });
      const path = `/agents/${made.string("agentId")}`;
      const changed = await put(path, { ...agent, tools: [after] });
      expect(changed.status, JSON.stringify(after)).to.equal(status);
      if (status === 200) continue;
      expect(changed.at("error.param")).to.equal("tools[0].config.headers.authorization");
      expect((await owner.get(path)).at("version")).to.equal(1);
    }
  });

  it("are checked when they are restored, and only by who may change the definition", async () => {
    const published = { ...agent, publish: { name: "taken", description: "Asks." } };
    const path = `/agents/${(await owner.post("/agents", published)).string("agentId")}`;
    await put(path, agent);
    await owner.post("/agents", published);
    const refused = await owner.post(`${path}/versions/1/restore`);
    expect([refused.status, refused.at("error.param")]).to.deep.equal([409, "publish.name"]);
    const others = await member.post(`${path}/versions/1/restore`);
    expect([others.status, others.at("error.code")]).to.deep.equal([403, "insufficient_role"]);
    expect((await member.get(`${path}/versions/1`)).status).to.equal(200);
    expect((await owner.get(path)).at("version")).to.equal(2);
  });

  it("are limited to 20 and to 2 MiB for a workflow, and are deleted with it", async () => {
    const path = `/workflows/${(await owner.post("/workflows", steps("0"))).string("workflowId")}`;
    for (let n = 1; n <= 22; n += 1) await put(path, steps(`${n}`));
    const versions = await versionsOf(path);
    expect(versions.map(({ version }) => version)).to.deep.equal(Array.from({ length: 20 }, (_, at) => 23 - at));
    expect((await owner.get(`${path}/versions/3`)).status).to.equal(404);
    expect((await owner.get(`${path}/versions/4`)).at("steps[0].message")).to.equal("3");
    const large = `${"x".repeat(9_000)}`;
    const many = Array.from({ length: 25 }, () => ({ type: "human_approval", assigneeRole: "owner", message: large }));
    for (let n = 0; n < 11; n += 1) expect((await put(path, { name: `${n}`, steps: many })).status).to.equal(200);
    const kept = await versionsOf(path);
    expect(kept.reduce((sum, { bytes }) => sum + bytes, 0)).to.be.within(1 << 20, 2 << 20);
    expect(kept[0]?.version).to.equal(34);
    const restored = await owner.post(`${path}/versions/${kept.at(-1)?.version}/restore`);
    expect(restored.at("version")).to.equal(35);
    const id = path.split("/").at(-1) ?? "";
    const tenantId = (await owner.get("/me")).string("tenantId");
    await owner.delete(path);
    expect((await owner.get(`${path}/versions`)).status).to.equal(404);
    expect(await test.platform.store.definitionVersions.list(tenantId, id)).to.deep.equal([]);
  });

  it("start with the current one of a definition that an earlier release wrote", async () => {
    const path = `/workflows/${(await owner.post("/workflows", steps("a"))).string("workflowId")}`;
    await put(path, steps("b"));
    const tenantId = (await owner.get("/me")).string("tenantId");
    await test.platform.store.definitionVersions.removeAll(tenantId, path.split("/").at(-1) ?? "");
    expect((await versionsOf(path)).map(({ version, by }) => [version, by])).to.deep.equal([[2, undefined]]);
    await put(path, steps("c"));
    expect((await versionsOf(path)).map(({ version, by }) => [version, by])).to.deep.equal([
      [3, "owner@test"],
      [2, undefined],
    ]);
    expect((await owner.get(`${path}/versions/2`)).at("steps[0].message")).to.equal("b");
  });
});
