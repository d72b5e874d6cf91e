import { once } from "node:events";
import { request } from "node:http";
import { expect } from "chai";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { callTool, readToolResult, rpc, toolCall } from "../support/mcp-call.ts";
import { pollUntil } from "../support/poll-until.ts";
import { beginPost } from "../support/raw-http.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { hostPid } from "../support/service-pids.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const json = { "content-type": "application/json" };
const ping = rpc(1, "ping");
const note = { jsonrpc: "2.0", method: "notifications/initialized" };

describe("the tool server on the wire", () => {
  let test: TestPlatform;
  let member: ApiClient;
  before(async () => {
    test = await startPlatform({ workers: false, env: { ALLOWED_HOSTS: "ai.example.com, other.example:8443" } });
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test.close());

  const post = (body: unknown, headers: Record<string, string> = {}) => member.post("/mcp", body, { headers });
  const postText = (raw: string, headers: Record<string, string> = json) =>
    member.request("POST", "/mcp", { raw, headers });

  const initialize = (protocolVersion: unknown) =>
    rpc(0, "initialize", { protocolVersion, capabilities: {}, clientInfo: { name: "test", version: "1" } });

  it("agrees on the revision that a client offers, or on the newest one that starts with it", async () => {
    const offers = [
      ["2024-11-05", "2024-11-05"],
      ["2025-03-26", "2025-03-26"],
      ["2025-06-18", "2025-06-18"],
      ["2025-11-25", "2025-11-25"],
      ["2026-07-28", "2025-11-25"],
      ["2099-01-01", "2025-11-25"],
      ["1", "2025-11-25"],
      [undefined, "2024-11-05"],
    ];
    for (const [offered, agreed] of offers) {
      const { status, at, headers } = await post(initialize(offered));
      expect(status).to.equal(200);
      expect(headers.get("content-type")).to.match(/^application\/json/);
      expect(at("id")).to.equal(0);
      expect(at("result.protocolVersion"), offered).to.equal(agreed);
      expect(at("result.capabilities.tools")).to.deep.equal({});
      expect(at("result.serverInfo.name")).to.equal("switchyard");
    }
  });

  it("answers requests without any session or initialize, under the header of a revision that it speaks", async () => {
    for (const revision of ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]) {
      const headers = { "mcp-session-id": "of-another-process", "mcp-protocol-version": revision };
      expect((await post(ping, headers)).body).to.deep.equal({ jsonrpc: "2.0", id: 1, result: {} });
    }
    const { status, at } = await post(ping, { "mcp-protocol-version": "2099-01-01" });
    expect([status, at("id"), at("error.code"), at("error.data.requested")]).to.deep.equal([
      400,
      1,
      -32_022,
      "2099-01-01",
    ]);
  });

  it("takes batches of the revisions that have them alone", async () => {
    for (const revision of ["2024-11-05", "2025-03-26"]) {
      const { status, body } = await post([ping], { "mcp-protocol-version": revision });
      expect([status, body], revision).to.deep.equal([200, [{ jsonrpc: "2.0", id: 1, result: {} }]]);
    }
    for (const revision of ["2025-06-18", "2025-11-25", "2026-07-28"]) {
      const { status, at } = await post([ping], { "mcp-protocol-version": revision });
      expect([status, at("id"), at("error.code")], revision).to.deep.equal([400, null, -32_600]);
    }
  });

  it("shows only the fields of tools and results that each revision knows", async () => {
    const shown = async (revision?: string) => {
      const headers: Record<string, string> = revision === undefined ? {} : { "mcp-protocol-version": revision };
      const listed = await post(rpc(1, "tools/list"), headers);
      const tools = listed.at("result.tools") as Record<string, unknown>[];
      const called = await post(toolCall(2, "svc_rag_query", { query: "pump" }), headers);
      const text = JSON.parse(called.string("result.content[0].text"));
      const structured = called.at("result.structuredContent");
      if (structured !== undefined) expect(structured).to.deep.equal(text);
      const search = tools.find(({ name }) => name === "svc_rag_query") ?? {};
      expect(valueAt(search, "annotations.readOnlyHint")).to.equal(true);
      expect(valueAt(search, "inputSchema.type")).to.equal("object");
      return [search.title, valueAt(search, "outputSchema.type"), structured === undefined ? undefined : "structured"];
    };
    const plain = [undefined, undefined, undefined];
    const rich = ["Search the documents", "object", "structured"];
    expect(await shown()).to.deep.equal(plain);
    expect(await shown("2025-03-26")).to.deep.equal(plain);
    expect(await shown("2025-06-18")).to.deep.equal(rich);
    expect(await shown("2025-11-25")).to.deep.equal(rich);
  });

  it("echoes ids that are 0, negative, empty and long strings", async () => {
    for (const id of [0, -7, 1.5, "", "0", "a".repeat(300), "ümläut"]) {
      expect((await post(rpc(id, "ping"))).body).to.deep.equal({ jsonrpc: "2.0", id, result: {} });
    }
  });

  it("refuses ids that MCP does not know, as null, in an answer of status 200", async () => {
    for (const id of [null, true, {}, [1]]) {
      const { status, at } = await post(rpc(id, "ping"));
      expect([status, at("id"), at("error.code")]).to.deep.equal([200, null, -32_600]);
    }
  });

  it("takes any Accept", async () => {
    for (const accept of ["*/*", "application/json", "text/event-stream", "application/json, text/event-stream"]) {
      const { status, headers } = await post(ping, { accept });
      expect([status, headers.get("content-type")?.split(";")[0]]).to.deep.equal([200, "application/json"]);
    }
  });

  it("acknowledges notifications and responses with 202 and no body", async () => {
    const silent = [note, { jsonrpc: "2.0", id: 4, result: {} }, { jsonrpc: "2.0", id: null, error: { code: 1 } }];
    const unknown = { jsonrpc: "2.0", method: "notifications/no-such" };
    for (const body of [...silent, unknown, silent]) {
      const { status, text } = await post(body);
      expect([status, text]).to.deep.equal([202, ""]);
    }
  });

  it("runs no tool for a call without an id, whose result could not be returned", async () => {
    const before = await test.platform.store.organizations.countFounded(await tenantOf(test), 100);
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const { id: _, ...call } = toolCall(1, "svc_org_create", { name: "Silent" }) as { id: unknown };
    expect((await owner.post("/mcp", call)).status).to.equal(202);
    expect(await test.platform.store.organizations.countFounded(await tenantOf(test), 100)).to.equal(before);
  });

  it("answers a batch in its order, without the notifications in it", async () => {
    const batch = [rpc("a", "ping"), note, rpc(0, "no/such"), 7, rpc(2, "tools/list"), { jsonrpc: "2.0", id: 9 }];
    const { status, body } = await post(batch);
    expect(status).to.equal(200);
    const reported = (body as object[]).map((each) => [valueAt(each, "id"), valueAt(each, "error.code")]);
    expect(reported).to.deep.equal([
      ["a", undefined],
      [0, -32_601],
      [null, -32_600],
      [2, undefined],
      [9, -32_600],
    ]);
    expect((await post([ping])).body, "a batch of one").to.deep.equal([{ jsonrpc: "2.0", id: 1, result: {} }]);
  });

  it("lists its tools once in a batch", async () => {
    const { status, at, text } = await post([rpc(1, "tools/list"), ping, rpc(2, "tools/list")]);
    expect([status, at("id"), at("error.code")]).to.deep.equal([200, null, -32_600]);
    expect(text.length).to.be.below(200);
  });

  it("refuses a batch that is too long by one error, however many messages it holds", async () => {
    const pings = Array.from({ length: 51 }, (_, id) => rpc(id, "ping"));
    const zeros = (count: number) => [ping, ...Array(count).fill(0)];
    for (const [batch, code] of [
      [pings, 200],
      [zeros(150_000), 200],
      [zeros(500_000), 400], // so many items are not even parsed
      [Array(51).fill(note), 200],
    ] as const) {
      const { status, at, text } = await post(batch);
      expect([status, at("id"), at("error.code")]).to.deep.equal([code, null, -32_600]);
      expect(text.length).to.be.below(300);
    }
  });

  it("takes a text of 200,000 characters, each of them escaped, and no body of several megabytes", async () => {
    const call = (input: string) =>
      postText(JSON.stringify(toolCall(1, "svc_agent_run", { name: "Nobody", input: "?" })).replace("?", input));
    const { isError, value } = readToolResult(await call("\\u00e9".repeat(200_000)));
    expect([isError, valueAt(value, "error.code")]).to.deep.equal([true, "not_found"]);
    const large = await call("x".repeat(3 << 20));
    expect([large.status, large.at("id"), large.at("error.code")]).to.deep.equal([400, null, -32_700]);
  });

  it("answers a message that is not JSON-RPC with a 400 in JSON-RPC", async () => {
    for (const text of ["", "{", "ping", '{"jsonrpc":"2.0",}', '"\\ud800']) {
      const { status, body } = await postText(text);
      expect(status, text).to.equal(400);
      expect(valueAt(body, "error.code"), text).to.equal(-32_700);
      expect(valueAt(body, "id"), text).to.equal(null);
    }
    for (const text of ["7", "null", '"ping"', "[]", "{}", "[1, 2]", '{"jsonrpc":"1.0","id":1,"method":"ping"}']) {
      const { status, at } = await postText(text);
      expect([status, at("error.code"), at("id")], text).to.deep.equal([400, -32_600, null]);
    }
    const plain = await postText(JSON.stringify(ping), { "content-type": "text/plain" });
    expect([plain.status, plain.at("error.code")]).to.deep.equal([400, -32_700]);
    const large = await postText(JSON.stringify({ ...ping, params: { x: "x".repeat(5 << 20) } }));
    expect([large.status, large.at("error.code")]).to.deep.equal([400, -32_700]);
  });

  it("reports unknown methods, tools and wrong arguments as errors of the protocol", async () => {
    const cases: [object, number][] = [
      [rpc(1, "resources/list"), -32_601],
      [rpc(1, "toString"), -32_601],
      [rpc(1, "ping", []), -32_602],
      [rpc(1, "ping", "x"), -32_602],
      [rpc(1, "tools/list", { cursor: "x" }), -32_602],
      [rpc(1, "tools/call"), -32_602],
      [rpc(1, "tools/call", { name: 7 }), -32_602],
      [toolCall(1, "svc_no_such"), -32_602],
      [rpc(1, "tools/call", { name: "svc_rag_query", arguments: "x" }), -32_602],
      [toolCall(1, "svc_rag_query", { query: "x", topK: 0 }), -32_602],
      [toolCall(1, "svc_chat", { messages: [] }), -32_602],
      [toolCall(1, "svc_composite_execute", { pattern: "x", profile: "coding", input: "x" }), -32_602],
    ];
    for (const [body, code] of cases) {
      const { status, at } = await post(body);
      expect([status, at("id"), at("error.code")], JSON.stringify(body)).to.deep.equal([200, 1, code]);
    }
    const unknown = await post(toolCall(1, "219-09-9999"));
    expect(unknown.text, "the name may be anything").not.to.contain("219-09-9999");
    const { at } = await post(toolCall(1, "svc_rag_query", { topK: 1_000 }));
    const paths = (at("error.data") as { path: string }[]).map(({ path }) => path);
    expect(paths, "every problem is reported").to.have.members(["query", "topK"]);
  });

  it("is a 401 without a key and with an unknown one, also for notifications", async () => {
    for (const key of [undefined, `sk_${"0".repeat(32)}`, "nonsense"]) {
      for (const body of [ping, note]) {
        const { status, headers } = await makeClient({ url: test.url, key }).post("/mcp", body);
        expect([status, headers.get("www-authenticate")]).to.deep.equal([
          401,
          `Bearer realm="switchyard", resource_metadata="${test.url}/.well-known/oauth-protected-resource/mcp"`,
        ]);
      }
    }
  });

  it("is a 405 for everything but POST", async () => {
    for (const method of ["GET", "DELETE", "PUT", "PATCH"]) {
      const { status, headers } = await member.request(method, "/mcp");
      expect([status, headers.get("allow")]).to.deep.equal([405, "POST, OPTIONS"]);
    }
  });

  it("is a 403 for a widget key, whatever it asks", async () => {
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    const made = await admin.post("/ai/widget/key", {});
    const widget = makeClient({ url: test.url, key: made.string("key") });
    for (const body of [ping, note, toolCall(1, "svc_chat", { messages: [{ role: "user", content: "Hi" }] })]) {
      const { status, at } = await widget.post("/mcp", body);
      expect([status, at("error.code")]).to.deep.equal([403, "insufficient_scope"]);
    }
  });

  /** A call with headers that `fetch` would not send. */
  const statusWith = async (headers: Record<string, string>) => {
    const sent = request(`${test.url}/mcp`, {
      method: "POST",
      agent: false,
      headers: { ...json, authorization: `Bearer ${test.keys.member}`, ...headers },
    });
    sent.end(JSON.stringify(ping));
    const [response] = await once(sent, "response");
    response.resume();
    await once(response, "end");
    return response.statusCode;
  };

  it("is a 403 under a foreign Host, so that DNS rebinding reaches nothing", async () => {
    const { port } = new URL(test.url);
    const own = [
      "localhost",
      `localhost:${port}`,
      `127.0.0.1:${port}`,
      "[::1]:3000",
      "AI.example.com",
      "ai.example.com.",
    ];
    for (const host of [...own, "ai.example.com:443", "other.example:8443"]) {
      expect(await statusWith({ host }), host).to.equal(200);
    }
    const foreign = ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:80", "10.1.2.3"];
    const odd = ["localhost@evil.example", "other.example", "other.example:80", "a/localhost", "x localhost"];
    for (const host of [...foreign, ...odd]) expect(await statusWith({ host }), host).to.equal(403);
    const forwarded = { host: "evil.example", "x-forwarded-host": "localhost" };
    expect(await statusWith(forwarded), "a forwarded name proves nothing").to.equal(403);
  });

  it("is a 403 for pages of a foreign Origin", async () => {
    for (const origin of ["http://localhost:6274", "http://127.0.0.1:3000", "https://ai.example.com"]) {
      expect(await statusWith({ origin }), origin).to.equal(200);
    }
    for (const origin of [
      "https://evil.example",
      "null",
      "",
      "file://",
      "http://localhost.evil.example",
      "localhost",
    ]) {
      expect(await statusWith({ origin }), origin).to.equal(403);
    }
    expect((await post(ping, { origin: "https://evil.example" })).at("error.code")).to.equal("foreign_origin");
  });

  it("takes the tenant from the key alone: x-tenant-id changes nothing", async () => {
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    const { value } = await callTool(owner, "svc_org_create", { name: "First" });
    const call = toolCall(1, "svc_org_get", { organizationId: valueAt(value, "organizationId") });
    const headers = { "x-tenant-id": await tenantOf(test) };
    const { isError, value: refused } = readToolResult(await stranger.post("/mcp", call, { headers }));
    expect([isError, valueAt(refused, "error.code")]).to.deep.equal([true, "not_found"]);
  });

  it("lists the tools that a key may use, and refuses the others", async () => {
    const namesFor = async (key: string) => {
      const { at } = await makeClient({ url: test.url, key }).post("/mcp", rpc(1, "tools/list"));
      return (at("result.tools") as { name: string }[]).map(({ name }) => name);
    };
    const all = await namesFor(test.keys.owner);
    const some = await namesFor(test.keys.member);
    expect(all).to.include.members([...some, "svc_org_create", "svc_org_add_tenant"]);
    expect(some).not.to.include.members(["svc_org_create"]).and.not.to.include("svc_org_add_tenant");
    const { isError, value } = await callTool(member, "svc_org_create", { name: "Mine" });
    expect([isError, valueAt(value, "error.code")]).to.deep.equal([true, "insufficient_role"]);
  });

  it("ignores an Idempotency-Key", async () => {
    const headers = { "idempotency-key": "same" };
    expect((await post(rpc(1, "ping"), headers)).status).to.equal(200);
    expect((await post(rpc(2, "ping"), headers)).at("id")).to.equal(2);
  });
});

