import { expect } from "chai";
import { makeClient } from "../support/http-client.ts";
import { type ProviderPlatform, startProviderPlatform } from "../support/provider-platform.ts";

const names = ["find", "book", "cancel"];
const ofChat = (name: string) => ({ type: "function", function: { name } });
const ofResponses = (name: string) => ({ type: "function", name });
const ofClaude = (name: string) => ({ name, input_schema: { type: "object" } });
const modes = ["auto", "required"] as const;
type Mode = (typeof modes)[number];

/** The two forms of the choice: OpenAI's chat completions have another one than its Responses API. */
const chatChoice = (mode: Mode, allowed: string[]) => ({
  type: "allowed_tools",
  allowed_tools: { mode, tools: allowed.map(ofChat) },
});
const responsesChoice = (mode: string, allowed: object[]) => ({ type: "allowed_tools", mode, tools: allowed });
const allowed = ["find", "cancel"];

/** What each server gets: OpenAI's own all tools and the choice, another one the allowed tools alone. */
const servers: Record<string, (mode: Mode) => { tools: unknown; tool_choice: unknown }> = {
  "gpt-5.4-nano": (mode) => ({ tools: names.map(ofChat), tool_choice: chatChoice(mode, allowed) }),
  "gpt-6-astra": (mode) => ({
    tools: names.map((name) => ({
      ...ofResponses(name),
      parameters: { type: "object", properties: {} },
      strict: false,
    })),
    tool_choice: responsesChoice(mode, allowed.map(ofResponses)),
  }),
  "claude-haiku-5-5": (mode) => ({
    tools: allowed.map((name, at) => ({
      ...ofClaude(name),
      ...(at === allowed.length - 1 && { cache_control: { type: "ephemeral" } }),
    })),
    tool_choice: { type: mode === "auto" ? "auto" : "any" },
  }),
  small: (mode) => ({ tools: allowed.map(ofChat), tool_choice: mode }),
  "lab/lab-1": (mode) => ({
    tools: allowed.map((name) => ({
      ...ofResponses(name),
      parameters: { type: "object", properties: {} },
      strict: false,
    })),
    tool_choice: mode,
  }),
};

describe("allowed tools", function () {
  this.timeout(60_000);
  let harness: ProviderPlatform;
  before(async () => {
    harness = await startProviderPlatform(({ origin, url }) => ({
      OPENAI_API_KEY: "sk-platform-0123456789abcdef",
      OPENAI_BASE_URL: url,
      ANTHROPIC_API_KEY: "sk-ant-platform-0123456789",
      ANTHROPIC_BASE_URL: origin,
      EDGE_BASE_URL: url,
      EDGE_MODEL: "small",
      FETCH_ALLOW_ORIGINS: origin,
    }));
    const { test, upstream } = harness;
    const model = { id: "lab-1", type: "chat", contextWindow: 9_000, inputUsdPerMTok: 1, outputUsdPerMTok: 1 };
    const custom = { baseUrl: upstream.url, key: "sk-lab-0123456789", wire: "openai-responses", models: [model] };
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    expect((await admin.request("PUT", "/ai/providers/custom/lab", { body: custom })).status).to.equal(200);
  });
  beforeEach(() => harness.upstream.reset());
  after(() => harness.close());

  const sent = () => {
    const body = harness.upstream.requests.at(-1)?.body;
    return { tools: body?.tools, tool_choice: body?.tool_choice };
  };
  const ask = (path: string, body: object) => {
    const about =
      path === "/v1/responses" ? { input: "Find it." } : { messages: [{ role: "user", content: "Find it." }] };
    return harness.client.post(path, { ...about, ...body });
  };

  for (const [model, expected] of Object.entries(servers)) {
    it(`of ${model} reach the model as its server has them, from every surface`, async () => {
      for (const mode of modes) {
        for (const path of ["/v1/chat/completions", "/ai/chat"]) {
          const body = { model, tools: names.map(ofChat), tool_choice: chatChoice(mode, allowed) };
          const response = await ask(path, body);
          expect(response.status, response.text).to.equal(200);
          expect(sent(), `${path} ${mode}`).to.deep.equal(expected(mode));
        }
        const tool_choice = responsesChoice(mode, allowed.map(ofResponses));
        const response = await ask("/v1/responses", { model, tools: names.map(ofResponses), tool_choice });
        expect(response.status, response.text).to.equal(200);
        expect(sent(), `/v1/responses ${mode}`).to.deep.equal(expected(mode));
        expect(response.at("tool_choice"), "the response repeats the choice").to.deep.equal(tool_choice);
        expect(response.at("tools")).to.have.lengthOf(names.length);
      }
    });
  }

  it("are those of groups and custom tools too, by the names that are offered", async () => {
    const tools = [
      { type: "custom", name: "patch" },
      { type: "namespace", name: "agents", tools: names.map(ofResponses) },
    ];
    const chosen = [
      { type: "custom", name: "patch" },
      { ...ofResponses("find"), namespace: "agents" },
    ];
    const response = await ask("/v1/responses", {
      model: "small",
      tools,
      tool_choice: responsesChoice("auto", chosen),
    });
    expect(response.status, response.text).to.equal(200);
    const offered = sent().tools as { function: { name: string } }[]; // the fake has checked the shape
    expect(offered.map((tool) => tool.function.name)).to.deep.equal(["patch", "agents__find"]);
  });

  it("that do not run here are left out and named; if none is left, the model calls none", async () => {
    const search = { type: "web_search" };
    const tools = [search, ofResponses("find")];
    const both = responsesChoice("required", [search, ofResponses("find")]);
    const mixed = await ask("/v1/responses", { model: "small", tools, tool_choice: both });
    expect(mixed.headers.get("x-svc-ignored")).to.equal("tools[0], tool_choice.tools[0]");
    expect(mixed.at("tool_choice.tools")).to.deep.equal([ofResponses("find")]);
    expect(sent()).to.deep.equal({ tools: [ofChat("find")], tool_choice: "required" });
    for (const tool_choice of [responsesChoice("auto", [search]), responsesChoice("none", [ofResponses("find")])]) {
      await ask("/v1/responses", { model: "small", tools, tool_choice });
      expect(sent()).to.deep.equal({ tools: [ofChat("find")], tool_choice: "none" });
    }
    const demanded = { model: "small", tools, tool_choice: responsesChoice("required", [search]) };
    const refused = await ask("/v1/responses", demanded);
    expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "tool_choice"]);
  });

  it("are a 400 that names the field when they are none of the tools, or none at all", async () => {
    const wrong = [
      ["/v1/chat/completions", names.map(ofChat), chatChoice("auto", ["find", "fly"]), "tool_choice"],
      ["/v1/chat/completions", names.map(ofChat), chatChoice("auto", []), "tool_choice.allowed_tools.tools"],
      ["/v1/responses", names.map(ofResponses), responsesChoice("auto", [ofResponses("fly")]), "tool_choice"],
      ["/v1/responses", names.map(ofResponses), responsesChoice("auto", []), "tool_choice.tools"],
      ["/v1/responses", names.map(ofResponses), responsesChoice("often", [ofResponses("find")]), "tool_choice.mode"],
    ] as const;
    for (const [path, tools, tool_choice, param] of wrong) {
      const { status, at, text } = await ask(path, { model: "small", tools, tool_choice });
      expect([status, at("error.param")], text).to.deep.equal([400, param]);
    }
    expect(harness.upstream.requests).to.have.lengthOf(0);
  });
});

