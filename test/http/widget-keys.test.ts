import { expect } from "chai";
import { allRoutes } from "../../api/all-routes.ts";
import { isForTenants } from "../../api/route.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const question = { messages: [{ role: "user", content: "Who are you?" }] };
const page = "https://shop.example";

describe("widget keys", () => {
  let test: TestPlatform;
  let admin: ApiClient;
  before(async () => {
    test = await startPlatform({ workers: false, env: { WIDGET_RATE_LIMIT_RPM: "30" } });
    admin = makeClient({ url: test.url, key: test.keys.admin });
  });
  after(() => test.close());

  const make = async (body: object = {}) => {
    const made = await admin.post("/ai/widget/key", body);
    expect(made.status).to.equal(201);
    expect(made.string("key")).to.match(/^pk_[0-9A-Za-z]{32}$/);
    return { key: made.string("key"), keyPreview: made.string("keyPreview") };
  };
  const chat = (key: string, headers: Record<string, string> = {}, body: object = question) =>
    makeClient({ url: test.url, key }).post("/ai/chat", body, { headers });
  const remove = (body?: object) => admin.request("DELETE", "/ai/widget/key", body ? { body } : {});

  it("are shown once, and listed by their previews", async () => {
    const { key, keyPreview } = await make({ allowedOrigins: [page] });
    expect(keyPreview).to.equal(`${key.slice(0, 7)}…${key.slice(-4)}`);
    const listed = await admin.get("/ai/widget/keys");
    expect(listed.at("data[0]")).to.deep.include({ keyPreview, allowedOrigins: [page] });
    expect(listed.text).not.to.contain(key);
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    expect((await stranger.get("/ai/widget/keys")).at("data")).to.deep.equal([]);
    expect((await remove({ key })).status).to.equal(204);
  });

  it("chat, as JSON and as a stream, and do nothing else", async () => {
    const { key } = await make();
    expect((await chat(key)).status).to.equal(200);
    const client = makeClient({ url: test.url, key });
    const { events } = await client.events("POST", "/ai/chat", { body: { ...question, stream: true } });
    const data = (await Array.fromAsync(events)).map((event) => event.data as { done: boolean });
    expect(data.at(-1)?.done).to.equal(true);
    for (const route of allRoutes) {
      if (!isForTenants(route.auth) || route.isForWidgets) continue;
      const path = route.path.replace(/:\w+/g, "x");
      const { status } = await client.request(route.method.toUpperCase(), path, route.body ? { body: {} } : {});
      expect(status, `${route.method} ${route.path}`).to.equal(403);
    }
  });

  it("get no debug output, no batch and no options", async () => {
    const { key } = await make();
    const headers = { "x-svc-debug": "true", "x-svc-options": "cache=true" };
    const first = await chat(key, headers, { ...question, prefer_async: true });
    expect(first.status).to.equal(200);
    expect(first.at("_preprocessing")).to.equal(undefined);
    expect((await chat(key, headers)).at("cached")).to.equal(false);
  });

  it("may be used by pages of the allowed origins only", async () => {
    const { key } = await make({ allowedOrigins: [page] });
    const allowed = await chat(key, { origin: page });
    expect(allowed.status).to.equal(200);
    expect(allowed.headers.get("access-control-allow-origin")).to.equal(page);
    expect(allowed.headers.get("vary")).to.match(/origin/i);
    for (const headers of [{ origin: "https://evil.example" }, { origin: "null" }, {}]) {
      const refused = await chat(key, headers as Record<string, string>);
      expect([refused.status, refused.at("error.code")]).to.deep.equal([403, "insufficient_scope"]);
      expect(refused.headers.get("access-control-allow-origin"), "the page may read why").to.equal(
        (headers as Record<string, string>).origin ?? null,
      );
      expect(refused.text).to.contain("allowedOrigins");
    }
    for (const key of ["pk_00000000000000000000000000000000", "pk_short"]) {
      const unknown = await chat(key, { origin: page });
      expect([unknown.status, unknown.headers.get("access-control-allow-origin")]).to.deep.equal([401, page]);
    }
    const anywhere = await make();
    expect((await chat(anywhere.key, { origin: "https://any.example" })).status).to.equal(200);
  });

  it("let an allowed page read errors", async () => {
    const { key } = await make({ allowedOrigins: [page] });
    const wrong = await chat(key, { origin: page }, { messages: [] });
    expect(wrong.status).to.equal(400);
    expect(wrong.headers.get("access-control-allow-origin")).to.equal(page);
  });

  it("answer a browser's preflight for the chat only", async () => {
    const ask = (path: string) =>
      fetch(`${test.url}${path}`, {
        method: "OPTIONS",
        headers: {
          origin: page,
          "access-control-request-method": "POST",
          "access-control-request-headers": "authorization,content-type,x-svc-options,x-svc-debug,x-svc-surface",
        },
      });
    const chatting = await ask("/ai/chat");
    expect(chatting.status).to.equal(204);
    expect(chatting.headers.get("access-control-allow-origin")).to.equal(page);
    expect(chatting.headers.get("access-control-allow-methods")).to.equal("POST");
    const allowed = (chatting.headers.get("access-control-allow-headers") ?? "").split(", ");
    expect(allowed).to.include.members([
      "authorization",
      "content-type",
      "x-svc-options",
      "x-svc-debug",
      "x-svc-surface",
    ]);
    expect((await ask("/rag/query")).headers.get("access-control-allow-origin")).to.equal(null);
    // An API key is never for a page.
    const withApiKey = await chat(test.keys.member, { origin: page });
    expect(withApiKey.headers.get("access-control-allow-origin")).to.equal(null);
  });

  it("have limits of their own, a key and address", async () => {
    const { key } = await make();
    const answers = await Promise.all(Array.from({ length: 40 }, () => chat(key)));
    const limited = answers.filter(({ status }) => status === 429);
    expect(limited.length).to.be.above(5);
    expect(Number(limited[0]?.headers.get("retry-after"))).to.be.above(0);
    expect((await chat(test.keys.member)).status, "the tenant's own calls continue").to.equal(200);
    const other = await make();
    expect((await chat(other.key)).status, "as do other widgets").to.equal(200);
  });

  it("are revoked by a field of their creation's response, or as the only one without an agent", async () => {
    const before = (await admin.get("/ai/widget/keys?limit=200")).at("data") as { id: string }[];
    for (const { id } of before) expect((await remove({ id })).status).to.equal(204);
    const [one, two, three, four] = [await make(), await make(), await make(), await make()];
    const made = await admin.post("/ai/widget/key", {});
    expect((await remove({ key: one.key })).status).to.equal(204);
    expect((await remove({ keyPreview: two.keyPreview })).status).to.equal(204);
    expect((await remove(made.body as object)).status, "the response to POST as it is").to.equal(204);
    for (const key of [one.key, two.key, made.string("key")]) expect((await chat(key)).status).to.equal(401);
    const several = await remove();
    expect([several.status, several.at("error.code")]).to.deep.equal([409, "wrong_state"]);
    const listed = several.at("error.details.keys") as { id: string; keyPreview: string }[];
    expect(listed.map(({ keyPreview }) => keyPreview)).to.have.members([three.keyPreview, four.keyPreview]);
    for (const { key } of [three, four]) expect((await chat(key)).status).to.equal(200);
    const third = listed.find(({ keyPreview }) => keyPreview === three.keyPreview);
    expect((await remove({ id: third?.id })).status).to.equal(204);
    expect((await remove()).status).to.equal(204);
    await pollUntil(async () => (await chat(four.key)).status === 401, { what: "the revocation" });
    expect((await remove()).status, "none is left").to.equal(404);
    expect((await remove({ key: one.key })).status).to.equal(404);
  });

  it("are neither made nor revoked by a misspelt field or a query parameter", async () => {
    const { key } = await make();
    const agent = { name: "Desk", model: "meta-llm", systemPrompt: "You answer." };
    const agentId = (await admin.post("/agents", agent)).string("agentId");
    const scoped = [
      await make({ agent_id: agentId }),
      await make({ agentId }),
      await make({ agentId, agent_id: null }),
    ];
    const calls: [string, string, object | undefined][] = [
      ["POST", "/ai/widget/key", { agent: agentId }],
      ["POST", `/ai/widget/key?agent_id=${agentId}`, {}],
      ["POST", "/ai/widget/key", { agentId, agent_id: "agt_01J00000000000000000000000" }],
      ["DELETE", "/ai/widget/key", { agentID: agentId }],
      ["DELETE", `/ai/widget/key?key=${key}`, undefined],
    ];
    for (const [method, path, body] of calls) {
      const refused = await admin.request(method, path, body ? { body } : {});
      expect([refused.status, refused.at("error.code")], `${method} ${path}`).to.deep.equal([400, "invalid_request"]);
    }
    for (const each of [{ key }, ...scoped]) expect((await chat(each.key)).status).to.equal(200);
    expect((await remove({ keyPreview: scoped[0]?.keyPreview, agentId })).status).to.equal(204);
    expect((await chat(scoped[1]?.key ?? "")).status, "another key of the agent").to.equal(200);
    expect((await remove({ agentId })).status).to.equal(204);
    for (const each of scoped) expect((await chat(each.key)).status).to.equal(401);
    expect((await remove({ key })).status).to.equal(204);
  });

  it("may be bound to models and to a length of their responses", async () => {
    const { key } = await make({ models: ["auto"], maxTokens: 5 });
    const answer = await chat(key, {}, { messages: [{ role: "user", content: "Tell me a long story." }] });
    expect([answer.status, Number(answer.at("outputTokens")) <= 5]).to.deep.equal([200, true]);
    const refused = await chat(key, {}, { ...question, model: "gpt-4.1" });
    expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "model"]);
    expect((await chat(key, {}, { ...question, maxTokens: 6 })).at("error.param")).to.equal("maxTokens");
    expect((await admin.get("/ai/widget/keys")).at("data[0]")).to.deep.include({ models: ["auto"], maxTokens: 5 });
    const unknown = await admin.post("/ai/widget/key", { models: ["gpt-0"] });
    expect([unknown.status, unknown.at("error.code")]).to.deep.equal([400, "unknown_model"]);
    expect((await remove({ key })).status).to.equal(204);
  });

  it("need an admin, and valid origins", async () => {
    const member = makeClient({ url: test.url, key: test.keys.member });
    expect((await member.post("/ai/widget/key", {})).status).to.equal(403);
    for (const origin of ["shop.example", "https://shop.example/path", "*", ""]) {
      const refused = await admin.post("/ai/widget/key", { allowedOrigins: [origin] });
      expect([refused.status, refused.at("error.param")], origin).to.deep.equal([400, "allowedOrigins[0]"]);
    }
    const agent = await admin.post("/ai/widget/key", { agent_id: "agt_01J00000000000000000000000" });
    expect(agent.status, "an agent that is not there").to.equal(404);
  });
});

