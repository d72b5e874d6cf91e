import { expect } from "chai";
import { type AgentUpstream, startAgentUpstream } from "../support/agent-upstream.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";

describe("calls that lead to calls of this service", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let upstream: AgentUpstream;
  let site: ToolServer;
  let member: ApiClient;
  before(async () => {
    [upstream, site] = [await startAgentUpstream(), await startToolServer()];
    const provider = { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: upstream.url, PROVIDER_MAX_ATTEMPTS: "1" };
    test = await startPlatform({ env: { ...provider, FETCH_ALLOW_ORIGINS: site.origin } });
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  after(async () => {
    await test.close();
    await upstream.close();
    await site.close();
  });

  it("are refused beyond three, even with jobs between them", async () => {
    upstream.play(({ turn }) =>
      turn === 1
        ? { calls: [{ name: "http_request", arguments: { url: `${site.origin}/again`, method: "GET" } }] }
        : { text: "Done." },
    );
    const tools = [{ type: "http_request", config: { allowedHosts: [site.host] } }];
    const made = { name: "Loop", model: "gpt-5.4-mini", systemPrompt: "You call yourself.", tools };
    const agentId = (await member.post("/agents", made)).string("agentId");
    const seen: { depth: string; status: number; code: unknown }[] = [];
    // As a proxy before this service, which hands on what it gets.
    site.on("/again", async (request, response) => {
      const depth = String(request.headers["x-svc-depth"]);
      const headers = { "x-svc-depth": depth };
      const answer = await member.post(`/agents/${agentId}/run`, { input: "Again." }, { headers });
      seen.push({ depth, status: answer.status, code: answer.at("error.code") });
      response.writeHead(200, { "content-type": "text/plain" }).end("called");
    });
    const answer = await member.post(`/agents/${agentId}/run`, { input: "Do it." });
    expect(answer.status, answer.text).to.equal(200);
    expect(seen).to.deep.equal([
      { depth: "4", status: 400, code: "call_too_deep" },
      ...["3", "2", "1"].map((depth) => ({ depth, status: 200, code: undefined })),
    ]);
  });

  it("refuse nobody but the caller that says so, in the form of the path", async () => {
    const ask = { model: "switchyard-offline", messages: [{ role: "user", content: "Hello." }] };
    for (const path of ["/ai/chat", "/v1/chat/completions"]) {
      const refused = await member.post(path, ask, { headers: { "x-svc-depth": "999" } });
      expect([refused.status, refused.at("error.code")], path).to.deep.equal([400, "call_too_deep"]);
      for (const odd of ["", "-1", "1e9", "abc"]) {
        expect((await member.post(path, ask, { headers: { "x-svc-depth": odd } })).status, odd).to.equal(200);
      }
    }
  });
});
