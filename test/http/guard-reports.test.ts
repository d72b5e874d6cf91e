import { expect } from "chai";
import { askSurface, eachForm } from "../support/four-surfaces.ts";
import { startGuardUpstream } from "../support/guard-upstream.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const model = "gpt-5.4-mini";

/** What users of other gateways have reported, as scripts against this one. */
describe("guards, where those of other gateways were passed by", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let upstream: Awaited<ReturnType<typeof startGuardUpstream>>;
  let admin: ApiClient;
  let member: ApiClient;
  before(async () => {
    upstream = await startGuardUpstream();
    test = await startPlatform({
      services: "private",
      holdsSecrets: true,
      env: { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${upstream.origin}/v1`, PROVIDER_MAX_ATTEMPTS: "1" },
    });
    admin = makeClient({ url: test.url, key: test.keys.admin });
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  after(async () => {
    await test?.close();
    await upstream?.close();
  });

  const set = async (rules: object) => {
    const put = await admin.request("PUT", "/guards", { body: { rules } });
    expect(put.status, put.text).to.equal(200);
  };

  it("mask a value that is split over two parts of a stream (BerriAI/litellm 41611)", async () => {
    await set({ email_address: { output: "mask" } });
    upstream.play(() => ({ text: "user@example.com", cut: 8 })); // "user@exa" and "mple.com"
    for (const { surface, isStream } of eachForm()) {
      const said = await askSurface(member, surface, isStream, { model });
      expect(said.text, `${surface.name} ${isStream}`).to.equal("[EMAIL_1]");
    }
  });

  it("govern streams and responses in the background as any other answer (BerriAI/litellm 38788)", async () => {
    await set({ card_number: { output: "block" } });
    upstream.play(() => ({ text: "The card is 4012 8888 8888 1881, as you know." }));
    for (const { surface, isStream } of eachForm()) {
      const said = await askSurface(member, surface, isStream, { model });
      expect(said.error, `${surface.name} ${isStream}`).to.not.equal(undefined);
      expect(JSON.stringify(said)).to.not.contain("1881");
    }
    const { id } = Object((await member.post("/v1/responses", { model, input: "Which?", background: true })).body);
    const ended = await pollUntil(async () => {
      const response = await member.get(`/v1/responses/${id}`);
      return ["completed", "failed"].includes(String(response.at("status"))) ? response : undefined;
    });
    expect(ended.at("status")).to.equal("failed");
    expect(ended.text).to.not.contain("1881");
  });

  it("stand before the Responses API as before chats (BerriAI/litellm 14152)", async () => {
    await set({ secret: { input: "block" } });
    const said = "My key is sk-proj-Walrus99Otter77Heron55.";
    const asked = { model, messages: [{ role: "user", content: said }] };
    upstream.requests.length = 0;
    expect((await member.post("/v1/chat/completions", asked)).status).to.equal(422);
    for (const more of [{}, { store: false }, { stream: true, store: false }, { background: true }])
      expect((await member.post("/v1/responses", { model, input: said, ...more })).status).to.equal(422);
    expect(upstream.requests).to.have.length(0);
  });

  it("mask a streamed answer as the same one that is not (agentgateway 2956)", async () => {
    await set({ secret: { output: "mask" } });
    const text = "leaked glpat-RESPk2Wq8Zt4Lm9Xc7Vb here";
    for (const cut of [text.length, 5]) {
      upstream.play(() => ({ text, cut }));
      for (const { surface, isStream } of eachForm()) {
        const said = await askSurface(member, surface, isStream, { model });
        expect(said.text, `${surface.name} ${isStream} ${cut}`).to.equal("leaked [SECRET_1] here");
      }
    }
  });

  it("read the answer of a stream, and not its question alone (cloudflare-docs 32964, api7/aisix 204)", async () => {
    await set({ card_number: { input: "block", output: "block" } });
    upstream.play(() => ({ text: "It is 4012 8888 8888 1881." }));
    const stream = { model, stream: true, messages: [{ role: "user", content: "Which one?" }] };
    for (const path of ["/ai/chat", "/v1/chat/completions"]) {
      const opened = await member.events("POST", path, { body: stream });
      const all = JSON.stringify(await Array.fromAsync(opened.events));
      expect(all, path).to.contain("compliance_blocked").and.not.contain("1881");
    }
  });

  it("read what a model says and calls, before and after it, whole and streamed (mlflow 22306)", async () => {
    await set({ card_number: { input: "mask", output: "mask", toolInput: "mask" } });
    const card = "4012888888881881";
    upstream.play((said) => ({ text: `${said} ${card}`, calls: JSON.stringify({ q: card }) }));
    for (const { surface, isStream } of eachForm()) {
      const messages = [{ role: "user", content: "Is it 5555 5555 5555 4444?" }];
      const said = await askSurface(member, surface, isStream, { model, messages, tools: true });
      expect(upstream.requests.at(-1)?.raw).to.contain("[CARD_1]").and.not.contain("5555 5555");
      expect(JSON.stringify(said), `${surface.name} ${isStream}`).to.not.match(/4012|5555/);
    }
  });
});
