import type { ServerResponse } from "node:http";
import { expect } from "chai";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";
import { startOddMcpServer } from "../support/odd-mcp-server.ts";

const inputSchema = { type: "object", properties: { x: { type: "string" } } };
const tools: unknown[] = [
  { name: "good", description: "Works.", inputSchema },
  { name: "no_schema" },
  { name: "of_a_text", inputSchema: { type: "string" } },
  { name: "odd_fields", inputSchema: { type: "object", properties: [1] } },
  { inputSchema },
  "nonsense",
  { name: "plain", description: null, inputSchema: { properties: {} }, annotations: 7 },
];

const stream = { "content-type": "text/event-stream" };
const long = `data: ${"x".repeat(6 << 20)}\n\n`;

describe("an agent and an MCP server that deviates", function () {
  this.timeout(60_000);
  let harness: AgentHarness;
  let server: Awaited<ReturnType<typeof startOddMcpServer>>;
  let result: unknown;
  let hasLost = false;
  const raw: Record<string, (response: ServerResponse) => void> = {};
  before(async () => {
    server = await startOddMcpServer({ "tools/list": () => ({ tools }), "tools/call": () => result }, raw);
    harness = await openAgentHarness({ FETCH_ALLOW_ORIGINS: server.origin });
  });
  after(async () => {
    await harness?.close();
    await server?.close();
  });

  /** Runs an agent whose model calls the tool `good` once; the run, and the names of the tools that it was given. */
  const run = async (content: unknown) => {
    result = content;
    let given: string[] = [];
    harness.upstream.play(({ turn, tools }) => {
      given = tools.map(({ function: { name } }) => name);
      if (turn === 1 && hasLost) server.endSession();
      return turn === 1 ? { calls: [{ name: "odd_good", arguments: { x: "1" } }] } : { text: "Done." };
    });
    const { member, model } = harness;
    const spec = { type: "mcp", name: "odd", config: { url: server.url } };
    const agentId = (
      await member.post("/agents", { name: "Desk", model, systemPrompt: "Help.", tools: [spec] })
    ).string("agentId");
    const ran = await member.post(`/agents/${agentId}/run`, { input: "Go." });
    expect(ran.status, ran.text).to.equal(200);
    return { read: await member.get(`/agents/${agentId}/runs/${ran.string("runId")}`), given };
  };

  it("uses the tools that are well formed, and names the others in the run's log", async () => {
    const { read, given } = await run({ content: [{ type: "text", text: "fine" }] });
    expect(given).to.deep.equal(["odd_good", "odd_plain"]);
    expect(read.at("steps[0].observation")).to.equal("fine");
    const [notice] = read.at("notices") as string[];
    expect(notice).to.match(/no_schema, of_a_text, odd_fields, no\. 5, no\. 6$/);
    expect(read.at("integrity.verified")).to.equal(true);
  });

  it("keeps content of kinds that it does not know as JSON, within bounds, and of bytes the kind", async () => {
    const odd = { type: "chart", series: [1, 2] };
    const image = { type: "image", data: "AAAA", mimeType: "image/png" };
    const { read } = await run({
      content: [odd, { type: "text", text: "and" }, image, { type: "huge", rows: "x".repeat(50_000) }],
    });
    const [first, second, third, last = ""] = read.string("steps[0].observation").split("\n");
    expect([first, second, third]).to.deep.equal([JSON.stringify(odd), "and", "[image]"]);
    expect(last.length).to.be.within(4_000, 6_000);
  });

  const html = { "content-type": "text/html" };
  for (const [name, respond] of [
    ["with a 500", (response) => response.writeHead(500, html).end("<p>Oops</p>")],
    ["with a 404", (response) => response.writeHead(404, html).end("<p>Nothing</p>")],
    ["with a page", (response) => response.writeHead(200, html).end("<p>Welcome</p>")],
    ["with a 202", (response) => response.writeHead(202).end()],
    ["with no JSON", (response) => response.writeHead(200, { "content-type": "application/json" }).end("{")],
  ] as [string, (response: ServerResponse) => void][]) {
    it(`takes a server that answers the question for its era ${name} for one with a handshake`, async () => {
      raw["server/discover"] = respond;
      const { read } = await run({ content: [{ type: "text", text: "fine" }] });
      expect(read.at("steps[0].observation")).to.equal("fine");
    });
  }

  for (const [name, respond] of [
    ["taken for a notification", (response) => response.writeHead(202).end()],
    ["answered by a stream without a result", (response) => response.writeHead(200, stream).end(": none\n\n")],
    ["answered by a stream that is too long", (response) => response.writeHead(200, stream).end(long)],
  ] as [string, (response: ServerResponse) => void][]) {
    it(`does not wait for a call that is ${name}`, async () => {
      raw["tools/call"] = respond;
      const { read } = await run({});
      delete raw["tools/call"];
      expect(read.at("steps[0].isError")).to.equal(true);
      expect(read.string("steps[0].observation").length).to.be.below(300);
    });
  }

  it("answers no more than a hundred requests of the server", async () => {
    const pings = Array.from(
      { length: 2_000 },
      (_, id) => `data: ${JSON.stringify({ jsonrpc: "2.0", id, method: "ping" })}\n\n`,
    );
    raw["tools/call"] = (response) => response.writeHead(200, stream).end(pings.join(""));
    server.methods.length = 0;
    const { read } = await run({});
    delete raw["tools/call"];
    expect(read.at("steps[0].isError")).to.equal(true);
    const answers = server.methods.filter((method) => method === undefined);
    expect(answers.length).to.be.within(1, 100);
  });

  it("starts a session again once after it has ended", async () => {
    hasLost = true;
    for (const method of Object.keys(raw)) delete raw[method];
    server.methods.length = 0;
    const { read } = await run({ content: [{ type: "text", text: "back" }] });
    expect(read.at("steps[0].observation")).to.equal("back");
    expect(server.methods.filter((method) => method === "initialize")).to.have.length(2);
  });
});
