import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, type ApiEvent, makeClient, valueAt } from "../support/http-client.ts";
import { postRaw } from "../support/raw-http.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const messages = [{ role: "user", content: "Which port, and since when?" }];
const schema = {
  type: "object",
  properties: {
    ports: { type: "array", items: { $ref: "#/$defs/port" } },
    since: { type: ["string", "null"] },
  },
  required: ["ports", "since"],
  additionalProperties: false,
  $defs: { port: { type: "integer", minimum: 1 } },
};
const format = { type: "json_schema", json_schema: { name: "ports", schema, strict: true } };
const fitting = JSON.stringify({ ports: [80, 443], since: null });
const usage = { prompt_tokens: 20, completion_tokens: 10 };

const surfaces = ["/ai/chat", "/v1/chat/completions"];
const models = { edge: "llama-test", openai: "gpt-4.1", anthropic: "claude-opus-5" };
/** By wire: the model, what else the call has, and where the wire has the schema. */
const wires = {
  "openai-chat of the edge server": [models.edge, {}, "response_format.json_schema.schema"],
  "openai-chat": [models.openai, {}, "response_format.json_schema.schema"],
  "openai-responses": [models.openai, { metadata: { order: "o-17" } }, "text.format.schema"],
  "anthropic-messages": [models.anthropic, {}, "output_config.format.schema"],
} as const;

