import { expect } from "chai";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { rpc } from "../support/mcp-call.ts";
import { metaOf, postStateless } from "../support/mcp-stateless.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const versionKey = "io.modelcontextprotocol/protocolVersion";
const capabilitiesKey = "io.modelcontextprotocol/clientCapabilities";

describe("the tool server in the revision 2026-07-28", () => {
  let test: TestPlatform;
  let member: ApiClient;
  before(async () => {
    test = await startPlatform({ workers: false });
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test.close());

  const send = (...[method, params, options]: [string, object?, Parameters<typeof postStateless>[3]?]) =>
    postStateless(member, method, { ...params }, options);

  it("discovers what an initialize said before", async () => {
    const { status, at } = await send("server/discover");
    expect(status).to.equal(200);
    expect(at("result.supportedVersions")).to.deep.equal([
      "2026-07-28",
      "2025-11-25",
      "2025-06-18",
      "2025-03-26",
      "2024-11-05",
    ]);
    expect(at("result.resultType")).to.equal("complete");
    expect(at("result.capabilities.tools")).to.deep.equal({});
    expect(at("result._meta"))
      .to.have.property("io.modelcontextprotocol/serverInfo")
      .that.includes({ name: "switchyard" });
    expect([at("result.ttlMs"), at("result.cacheScope")]).to.deep.equal([60_000, "private"]);
  });

  it("lists and calls tools without any handshake", async () => {
    const listed = await send("tools/list");
    expect([listed.at("result.resultType"), listed.at("result.cacheScope")]).to.deep.equal(["complete", "private"]);
    const tools = listed.at("result.tools") as { name: string; outputSchema?: object }[];
    expect(tools.find(({ name }) => name === "svc_chat")?.outputSchema).to.include({ type: "object" });
    const { status, at } = await send("tools/call", { name: "svc_rag_query", arguments: { query: "pump" } });
    expect([status, at("result.resultType")]).to.deep.equal([200, "complete"]);
    expect(at("result.structuredContent")).to.deep.equal({ results: [], coverage: 0 });
  });

  it("needs the revision and the client's capabilities with each request", async () => {
    const whole = metaOf();
    for (const meta of [undefined, {}, "x", { [versionKey]: whole[versionKey] }, { [capabilitiesKey]: {} }]) {
      const { status, at } = await send("server/discover", { _meta: meta });
      expect([status, at("id"), at("error.code")], JSON.stringify(meta)).to.deep.equal([400, 1, -32_602]);
    }
  });

  it("refuses a revision that it does not speak, and names those that it does", async () => {
    for (const version of ["v999.0.0", "2025-11-25"]) {
      const headers = { "mcp-protocol-version": version };
      const { status, at } = await send("server/discover", { _meta: metaOf({}, version) }, { headers });
      expect([status, at("error.code"), at("error.data.requested")]).to.deep.equal([400, -32_022, version]);
      expect(at("error.data.supported")).to.include.members(["2026-07-28", "2024-11-05"]);
    }
  });

  it("refuses headers that do not repeat the body", async () => {
    const call = { name: "svc_health", arguments: {} };
    const cases: [string, object, Record<string, string | null>][] = [
      ["server/discover", {}, { "mcp-protocol-version": null }],
      ["server/discover", {}, { "mcp-protocol-version": "2025-11-25" }],
      ["tools/list", {}, { "mcp-method": null }],
      ["tools/list", {}, { "mcp-method": "TOOLS/LIST" }],
      ["tools/call", call, { "mcp-name": null }],
      ["tools/call", call, { "mcp-name": "svc_chat" }],
      ["tools/call", call, { "mcp-name": "=?base64?c3ZjX2hlYWx0a?=" }],
      ["tasks/get", { taskId: "a" }, { "mcp-name": "b" }],
    ];
    for (const [method, params, headers] of cases) {
      const { status, at } = await send(method, params, { headers });
      expect([status, at("id"), at("error.code")], JSON.stringify(headers)).to.deep.equal([400, 1, -32_020]);
    }
    const encoded = { "mcp-name": `=?base64?${Buffer.from("svc_health").toString("base64")}?=` };
    expect((await send("tools/call", call, { headers: encoded })).at("result.resultType")).to.equal("complete");
  });

  it("has no method of the handshake, each a 404", async () => {
    for (const method of ["initialize", "ping", "logging/setLevel", "resources/list", "prompts/list", "no/such"]) {
      const { status, at } = await send(method);
      expect([status, at("id"), at("error.code")], method).to.deep.equal([404, 1, -32_601]);
    }
  });

  it("stays a 200 for the errors of a tool", async () => {
    const unknown = await send("tools/call", { name: "svc_no_such" });
    expect([unknown.status, unknown.at("error.code")]).to.deep.equal([200, -32_602]);
    const failed = await send("tools/call", { name: "svc_org_create", arguments: { name: "Mine" } });
    expect([failed.status, failed.at("result.isError"), failed.at("result.resultType")]).to.deep.equal([
      200,
      true,
      "complete",
    ]);
    expect(valueAt(failed.body, "result.structuredContent")).to.equal(undefined);
  });

  it("keeps the eras apart: discovery is unknown to those before", async () => {
    const { status, at } = await member.post("/mcp", rpc(1, "server/discover"));
    expect([status, at("error.code")]).to.deep.equal([200, -32_601]);
  });
});