describe("many tools", function () {
  this.timeout(60_000);
  let harness: ProviderPlatform;
  before(async () => {
    const envOf = ({ url }: { url: string }) => ({ EDGE_BASE_URL: url, EDGE_MODEL: "small" });
    harness = await startProviderPlatform(envOf, { workers: false });
  });
  after(() => harness.close());

  const many = (count: number, toTool: (name: string) => object) =>
    Array.from({ length: count }, (_, n) => toTool(`tool_${n}`));
  const input = "Find it.";
  const messages = [{ role: "user", content: input }];
  const bodies: [path: string, toTool: (name: string) => object, body: object][] = [
    ["/v1/responses", ofResponses, { input }],
    ["/v1/chat/completions", ofChat, { messages }],
    ["/ai/chat", ofChat, { messages }],
    ["/v1/messages", ofClaude, { messages, max_tokens: 50 }],
  ];
  for (const [path, toTool, body] of bodies) {
    it(`${path} takes 1,024 of them, and names the field of one more`, async () => {
      const response = await harness.client.post(path, { model: "small", ...body, tools: many(1_024, toTool) });
      expect(response.status, response.text.slice(0, 500)).to.equal(200);
      expect(harness.upstream.requests.at(-1)?.body.tools).to.have.lengthOf(1_024);
      const refused = await harness.client.post(path, { model: "small", ...body, tools: many(1_025, toTool) });
      expect(refused.status).to.equal(400);
      expect(refused.string("error.message")).to.match(/^tools /);
    });
  }

  it("counts those of groups and of the input together", async () => {
    const group = (name: string) => ({ type: "namespace", name, tools: many(600, ofResponses) });
    const one = await harness.client.post("/v1/responses", { model: "small", input, tools: [group("a")] });
    expect(one.status, one.text.slice(0, 500)).to.equal(200);
    const inInput = [{ type: "additional_tools", tools: [group("b")] }, ...messages];
    for (const body of [
      { input, tools: [group("a"), group("b")] },
      { input: inInput, tools: [group("a")] },
    ]) {
      const { status, at } = await harness.client.post("/v1/responses", { model: "small", ...body });
      expect([status, at("error.param")]).to.deep.equal([400, "tools"]);
    }
  });
});