describe("an answer with a schema", () => {
  let fake: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  before(async function () {
    this.timeout(60_000);
    fake = await startFakeProvider();
    test = await startPlatform({
      workers: false,
      env: {
        EDGE_BASE_URL: fake.url,
        EDGE_MODEL: models.edge,
        OPENAI_API_KEY: "sk-platform-openai",
        OPENAI_BASE_URL: fake.url,
        ANTHROPIC_API_KEY: "sk-ant-platform",
        ANTHROPIC_BASE_URL: fake.origin,
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  afterEach(() => fake.reset());
  after(async () => {
    await test.close();
    await fake.close();
  });

  const ask = (path: string, body: object, headers = {}) =>
    client.post(path, { model: models.openai, messages, response_format: format, ...body }, { headers });
  const stream = async (path: string, given: object) => {
    const body = { messages, response_format: format, stream: true, ...given };
    const { events } = await client.events("POST", path, { body });
    const all: ApiEvent["data"][] = [];
    for await (const { data } of events) all.push(data);
    return all;
  };
  const textOf = (events: readonly unknown[], path: string) =>
    events
      .map((event) => valueAt(event, path === "/ai/chat" ? "delta.content" : "choices[0].delta.content") ?? "")
      .join("");

  for (const [wire, [model, more, place]] of Object.entries(wires)) {
    const given = { model, ...more };
    it(`that matches it is passed on, at once and as a stream (${wire})`, async () => {
      fake.setDefault({ pieces: [fitting.slice(0, 9), fitting.slice(9)] });
      for (const path of surfaces) {
        expect((await ask(path, given)).at("choices[0].message.content")).to.equal(fitting);
        expect(textOf(await stream(path, given), path)).to.equal(fitting);
      }
      for (const { body } of fake.requests) expect(valueAt(body, place)).to.deep.equal(schema);
    });

    const misfits: [text: string, path: string][] = [
      ["The ports are 80 and 443.", ""],
      ['{"ports": [80', ""],
      ['{"ports": [80, "443"], "since": null}', "ports[1]"],
      ['{"ports": []}', "since"],
      ["null", ""],
    ];
    for (const [text, path] of misfits) {
      it(`that does not match it is an error of its own, and charged: ${text} (${wire})`, async () => {
        fake.setDefault({ pieces: [text], usage });
        for (const surface of surfaces) {
          const answered = await ask(surface, given);
          expect([answered.status, answered.at("error.code"), answered.at("error.details.path")]).to.deep.equal([
            502,
            "response_format_mismatch",
            path,
          ]);
          expect(answered.string("error.details.problem")).not.to.equal("");
          const events = await stream(surface, given);
          expect(textOf(events, surface)).to.equal(text);
          expect(valueAt(events.at(-1), "error.code")).to.equal("response_format_mismatch");
        }
        expect(fake.requests, "each is asked once").to.have.length(2 * surfaces.length);
      });
    }
  }

  it("that does not match is in the ledger as failed, with its usage and cost", async () => {
    fake.setDefault({ pieces: ["no"], usage });
    const headers = { "x-svc-surface": "mismatch" };
    await ask("/ai/chat", {}, headers);
    const body = { model: models.openai, messages, response_format: format, stream: true };
    await postRaw(`${test.url}/ai/chat`, { key: test.keys.member, body, headers });
    await test.platform.gateway.flush();
    const rows = (await client.get("/usage?groupBy=surface")).at("data");
    const row = Array.isArray(rows) && rows.find(({ surface }) => surface === "mismatch");
    const costUsd = (2 * (20 * 2 + 10 * 8)) / 1e6; // gpt-4.1: 2 and 8 USD a million
    expect(row).to.deep.include({ requests: 2, errors: 2, inputTokens: 40, outputTokens: 20, costUsd });
  });

  it("that is cut, or calls a tool, is passed on as it is", async () => {
    fake.next({ pieces: [fitting.slice(0, 9)], finishReason: "length" });
    expect((await ask("/ai/chat", {})).at("choices[0].finish_reason")).to.equal("length");
    fake.next({ toolCalls: [{ id: "call_1", name: "find", arguments: "{}" }] });
    const tools = [{ type: "function", function: { name: "find", parameters: { type: "object" } } }];
    expect((await ask("/ai/chat", { tools })).at("choices[0].finish_reason")).to.equal("tool_calls");
  });

  it("is kept in the cache only if it matches", async () => {
    const cached = { "x-svc-options": "cache=true" };
    fake.next({ pieces: ["no"] }, { pieces: [fitting] });
    const question = { messages: [{ role: "user", content: "Is this cached?" }] };
    expect((await ask("/ai/chat", question, cached)).status).to.equal(502);
    expect((await ask("/ai/chat", question, cached)).at("cached")).to.equal(false);
    expect((await ask("/ai/chat", question, cached)).at("cached")).to.equal(true);
  });

  it("has no fallback for one that does not match", async () => {
    fake.setDefault({ pieces: ["no"] });
    expect((await ask("/ai/chat", { model: "auto" })).at("error.code")).to.equal("response_format_mismatch");
    expect(fake.requests).to.have.length(1);
  });

  it("cannot hold the server up by a schema that takes long to check", async () => {
    const slow = { type: "object", properties: { name: { type: "string", pattern: "^(a+)+$" } } };
    fake.setDefault({ pieces: [JSON.stringify({ name: `${"a".repeat(50)}!` })] });
    const held = ask("/ai/chat", {
      response_format: { type: "json_schema", json_schema: { name: "slow", schema: slow } },
    });
    expect((await client.get("/healthz")).status).to.equal(200);
    // On a machine that is too busy it is not found out, which is said.
    expect((await held).at("error.code")).to.be.oneOf(["response_format_mismatch", "unavailable"]);
  }).timeout(20_000);

  const circle = { $defs: { a: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" };
  const wide = { type: "object", enum: Array.from({ length: 6_000 }, (_, n) => n) };
  const ofSchema = (given: unknown) => ({ type: "json_schema", json_schema: { name: "bad", schema: given } });
  const refused: [string, unknown][] = [
    ["response_format.type", { type: "yaml" }],
    ["response_format.json_schema", { type: "json_schema" }],
    ["response_format.json_schema.name", { type: "json_schema", json_schema: { schema } }],
    ["response_format.json_schema.schema", { type: "json_schema", json_schema: { name: "none" } }],
    ["response_format.json_schema.schema", ofSchema("object")],
    ["response_format", ofSchema(wide)],
    ["response_format.json_schema.schema", ofSchema(circle)],
    ["response_format.json_schema.schema", ofSchema({ type: "porridge" })],
  ];
  for (const [param, given] of refused) {
    it(`is refused before the call when ${param} is wrong: ${JSON.stringify(given).slice(0, 60)}`, async () => {
      for (const path of surfaces) {
        const answered = await ask(path, { response_format: given });
        expect([answered.status, answered.at("error.param")], answered.text).to.deep.equal([400, param]);
      }
      expect(fake.requests).to.have.length(0);
    });
  }
});