describe("tool calls and the limits of a tenant", () => {
  let upstream: ScriptedUpstream;
  let test: TestPlatform;
  before(async () => {
    upstream = await startScriptedUpstream();
    const limits = { RATE_LIMIT_RPM: "6", RATE_LIMIT_CONCURRENT: "3" };
    test = await startPlatform({
      workers: false,
      env: { EDGE_BASE_URL: upstream.url, EDGE_MODEL: "scripted", ...limits },
    });
  });
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const calls = (ids: number[]) =>
    ids.map((id) => toolCall(id, "svc_chat", { model: "scripted", messages: [{ role: "user", content: "Hello?" }] }));
  const outcomes = ({ body }: { body: unknown }) =>
    (body as object[]).map((each) => {
      const result = JSON.parse(String(valueAt(each, "result.content[0].text")));
      return valueAt(result, "error.code") ?? "served";
    });
  const served = (codes: unknown[]) => codes.filter((code) => code === "served").length;

  it("each call of a batch counts, and a call above the limit gets an error as its result", async () => {
    const member = makeClient({ url: test.url, key: test.keys.member });
    const held = Promise.withResolvers<string>();
    upstream.play(() => held.promise);
    const answering = member.post("/mcp", calls([1, 2, 3, 4]));
    // Three places at once: the request's own, and two more.
    await pollUntil(async () => upstream.calls.length === 3);
    held.resolve("Hello.");
    const first = outcomes(await answering);
    expect([served(first), upstream.calls.length]).to.deep.equal([3, 3]);
    expect(first).to.include("too_many_concurrent");
    const second = outcomes(await member.post("/mcp", calls([1, 2, 3])));
    expect([served(second), upstream.calls.length], "4 of 6 were taken").to.deep.equal([2, 5]);
    expect(second).to.include("rate_limited");
    const third = await member.post("/mcp", [rpc(1, "ping"), ...calls([2])]);
    expect([third.status, third.at("[0].error.code")]).to.deep.equal([200, -32_000]);
    expect(third.at("[0].error.data.code")).to.equal("rate_limited");
    expect(readToolResult(third, "[1].result")).to.deep.include({ isError: true });
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    expect((await stranger.post("/mcp", ping)).status, "another tenant").to.equal(200);
  });
});

