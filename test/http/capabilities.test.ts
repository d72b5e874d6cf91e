import { expect } from "chai";
import { efforts, settingFields } from "../../src/gateway/providers/model.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

type Model = {
  id: string;
  provider: string;
  type: string;
  supportedFeatures: string[];
  reasoningEfforts?: string[];
  settings: string[];
  temperature: { min: number; max: number };
};

const question = { role: "user", content: "What does a lease protect?" };
const png = "iVBORw0KGgo=";
const pdf = "JVBERi0xLjc=";
const tools = [{ type: "function", function: { name: "find", parameters: { type: "object" } } }];
const schema = { type: "object", properties: { answer: { type: "string" } } };
const withPart = (part: object) => ({
  messages: [{ role: "user", content: [{ type: "text", text: "What is this?" }, part] }],
});
const image = { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } };
const file = { type: "file", file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${pdf}` } };

/** Where a wire has what was asked for: the path in the body, and the value there. */
type Place = [path: string, value: unknown];
type Capability = {
  /** As `GET /ai/models` lists it. */
  feature: string;
  body: object;
  /** What a refusal names. */
  param: string;
  sent: { "/v1/chat/completions": Place; "/v1/responses": Place; "/v1/messages": Place };
};

const chat = "/v1/chat/completions";
const responses = "/v1/responses";
const claude = "/v1/messages";
const capabilities: Record<string, Capability> = {
  pictures: {
    feature: "vision",
    body: withPart(image),
    param: "messages[0].content[1]",
    sent: {
      [chat]: ["messages[0].content[1].image_url.url", image.image_url.url],
      [responses]: ["input[0].content[1].image_url", image.image_url.url],
      [claude]: ["messages[0].content[1].source.data", png],
    },
  },
  files: {
    feature: "files",
    body: withPart(file),
    param: "messages[0].content[1]",
    sent: {
      [chat]: ["messages[0].content[1].file.file_data", file.file.file_data],
      [responses]: ["input[0].content[1].file_data", file.file.file_data],
      [claude]: ["messages[0].content[1].source.data", pdf],
    },
  },
  tools: {
    feature: "tool_use",
    body: { tools },
    param: "tools",
    sent: {
      [chat]: ["tools[0].function.name", "find"],
      [responses]: ["tools[0].name", "find"],
      [claude]: ["tools[0].name", "find"],
    },
  },
  "a demanded tool call": {
    feature: "tool_choice",
    body: { tools, tool_choice: "required" },
    param: "tool_choice",
    sent: {
      [chat]: ["tool_choice", "required"],
      [responses]: ["tool_choice", "required"],
      [claude]: ["tool_choice.type", "any"],
    },
  },
  "a JSON schema": {
    feature: "json_schema",
    body: { response_format: { type: "json_schema", json_schema: { name: "answer", schema } } },
    param: "response_format",
    sent: {
      [chat]: ["response_format.json_schema.schema", schema],
      [responses]: ["text.format.schema", schema],
      [claude]: ["output_config.format.schema", schema],
    },
  },
  "any JSON": {
    feature: "json_object",
    body: { response_format: { type: "json_object" } },
    param: "response_format",
    sent: {
      [chat]: ["response_format.type", "json_object"],
      [responses]: ["text.format.type", "json_object"],
      [claude]: ["", ""],
    },
  },
};

/** Settings by their fields, and where each wire has them; one without a place on it is not listed for its models. */
const settings: Record<string, { value: unknown; [chat]: Place; [claude]?: Place; body?: object; named?: string }> = {
  seed: { value: 7, [chat]: ["seed", 7] },
  verbosity: { value: "low", [chat]: ["verbosity", "low"] },
  parallel_tool_calls: {
    value: false,
    body: { tools },
    [chat]: ["parallel_tool_calls", false],
    [claude]: ["tool_choice.disable_parallel_tool_use", true],
  },
  metadata: { value: { a: "b" }, [chat]: ["metadata", { a: "b" }] },
  user: { value: "u", [chat]: ["user", "u"], [claude]: ["metadata.user_id", "u"] },
  safety_identifier: { value: "s", [chat]: ["safety_identifier", "s"], [claude]: ["metadata.user_id", "s"] },
  service_tier: { value: "default", [chat]: ["service_tier", "default"], [claude]: ["service_tier", "standard_only"] },
  presence_penalty: { value: 0.5, [chat]: ["presence_penalty", 0.5] },
  frequency_penalty: { value: 0.5, [chat]: ["frequency_penalty", 0.5] },
  logit_bias: { value: { 50256: -5 }, [chat]: ["logit_bias", { 50256: -5 }] },
  prediction: {
    value: { type: "content", content: "x" },
    [chat]: ["prediction", { type: "content", content: "x" }],
  },
  logprobs: { value: true, [chat]: ["logprobs", true] },
  top_logprobs: { value: 2, body: { logprobs: true }, named: "logprobs, top_logprobs", [chat]: ["top_logprobs", 2] },
  prompt_cache_key: {
    value: "k",
    [chat]: ["prompt_cache_key", "k"],
    [claude]: ["messages[0].content[0].cache_control.type", "ephemeral"],
  },
};

describe("what each model of the catalogue takes", () => {
  let fake: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  let models: Model[];
  before(async function () {
    this.timeout(60_000);
    fake = await startFakeProvider();
    fake.setDefault({ pieces: ['{"answer": "a job"}'] });
    test = await startPlatform({
      workers: false,
      env: {
        EDGE_BASE_URL: fake.url,
        EDGE_MODEL: "llama-test",
        OPENAI_API_KEY: "sk-platform-openai",
        OPENAI_BASE_URL: fake.url,
        ANTHROPIC_API_KEY: "sk-ant-platform",
        ANTHROPIC_BASE_URL: fake.origin,
        RATE_LIMIT_RPM: "10000",
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
    const listed = (await client.get("/ai/models")).at("models") as Model[]; // the client checked the shape
    models = listed.filter(({ type }) => type !== "embedding");
    expect(models.length).to.be.above(25);
  });
  after(async () => {
    await test.close();
    await fake.close();
  });

  /** A call, with the one request that reached the provider, or none. */
  const ask = async (model: Model, body: object) => {
    fake.requests.length = 0;
    const response = await client.post("/v1/chat/completions", { model: model.id, messages: [question], ...body });
    expect(fake.requests.length, response.text).to.equal(response.status === 200 ? 1 : 0);
    const [request] = fake.requests;
    return { response, ignored: response.headers.get("x-svc-ignored"), sent: request?.body, wire: request?.path ?? "" };
  };

  for (const [name, { feature, body, param, sent }] of Object.entries(capabilities)) {
    it(`${name}: they are sent on, or a 400 names the part`, async () => {
      for (const model of models) {
        const asked = await ask(model, body);
        if (!model.supportedFeatures.includes(feature)) {
          expect([asked.response.status, asked.response.at("error.param")], model.id).to.deep.equal([400, param]);
          continue;
        }
        expect(asked.response.status, `${model.id}: ${asked.response.text}`).to.equal(200);
        const [path, value] = sent[asked.wire as keyof typeof sent]; // the fake serves no other
        expect(valueAt(asked.sent, path), `${model.id} ${asked.wire}`).to.deep.equal(value);
      }
    });
  }

  it("efforts: each is sent as it is, or the next lower one is, and named", async () => {
    for (const model of models) {
      for (const effort of efforts) {
        const { response, ignored, sent, wire } = await ask(model, { reasoning_effort: effort });
        expect(response.status, response.text).to.equal(200);
        const { reasoningEfforts: taken = [] } = model;
        const lower = efforts.slice(0, efforts.indexOf(effort)).findLast((one) => taken.includes(one)) ?? taken[0];
        const used = taken.includes(effort) ? effort : lower;
        const named = used === undefined ? "reasoning_effort" : `reasoning_effort;used=${used}`;
        expect(ignored, `${model.id} ${effort}`).to.equal(used === effort ? null : named);
        if (wire === chat) expect(sent?.reasoning_effort, `${model.id} ${effort}`).to.equal(used);
        else
          expect(effortOfMessages(sent), `${model.id} ${effort}`).to.equal(
            used === "none" || isBudgeted(model) ? undefined : used,
          );
      }
    }
  });

  it("tools while reasoning: both are sent", async () => {
    for (const model of models.filter(({ reasoningEfforts }) => reasoningEfforts?.includes("high"))) {
      const { response, ignored, sent, wire } = await ask(model, {
        tools,
        reasoning_effort: "high",
        max_tokens: 8_000,
      });
      expect([response.status, ignored], `${model.id}: ${response.text}`).to.deep.equal([200, null]);
      expect(wire).to.equal({ openai: responses, anthropic: claude, edge: chat }[model.provider]);
      expect(valueAt(sent, "tools[0]"), model.id).to.not.equal(undefined);
      const effort =
        wire === chat ? sent?.reasoning_effort : (valueAt(sent, "reasoning.effort") ?? effortOfMessages(sent));
      if (isBudgeted(model)) expect(valueAt(sent, "thinking.budget_tokens"), model.id).to.be.above(1_000);
      else expect(effort, model.id).to.equal("high");
    }
  });

  it("temperatures: one in the range is sent, another is adjusted and named", async () => {
    for (const model of models) {
      const { min, max } = model.temperature;
      for (const temperature of [0.3, 2]) {
        const { ignored, sent } = await ask(model, { temperature });
        const used = Math.min(Math.max(temperature, min), max);
        expect(ignored, model.id).to.equal(used === temperature ? null : `temperature;used=${used}`);
        expect(sent?.temperature, model.id).to.equal(min === max ? undefined : used);
      }
    }
  });

  it("settings: each is sent on, or left out and named", async () => {
    expect(Object.keys(settings)).to.have.members(Object.values(settingFields));
    for (const model of models) {
      for (const [field, { value, body, named = field, ...places }] of Object.entries(settings)) {
        const { response, ignored, sent, wire } = await ask(model, { [field]: value, ...body });
        const isTaken = model.settings.includes(field);
        expect([response.status, ignored], `${model.id} ${field}`).to.deep.equal([200, isTaken ? null : named]);
        const [path = field, there] = placeOn(places, wire, field) ?? [];
        expect(valueAt(sent, path), `${model.id} ${field}`).to.deep.equal(isTaken ? there : undefined);
      }
    }
  });
});

/** The Responses API has the verbosity elsewhere, and the others as chat completions have them. */
function placeOn(places: { [chat]: Place; [claude]?: Place }, wire: string, field: string): Place | undefined {
  if (wire === claude) return places[claude];
  return wire === responses && field === "verbosity" ? ["text.verbosity", "low"] : places[chat];
}

const effortOfMessages = (body: unknown) => valueAt(body, "output_config.effort");
/** Those think by a budget of tokens (test/unit/anthropic-settings.test.ts). */
const isBudgeted = ({ id }: Model) => /^claude-\w+-4-5\b/.test(id);
