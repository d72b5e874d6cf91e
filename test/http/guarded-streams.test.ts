import { expect } from "chai";
import { type ClaudeUpstream, startClaudeUpstream } from "../support/claude-upstream.ts";
import { askSurface, eachForm } from "../support/four-surfaces.ts";
import { labelled } from "../support/guard-new-kinds.ts";
import { startGuardUpstream } from "../support/guard-upstream.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const model = "gpt-5.4-mini";
const CARD = "4012 8888 8888 1881";
const cards = (actions: object) => ({ rules: { card_number: actions } });
const ask = (content: string, more: object = {}) => ({ model, messages: [{ role: "user", content }], ...more });

describe("guards of a tenant", function () {
  this.timeout(120_000);
  let test: TestPlatform;
  let upstream: Awaited<ReturnType<typeof startGuardUpstream>>;
  let claude: ClaudeUpstream;
  let owner: ApiClient;
  let admin: ApiClient;
  let member: ApiClient;
  before(async () => {
    upstream = await startGuardUpstream();
    claude = await startClaudeUpstream();
    test = await startPlatform({
      services: "private",
      holdsSecrets: true,
      env: {
        OPENAI_API_KEY: "sk-test",
        OPENAI_BASE_URL: `${upstream.origin}/v1`,
        ANTHROPIC_API_KEY: "sk-ant-test",
        ANTHROPIC_BASE_URL: claude.origin,
        PROVIDER_MAX_ATTEMPTS: "1",
      },
    });
    const clientOf = (key: string) => makeClient({ url: test.url, key });
    [owner, admin, member] = [clientOf(test.keys.owner), clientOf(test.keys.admin), clientOf(test.keys.member)];
    await owner.request("PUT", "/settings", { body: { callTextDays: 1 } });
  });
  beforeEach(() => upstream.play((said) => ({ text: `You said: ${said}` })));
  after(async () => {
    await test?.close();
    await upstream?.close();
    await claude?.close();
  });

  const set = async (policy: object) => {
    const put = await admin.request("PUT", "/guards", { body: policy });
    expect(put.status, put.text).to.equal(200);
  };

  it("mask an answer on four wires, whole and streamed, however its parts cut a value", async () => {
    const texts: string[] = [
      `Your card ${CARD} is fine.`,
      "IBAN DE89 3704 0044 0532 0130 00 it is",
      "his SSN is two one nine, oh nine, eight six four two ok",
    ];
    for (const [, all] of Object.entries(labelled)) for (const [text] of all.slice(0, 2)) texts.push(text);
    const kinds = ["card_number", "iban", "ssn", ...Object.keys(labelled)];
    await set({ rules: Object.fromEntries(kinds.map((kind) => [kind, { output: "mask" }])) });
    for (const text of texts) {
      const checked = await admin.post("/guards/check", { text, place: "output" });
      const masked = checked.string("text");
      expect(masked, text).to.match(/\[[A-Z_]+_1\]/);
      for (const cut of [1, 4]) {
        upstream.play(() => ({ text, cut }));
        for (const { surface, isStream } of eachForm()) {
          const said = await askSurface(member, surface, isStream, { model });
          expect(said.text, `${surface.name} ${isStream} ${cut}`).to.equal(masked);
        }
      }
    }
  });

  it("mask the arguments of a tool's call, which stay JSON, and the reasoning", async () => {
    await set(cards({ toolInput: "mask", output: "mask" }));
    upstream.play(() => ({
      reasoning: `He gave ${CARD}.`,
      calls: '{"card":"4012 8888 8888 1881","number":4012888888881881,"q":"x"}',
    }));
    for (const { surface, isStream } of eachForm()) {
      const said = await askSurface(member, surface, isStream, { model, tools: true });
      const where = `${surface.name} ${isStream}`;
      expect(JSON.stringify(said), where).to.not.match(/4012/);
      expect(JSON.parse(said.calls[0]?.arguments ?? ""), where).to.deep.equal({
        card: "[CARD_1]",
        number: "[CARD_1]",
        q: "x",
      });
    }
    const opened = await member.events("POST", "/ai/chat", { body: ask("Well?", { stream: true }) });
    const all = JSON.stringify(await Array.fromAsync(opened.events));
    expect(all).to.not.match(/4012/);
  });

  it("end an answer that they do not let through with an error, on four wires, also in the middle of a stream", async () => {
    await set(cards({ output: "block" }));
    upstream.play(() => ({
      text: `It was a long day, and so I say that your card ${CARD} is fine, as far as I know. More follows.`,
    }));
    for (const { surface, isStream } of eachForm()) {
      const said = await askSurface(member, surface, isStream, { model });
      const where = `${surface.name} ${isStream}: ${JSON.stringify(said)}`;
      expect(said.error?.code, where).to.be.oneOf(["compliance_blocked", "invalid_request_error", "server_error"]); // each has its own words
      expect(said.error?.status, where).to.be.oneOf(isStream ? [200] : [422, 400]); // 400 is what Anthropic has for it
      expect(JSON.stringify(said), where).to.not.contain("1881");
    }
  });

  it("put the values back into the answer if the policy says so, and into nothing that is kept", async () => {
    await set({ ...cards({ input: "mask", output: "mask" }), restore: true });
    for (const { surface, isStream } of eachForm()) {
      const messages = [{ role: "user", content: `Charge ${CARD}, then 4242 4242 4242 4242, then 4012888888881881.` }];
      const said = await askSurface(member, surface, isStream, { model, messages });
      expect(said.text, surface.name).to.contain(`Charge ${CARD}, then 4242 4242 4242 4242, then ${CARD}.`);
      expect(upstream.requests.at(-1)?.raw).to.contain("Charge [CARD_1], then [CARD_2], then [CARD_1].");
    }
    upstream.play(() => ({ text: "Your other card is 5555 5555 5555 4444." }));
    expect((await member.post("/ai/chat", ask(`Not ${CARD}?`))).string("text")).to.equal(
      "Your other card is [CARD_2].",
    );
    upstream.play((said) => ({ text: said }));
    const repeatable = { headers: { "idempotency-key": "once" } };
    expect((await member.post("/ai/chat", ask(CARD), repeatable)).string("text")).to.equal("[CARD_1]");
    const stored = await member.post("/v1/responses", { model, input: CARD });
    expect(stored.text).to.contain("[CARD_1]").and.not.contain(CARD);
    await test.platform.gateway.flush();
    for (const { logId } of (await member.get("/ai/logs?limit=12")).at("data") as { logId: string }[])
      expect((await member.get(`/ai/logs/${logId}`)).text).to.not.match(/4012 ?8888|4242 ?4242|5555 ?5555/);
  });

  it("say what they found in a header and in the call's log: kind, place and count", async () => {
    await set(cards({ input: "flag", output: "mask" }));
    const answered = await member.post("/ai/chat", ask(`Pay with ${CARD} or 4242424242424242.`));
    expect(upstream.requests.at(-1)?.raw).to.contain(CARD);
    expect(answered.headers.get("x-svc-guard")).to.equal(
      "card_number;place=input;action=flag;count=2, card_number;place=output;action=mask;count=2",
    );
    await test.platform.gateway.flush();
    expect((await member.get(`/ai/logs/${answered.string("logId")}`)).at("guard")).to.deep.equal([
      { kind: "card_number", place: "input", action: "flag", count: 2 },
      { kind: "card_number", place: "output", action: "mask", count: 2 },
    ]);
  });

  it("count a value once, in an answer that a model gives as text and as parts", async () => {
    await set(cards({ output: "mask" }));
    const text = `The card is ${CARD}.`;
    const thinking = { type: "thinking", thinking: `It is ${CARD}.`, signature: "signed" };
    claude.play(() => ({ content: [thinking, { type: "text", text }] }));
    for (const { surface, isStream } of eachForm()) {
      await askSurface(member, surface, isStream, { model: "claude-haiku-5-5" });
      await test.platform.gateway.flush();
      const [log] = (await member.get("/ai/logs?limit=1")).at("data") as { guard: { count: number }[] }[];
      expect(log?.guard[0]?.count, `${surface.name} ${isStream}`).to.equal(2); // the text and the reasoning
    }
  });

  it("keep values out of the texts of the call's log alone, if nothing else is wanted", async () => {
    await set(cards({ log: "mask" }));
    const answered = await member.post("/ai/chat", ask(`Pay with ${CARD}.`));
    expect(answered.string("text")).to.contain(CARD);
    await test.platform.gateway.flush();
    const log = await member.get(`/ai/logs/${answered.string("logId")}`);
    expect(log.at("content.messages[0].content")).to.equal("Pay with [CARD_1].");
    expect(log.at("content.text")).to.equal("You said: Pay with [CARD_1].");
  });

  it("never give an answer from the cache that was kept under other rules", async () => {
    upstream.play(() => ({ text: `The card is ${CARD}.` }));
    await set({});
    const question = ask("Which card?", { temperature: 0, model: "gpt-5.4-mini" });
    expect((await member.post("/ai/chat", question)).string("text")).to.contain(CARD);
    await set(cards({ output: "mask" }));
    expect((await member.post("/ai/chat", question)).string("text")).to.equal("The card is [CARD_1].");
  });

  it("make exceptions for a key, an agent or a workflow", async () => {
    const keyId = (await member.get("/me")).body && String((await member.get("/me")).at("keyId"));
    await set({ ...cards({ input: "block" }), exceptions: [{ keyId, rules: { card_number: { input: "mask" } } }] });
    expect((await admin.post("/ai/chat", ask(CARD))).status).to.equal(422);
    expect((await member.post("/ai/chat", ask(CARD))).string("text")).to.equal("You said: [CARD_1]");
  });

  it("refuse pictures where a kind is blocked, unless the policy lets them pass", async () => {
    const url =
      "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    const picture = { model, messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] };
    await set(cards({ input: "block" }));
    const refused = await member.post("/ai/chat", picture);
    expect([refused.status, refused.at("error.code")]).to.deep.equal([422, "compliance_blocked"]);
    await set({ ...cards({ input: "block" }), unreadable: "pass" });
    expect((await member.post("/ai/chat", picture)).status).to.equal(200);
  });

  it("are tried on a text without a model, and set by administrators alone, in one form", async () => {
    await set(cards({ input: "mask" }));
    upstream.requests.length = 0;
    const policy = cards({ input: "block" });
    expect((await admin.post("/guards/check", { text: CARD, policy })).body).to.deep.equal({
      action: "block",
      findings: [{ kind: "card_number", action: "block", start: 0, end: CARD.length }],
    });
    expect((await admin.post("/guards/check", { text: `x ${CARD}` })).at("text")).to.equal("x [CARD_1]");
    expect(upstream.requests).to.have.length(0);
    for (const wrong of [{ rules: { cards: {} } }, cards({ inputs: "mask" }), cards({ input: "hide" }), { mode: "on" }])
      expect((await admin.request("PUT", "/guards", { body: wrong })).status, JSON.stringify(wrong)).to.equal(400);
    expect((await member.request("PUT", "/guards", { body: {} })).status).to.equal(403);
    expect((await admin.get("/guards")).at("rules")).to.deep.equal({ card_number: { input: "mask" } });
  });

  it("read requests to Claude that go on byte for byte, and let none of them on as it came that is to be masked", async () => {
    const say = (text: string) => claude.play(() => ({ content: [{ type: "text", text }] }));
    const asked = (content: unknown, stream = false) => ({
      model: "claude-haiku-5-5",
      max_tokens: 100,
      messages: [{ role: "user", content }],
      ...(stream && { stream }),
    });
    const post = (body: object) => member.post("/v1/messages", body);
    const textsOf = async (body: object) => {
      const opened = await member.events("POST", "/v1/messages", { body }).catch(() => undefined);
      return opened ? JSON.stringify(await Array.fromAsync(opened.events)) : (await post(body)).text;
    };
    say("Fine.");
    await set(cards({ input: "block", toolOutput: "block", output: "block" }));
    const clean = asked("All is well.");
    expect((await post(clean)).status).to.equal(200);
    expect(claude.calls.at(-1)?.raw).to.equal(JSON.stringify(clean));
    const result = [{ type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: CARD }] }];
    for (const held of [CARD, [{ type: "text", text: `x ${CARD}` }], result]) {
      claude.calls.length = 0;
      expect((await post(asked(held))).text, JSON.stringify(held)).to.contain("card number");
      expect(claude.calls).to.have.length(0);
      const counted = await member.post("/v1/messages/count_tokens", asked(held));
      expect([counted.status, claude.calls.length]).to.deep.equal([400, 0]);
    }
    say(`It was a long day, and so I say it: your card is ${CARD}, as far as I know.`);
    expect((await post(clean)).text)
      .to.contain("card number")
      .and.not.contain("4012");
    const streamed = await textsOf(asked("All is well.", true));
    expect(streamed).to.contain("error").and.contain("card number").and.not.contain("1881");
    await set(cards({ output: "mask" }));
    expect((await post(clean)).text)
      .to.contain("your card is [CARD_1],")
      .and.not.contain("4012");
    expect(await textsOf(asked("All is well.", true))).to.not.contain("1881");
  });

  it("find what a field's name says of its value, and numbers, in the objects of a caller", async () => {
    await set({ rules: { ssn: { input: "mask", toolInput: "mask" }, card_number: { input: "mask" } } });
    const steps = [{ type: "ai_completion", id: "one", model, prompt: "Go." }];
    const made = await member.post("/workflows", { name: "Echo", steps });
    const input = {
      patient: { ssn: "219098642", id: "219-09-8642" },
      pay: { card: 4012888888881881 },
      "219-09-8642": 1,
    };
    const started = await member.post(`/workflows/${made.string("workflowId")}/execute`, { input });
    const run = await member.get(`/workflows/${made.string("workflowId")}/runs/${started.string("runId")}`);
    expect(run.at("input"), run.text).to.deep.equal({
      patient: { ssn: "[SSN_1]", id: "[SSN_1]" },
      pay: { card: "[CARD_1]" },
      "[SSN_1]": 1,
    });
  });
});