describe("the tool server and callers over their limits", () => {
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform({ workers: false, env: { RATE_LIMIT_RPM: "2", RATE_LIMIT_CONCURRENT: "3" } });
  });
  after(() => test.close());

  const begin = (key: string, length: number) => beginPost(`${test.url}/mcp`, { key, length });

  it("a small call gets its id back; a large one is refused before its body has arrived", async () => {
    const member = makeClient({ url: test.url, key: test.keys.member });
    for (let n = 0; n < 2; n += 1) expect((await member.post("/mcp", ping)).at("result")).to.deep.equal({});
    const { status, at } = await member.post("/mcp", rpc("mine", "ping"));
    expect([status, at("id"), at("error.code"), at("error.data.code")]).to.deep.equal([
      200,
      "mine",
      -32_000,
      "rate_limited",
    ]);
    const large = begin(test.keys.member, 1 << 20);
    const reported = await large.answer;
    large.end();
    expect([reported.status, valueAt(reported.body, "id"), valueAt(reported.body, "error.data.code")]).to.deep.equal([
      200,
      null,
      "rate_limited",
    ]);
  });

  it("calls over the rate also take a place, and without a place a call's body is not read", async () => {
    const key = test.keys.stranger;
    const stranger = makeClient({ url: test.url, key });
    for (let n = 0; n < 2; n += 1) await stranger.post("/mcp", ping);
    const slow = Array.from({ length: 3 }, () => begin(key, 100));
    try {
      await Promise.all(slow.map(({ asked }) => asked));
      const { status, at } = await stranger.post("/mcp", ping);
      expect([status, at("id"), at("error.data.code")]).to.deep.equal([200, null, "too_many_concurrent"]);
    } finally {
      for (const { end } of slow) end();
    }
  });
});

