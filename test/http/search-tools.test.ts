import { expect } from "chai";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { rpc, toolCall } from "../support/mcp-call.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const headers = { "mcp-protocol-version": "2025-11-25" };
const description = "Searches the manuals.";
const agent = { name: "Desk", model: "meta-llm", systemPrompt: "You answer." };
const workflow = { name: "Desk", steps: [{ type: "rag_query", query: "x" }] };

describe("sets of documents that are tools of the tool server", () => {
  let test: TestPlatform;
  let member: ApiClient;
  let admin: ApiClient;
  let stranger: ApiClient;
  /** Documents by their names. */
  const ids: Record<string, string> = {};
  before(async () => {
    test = await startPlatform();
    const { keys, url } = test;
    [member, admin, stranger] = [keys.member, keys.admin, keys.stranger].map((key) => makeClient({ url, key })) as [
      ApiClient,
      ApiClient,
      ApiClient,
    ];
    for (const [name, more] of Object.entries({
      pump: { collection: "pumps", metadata: { site: "north" } },
      valve: { collection: "pumps", metadata: { site: "south" } },
      crane: { collection: "cranes", metadata: { site: "north" } },
    })) {
      const content = `The ${name} is checked before the season.`;
      const loaded = await member.post("/rag/ingest", { content, ...more }, { headers: { prefer: "wait=30" } });
      ids[name] = loaded.string("documentId");
    }
  });
  after(() => test?.close());

  const publish = (body: object, client = member) => client.post("/rag/tools", { description, ...body });
  const put = (toolId: string, body: object, client = member) =>
    client.request("PUT", `/rag/tools/${toolId}`, { body: { description, ...body } });
  const find = async (name: string, client = member) => {
    const listed = await client.post("/mcp", rpc(1, "tools/list"), { headers });
    return (listed.at("result.tools") as { name: string }[]).find((tool) => tool.name === name);
  };
  const call = (name: string, given: object, client = member) =>
    client.post("/mcp", toolCall(1, name, given), { headers });
  /** The documents that a tool finds, by their names. */
  const search = async (name: string, client = member) => {
    const found = await call(name, { query: "What is checked before the season?" }, client);
    const results = found.at("result.structuredContent.results") as { documentId: string }[];
    return results.map(({ documentId }) => Object.keys(ids).find((each) => ids[each] === documentId)).sort();
  };
  const codeOf = async (response: ReturnType<typeof call>) => (await response).at("error.code");

  it("search documents by id, by a filter, and by collection", async () => {
    const made = await publish({ name: "by_id", documentIds: [ids.pump, ids.crane] });
    expect([made.status, made.at("documentIds")]).to.deep.equal([201, [ids.pump, ids.crane]]);
    await publish({ name: "by_filter", filter: { site: "north" } });
    await publish({ name: "by_collection", collection: "pumps" });
    await publish({ name: "by_all", collection: ["pumps", "cranes"], filter: { site: "south" }, topK: 1 });
    expect(await search("by_id")).to.deep.equal(["crane", "pump"]);
    expect(await search("by_filter")).to.deep.equal(["crane", "pump"]);
    expect(await search("by_collection")).to.deep.equal(["pump", "valve"]);
    expect(await search("by_all")).to.deep.equal(["valve"]);
    expect(await find("by_id")).to.deep.include({ name: "by_id", title: "by_id", description });
  });

  it("take a query and no more than a query has", async () => {
    await publish({ name: "first_only", topK: 1, collection: "pumps" });
    expect(await search("first_only")).to.have.lengthOf(1);
    const both = await call("first_only", { query: "What is checked?", topK: 2 });
    expect(both.at("result.structuredContent.results")).to.have.lengthOf(2);
    for (const [given, path] of [
      [{}, "query"],
      [{ query: 7 }, "query"],
      [{ query: "x", topK: 101 }, "topK"],
    ] as const) {
      const { at } = await call("first_only", given);
      expect([at("error.code"), at("error.data[0].path")]).to.deep.equal([-32_602, path]);
    }
    const wider = await call("first_only", { query: "What is checked?", documentIds: [ids.crane] });
    expect(wider.at("result.structuredContent._ignored")).to.deep.equal(["documentIds"]);
    expect(wider.at("result.structuredContent.results[0].documentId")).not.to.equal(ids.crane);
  });

  it("are listed, renamed and withdrawn, by members their own and by admins all", async () => {
    const toolId = (await publish({ name: "old_name", collection: "pumps" }, admin)).string("toolId");
    const listed = (await member.get("/rag/tools")).at("data") as { toolId: string; name: string }[];
    expect(listed.find((tool) => tool.toolId === toolId)?.name).to.equal("old_name");
    expect((await put(toolId, { name: "new_name" })).at("error.code"), "another's").to.equal("insufficient_role");
    expect((await put(toolId, { name: "new_name", version: 7 }, admin)).status).to.equal(409);
    expect(await find("old_name"), "a refused change").to.be.an("object");
    const renamed = await put(toolId, { name: "new_name" }, admin);
    expect([renamed.status, renamed.at("version"), renamed.at("collection")]).to.deep.equal([200, 2, undefined]);
    expect([await find("old_name"), valueAt(await find("new_name"), "name")]).to.deep.equal([undefined, "new_name"]);
    expect((await publish({ name: "old_name" })).status, "a name that is free again").to.equal(201);
    expect((await admin.delete(`/rag/tools/${toolId}`)).status).to.equal(204);
    expect(await find("new_name")).to.equal(undefined);
    expect(await codeOf(call("new_name", { query: "x" }))).to.equal(-32_602);
    expect((await member.get(`/rag/tools/${toolId}`)).status).to.equal(404);
  });

  it("are bounded, and refused by the field", async () => {
    for (const [body, param] of [
      [{ name: "svc_search" }, "name"],
      [{ name: "a b" }, "name"],
      [{ name: "long", description: "x".repeat(1_025) }, "description"],
      [{ name: "many", documentIds: new Array(1_001).fill(ids.pump) }, "documentIds"],
      [{ name: "odd", colection: "pumps" }, "body"],
    ] as const) {
      const { status, at } = await publish(body);
      expect([status, at("error.param")], JSON.stringify(body).slice(0, 80)).to.deep.equal([400, param]);
    }
  });

  it("belong to their tenant, and to keys that may use their collections", async () => {
    const toolId = (await publish({ name: "pumps_only", collection: "pumps" })).string("toolId");
    await publish({ name: "everything" });
    expect(await find("pumps_only", stranger)).to.equal(undefined);
    expect(await codeOf(call("pumps_only", { query: "x" }, stranger))).to.equal(-32_602);
    const made = await makeClient({ url: test.url, key: test.keys.owner }).post("/keys", { collections: ["cranes"] });
    const limited = makeClient({ url: test.url, key: made.string("key") });
    expect(await find("pumps_only", limited)).to.equal(undefined);
    expect(await codeOf(call("pumps_only", { query: "x" }, limited))).to.equal(-32_602);
    expect((await limited.get(`/rag/tools/${toolId}`)).status).to.equal(404);
    expect((await limited.delete(`/rag/tools/${toolId}`)).status).to.equal(404);
    expect((await limited.get("/rag/tools")).text).not.to.contain(toolId);
    expect((await publish({ name: "foreign", collection: "pumps" }, limited)).at("error.code")).to.equal(
      "insufficient_scope",
    );
    expect(await search("everything", limited)).to.deep.equal(["crane"]);
  });

  describe("and the names of tools", () => {
    const publishAs = (name: string) => [
      () => publish({ name }),
      () => member.post("/agents", { ...agent, publish: { name, description } }),
      () => member.post("/workflows", { ...workflow, publish: { name, description } }),
    ];

    it("exist once among all kinds, even if several are published at the same instant", async () => {
      for (let round = 0; round < 2; round += 1) {
        const writes = [...publishAs(`same_${round}`), ...publishAs(`same_${round}`)];
        const made = await Promise.all(writes.map((write) => write()));
        expect(made.map(({ status }) => status).sort()).to.deep.equal([201, 409, 409, 409, 409, 409]);
      }
    });

    it("are free again if their definition could not be written, or if its writer died", async () => {
      const { toolNames } = test.platform.store;
      const tenantId = await tenantOf(test);
      await toolNames.claim(tenantId, { name: "at_work", ownerId: "agt_x" });
      await toolNames.claim(tenantId, { name: "left_behind", ownerId: "agt_x", claimedAt: new Date(0) });
      for (const write of publishAs("at_work")) expect((await write()).status).to.equal(409);
      expect((await publish({ name: "left_behind" })).status).to.equal(201);
      const broken = {
        ...workflow,
        steps: [{ type: "rag_query", query: "{{ x" }],
        publish: { name: "free", description },
      };
      expect((await member.post("/workflows", broken)).status).to.equal(400);
      expect((await publish({ name: "free" })).status).to.equal(201);
    });
  });
});
