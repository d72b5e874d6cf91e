import { expect } from "chai";
import { chatEventSchema, chatResponseSchema } from "../../src/gateway/schemas.ts";
import { type ApiClient, type ApiEvent, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const question = {
  messages: [
    {
      role: "system",
      content: "A lease protects a job from being run twice. A worker renews its lease while it runs.",
    },
    { role: "user", content: "What does a lease protect a job from?" },
  ],
};

const readAll = async (events: AsyncIterable<ApiEvent>) => {
  const all: ApiEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
};

describe("POST /ai/chat with the offline model", () => {
  let test: TestPlatform;
  let client: ApiClient;
  before(async function () {
    this.timeout(60_000);
    test = await startPlatform({ workers: false });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test.close());

  const post = (body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${test.url}/ai/chat`, {
      method: "POST",
      headers: { authorization: `Bearer ${test.keys.member}`, "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });

  it("answers JSON with exactly the interface's fields", async () => {
    const response = await client.post("/ai/chat", question);
    expect(response.status).to.equal(200);
    const body = chatResponseSchema.strict().parse(response.body);
    expect(body.text).to.contain("run twice");
    expect(body.choices).to.deep.equal([{ message: { role: "assistant", content: body.text }, finish_reason: "stop" }]);
    expect(body.logId).to.match(/^log_/);
    expect(body.inputTokens).to.be.greaterThan(10);
    expect(body.outputTokens).to.be.greaterThan(3);
    expect(body.usage).to.deep.equal({
      prompt_tokens: body.inputTokens,
      completion_tokens: body.outputTokens,
      total_tokens: body.inputTokens + body.outputTokens,
    });
    expect([body.cached, body.costUsd, body.model]).to.deep.equal([false, 0, "switchyard-offline"]);
    expect(Object.keys(body)).not.to.include.members(["toolCalls", "_preprocessing"]);
  });

  it("streams deltas and one final event, each a data line of JSON", async () => {
    const response = await post({ ...question, stream: true });
    expect(response.status).to.equal(200);
    expect(response.headers.get("content-type")).to.match(/^text\/event-stream/);
    const text = await response.text();
    const events = text
      .split("\n\n")
      .filter((block) => block.startsWith("data: "))
      .map((block) => JSON.parse(block.slice("data: ".length)));
    for (const event of events) chatEventSchema.parse(event);
    const deltas = events.slice(0, -1);
    const whole = chatResponseSchema.parse(await (await post(question)).json()).text;
    expect(deltas.length).to.be.greaterThan(3);
    expect(deltas.every((event) => event.done === false)).to.equal(true);
    expect(
      deltas
        .map((event) => event.delta.content)
        .join("")
        .trim(),
    ).to.equal(whole.trim());
    expect(events.at(-1)).to.include({ done: true, finishReason: "stop", model: "switchyard-offline" });
    expect(events.at(-1)).to.include.keys("logId", "inputTokens", "outputTokens");
    expect(text.trimEnd().split("\n").at(-1)).to.contain('"done":true');
  });

  it("takes meta-llm, auto and the model's own name, and shows the routing in debug mode", async () => {
    for (const model of ["meta-llm", "auto", "switchyard-offline"]) {
      const response = await client.post("/ai/chat", { ...question, model }, { headers: { "x-svc-debug": "true" } });
      expect(response.at("model")).to.equal("switchyard-offline");
      expect(response.at("_preprocessing.routing.requested")).to.equal(model);
      expect(response.at("_preprocessing.timingsMs.total")).to.be.a("number");
    }
    const streamed = await client.events("POST", "/ai/chat", {
      body: { ...question, stream: true },
      headers: { "x-svc-debug": "true" },
    });
    const events = await readAll(streamed.events);
    expect(events.at(-1)?.data).to.have.nested.property("_preprocessing.routing.provider", "edge");
  });

  it("ignores unknown fields and names them", async () => {
    const response = await client.post("/ai/chat", { ...question, logit_bias: {}, presence_penalty: 0 });
    expect(response.status).to.equal(200);
    expect(response.headers.get("x-svc-ignored")).to.equal("presence_penalty, logit_bias");
  });

  it("refuses what the offline model cannot do, and names the part", async () => {
    const text = { type: "text", text: "What is this?" };
    const file = { type: "file", file: { file_data: "https://example.com/a.pdf" } };
    const asked: [param: string, body: object][] = [
      ["messages[0].content[1]", { messages: [{ role: "user", content: [text, file] }] }],
      [
        "messages[1].content[0]",
        {
          messages: [
            { role: "user", content: "This:" },
            { role: "user", content: [file] },
          ],
        },
      ],
    ];
    for (const [param, body] of asked) {
      for (const path of ["/ai/chat", "/v1/chat/completions"]) {
        const { status, at } = await client.post(path, { model: "meta-llm", ...body });
        expect([status, at("error.code"), at("error.param")]).to.deep.equal([400, "invalid_request", param]);
      }
    }
    const settings = { reasoning_effort: "high", seed: 7, user: "u" };
    const ignoring = await client.post("/ai/chat", { ...question, ...settings });
    expect([ignoring.status, ignoring.headers.get("x-svc-ignored")]).to.deep.equal([
      200,
      "seed, user, reasoning_effort",
    ]);
  });

  it("takes maxTokens under both names, and refuses two that differ", async () => {
    const short = await client.post("/ai/chat", { ...question, max_tokens: 2 });
    expect(short.at("choices[0].finish_reason")).to.equal("length");
    const both = await client.post("/ai/chat", { ...question, maxTokens: 2, max_tokens: 3 });
    expect([both.status, both.at("error.code"), both.at("error.param")]).to.deep.equal([
      400,
      "invalid_request",
      "max_tokens",
    ]);
  });

  it("answers a stream at once, also with prefer_async, and says why", async () => {
    const streamed = await post({ ...question, prefer_async: true, stream: true });
    expect(streamed.headers.get("x-svc-batch")).to.equal("ineligible; reason=streamed");
    await streamed.text();
  });

  it("refuses bad requests with 400 and the path of the field", async () => {
    const user = { role: "user", content: "hi" };
    const cases: [object, string][] = [
      [{}, "messages"],
      [{ messages: [] }, "messages"],
      [{ messages: "hi" }, "messages"],
      [{ messages: [{ role: "robot", content: "x" }] }, "messages[0].role"],
      [{ messages: [{ role: "user" }] }, "messages[0].content"],
      [{ messages: [user, { role: "user", content: 5 }] }, "messages[1].content"],
      [{ messages: [{ role: "user", content: "x".repeat(400_001) }] }, "messages[0].content"],
      [{ messages: Array.from({ length: 201 }, () => user) }, "messages"],
      [{ messages: [{ role: "assistant", content: null }] }, "messages[0].content"],
      [{ messages: [{ role: "tool", content: "x" }] }, "messages[0].tool_call_id"],
      [{ messages: [user], temperature: 2.1 }, "temperature"],
      [{ messages: [user], temperature: -0.1 }, "temperature"],
      [{ messages: [user], maxTokens: 0 }, "maxTokens"],
      [{ messages: [user], maxTokens: 1.5 }, "maxTokens"],
      [{ messages: [user], stream: "yes" }, "stream"],
      [{ messages: [user], systemPrompt: 1 }, "systemPrompt"],
      [
        { messages: [user], tools: [{ type: "function", function: { name: "no spaces please" } }] },
        "tools[0].function.name",
      ],
      [{ messages: [user], tool_choice: "required" }, "tool_choice"],
      [{ messages: [user], model: 7 }, "model"],
    ];
    for (const [body, param] of cases) {
      const response = await client.post("/ai/chat", body);
      expect([response.status, response.at("error.param")], JSON.stringify(body).slice(0, 200)).to.deep.equal([
        400,
        param,
      ]);
    }
  });

  it("refuses unknown models, unconfigured providers, and unknown options", async () => {
    const unknown = await client.post("/ai/chat", { ...question, model: "gpt-0" });
    expect([unknown.status, unknown.at("error.code")]).to.deep.equal([400, "unknown_model"]);
    const streamed = await post({ ...question, model: "gpt-0", stream: true });
    expect([streamed.status, (await streamed.text()).includes("unknown_model")]).to.deep.equal([400, true]);
    const unconfigured = await client.post("/ai/chat", { ...question, model: "claude-sonnet-5-5" });
    expect([unconfigured.status, unconfigured.at("error.code")]).to.deep.equal([400, "provider_not_configured"]);
    const option = await client.post("/ai/chat", question, { headers: { "x-svc-options": "compres=true" } });
    expect([option.status, option.at("error.param")]).to.deep.equal([400, "x-svc-options"]);
    const known = await client.post("/ai/chat", question, {
      headers: { "x-svc-options": "compress=true; cache=false" },
    });
    expect(known.status).to.equal(200);
  });

  it("needs a key", async () => {
    const response = await makeClient({ url: test.url }).post("/ai/chat", question);
    expect([response.status, response.at("error.code")]).to.deep.equal([401, "missing_api_key"]);
  });

  it("counts the surfaces that a tenant names beyond 100 a day as one", async () => {
    const { tenancy, gateway } = test.platform;
    const tenantId = await tenancy.ensureTenant("many-surfaces");
    const { key } = await tenancy.createKey({ tenantId, role: "member", subject: "m" });
    const member = makeClient({ url: test.url, key });
    const call = async (surface: string) => {
      const headers = { "x-svc-surface": surface };
      expect((await member.post("/ai/embeddings", { input: "pump" }, { headers })).status).to.equal(200);
    };
    for (let n = 0; n < 110; n += 1) await call(`s${n}`);
    for (const surface of ["s0", "other", " "]) await call(surface);
    await gateway.flush();
    const rows = (await member.get("/usage?groupBy=surface")).at("data") as { surface: string; requests: number }[];
    const requests = Object.fromEntries(rows.map((row) => [row.surface, row.requests]));
    expect(rows).to.have.length(102);
    expect(requests).to.include({ s0: 2, s99: 1, other: 11, api: 1 }).and.not.to.have.property("s100");
  });

  it("records each call for its tenant only, and counts it by day, model and surface", async () => {
    const headers = { "x-svc-surface": "cli" };
    const answer = await client.post("/ai/chat", { ...question, stream: false }, { headers });
    const log = await client.get(`/ai/logs/${answer.string("logId")}`);
    expect(log.status).to.equal(200);
    expect(log.body).to.include({
      kind: "chat",
      surface: "cli",
      model: "switchyard-offline",
      requestedModel: "meta-llm",
      status: "completed",
      inputTokens: answer.at("inputTokens"),
      outputTokens: answer.at("outputTokens"),
    });
    expect(log.body).not.to.have.property("content");
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    expect((await stranger.get(`/ai/logs/${answer.string("logId")}`)).status).to.equal(404);
    const usage = await pollUntil(async () => {
      const bySurface = await client.get("/usage?groupBy=surface");
      const rows = bySurface.at("data");
      return Array.isArray(rows) ? rows.find((row) => row.surface === "cli") : undefined;
    });
    expect(usage).to.include({ requests: 1, errors: 0, inputTokens: answer.at("inputTokens") });
    const { keyId } = (await client.get(`/ai/logs/${answer.string("logId")}`)).body as { keyId: string };
    const byKey = (await client.get("/usage?groupBy=key")).at("data") as { key: string }[];
    expect(byKey.map(({ key }) => key)).to.include(keyId);
    expect((await stranger.get("/usage")).at("data")).to.deep.equal([]);
    expect((await client.get("/usage?from=2026-02-01&to=2026-01-01")).status).to.equal(400);
    expect((await client.get("/usage?from=yesterday")).status).to.equal(400);
    expect((await client.get("/ai/logs/log_nope")).status).to.equal(404);
  });
});