describe("the tool server while the store is unavailable", function () {
  this.timeout(30_000);
  it("is a 503 with retry-after, also for a tool that needs the store, and still reports health", async function () {
    if (process.env.MONGODB_URL) return skipTest(this, "only the embedded store can be frozen");
    const test = await startPlatform({ services: "private", workers: false, env: { STORE_TIMEOUT_MS: "500" } });
    try {
      const member = makeClient({ url: test.url, key: test.keys.member });
      expect((await member.post("/mcp", ping)).status).to.equal(200); // the key is known for some seconds from here
      const pid = await hostPid(test.platform.config.dataDir);
      process.kill(pid, "SIGSTOP");
      try {
        const [query, health, unknown] = await Promise.all([
          member.post("/mcp", toolCall("q", "svc_rag_query", { query: "dawn" })),
          member.post("/mcp", toolCall("h", "svc_health")),
          makeClient({ url: test.url, key: test.keys.admin }).post("/mcp", ping),
        ]);
        expect([query.status, query.at("id"), query.at("error.code")]).to.deep.equal([503, "q", -32_603]);
        expect(query.at("error.data.code")).to.equal("unavailable");
        expect(Number(query.headers.get("retry-after"))).to.be.at.least(1);
        expect(health.status).to.equal(200);
        expect(valueAt(readToolResult(health).value, "parts.store.status")).to.equal("down");
        expect(unknown.status, "a key that cannot be looked up").to.equal(503);
      } finally {
        process.kill(pid, "SIGCONT");
      }
    } finally {
      await test.close();
    }
  });
});