describe("the widget's files", () => {
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform({ workers: false });
  });
  after(() => test.close());

  it("the script may be loaded by pages of other origins", async () => {
    const response = await fetch(`${test.url}/widget.js`);
    expect(response.headers.get("content-type")).to.equal("text/javascript; charset=utf-8");
    expect(response.headers.get("cross-origin-resource-policy")).to.equal("cross-origin");
    expect(await response.text()).to.contain("attachShadow");
  });

  it("its Markdown renderer and the modules that this imports may be loaded by pages of other origins, and nothing else", async () => {
    const origin = "https://shop.example";
    const load = (file: string) => fetch(`${test.url}/widget/files/${file}`, { headers: { origin } });
    const seen: string[] = [];
    const visit = async (file: string): Promise<void> => {
      const response = await load(file);
      const { status, headers } = response;
      const text = await response.text();
      expect([status, headers.get("access-control-allow-origin")], file).to.deep.equal([200, "*"]);
      expect(headers.get("cross-origin-resource-policy")).to.equal("cross-origin");
      seen.push(file);
      for (const [, name = ""] of text.matchAll(/\bfrom\s*"\.\/([^"]+)"/g)) await visit(name);
    };
    await visit("safe-markdown.js");
    expect(seen).to.deep.equal(["safe-markdown.js", "dompurify.js", "marked.js"]);
    for (const file of ["app.js", "api.js", "preact.js"])
      expect((await load(file)).status, file).to.be.within(400, 404);
  });

  it("the demo page holds nothing inline, and its policy allows only its own files", async () => {
    const response = await fetch(`${test.url}/widget/demo`);
    const html = await response.text();
    expect(response.headers.get("content-security-policy")).to.contain("script-src 'self'");
    expect(html).not.to.match(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/);
    for (const [, path] of html.matchAll(/(?:src|href)="(\/[^"]+)"/g)) {
      expect((await fetch(`${test.url}${path}`)).status, path).to.equal(200);
    }
  });
});
