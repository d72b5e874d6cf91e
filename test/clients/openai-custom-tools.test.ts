import { expect } from "chai";
import OpenAI from "openai";
import type { ResponseCreateParamsNonStreaming, ResponseInputItem } from "openai/resources/responses/responses";
import { describeTargets, notBy } from "../support/describe-targets.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import type { TestPlatform } from "../support/start-platform.ts";

const patch = "*** Begin Patch\n*** End Patch";
const applyPatch = {
  type: "custom" as const,
  name: "apply_patch",
  description: "Edits files",
  format: { type: "grammar" as const, syntax: "lark" as const, definition: "start: /.+/s" },
};
const spawn = { type: "function" as const, name: "spawn", description: "Starts another agent", strict: false };
const group = { type: "namespace" as const, name: "collaboration", description: "Agents" };
/** Coding agents send all of their tools as an item of the input. */
const inInput = (...tools: object[]) => ({ type: "additional_tools", role: "developer", tools });

const leftOut = {
  "takes what a model wrote that is no JSON as the input": notBy(
    "Anthropic's calls have an object",
    "anthropic-messages",
  ),
};

describeTargets("custom tools and groups of tools of the Responses API", leftOut, function (target) {
  this.timeout(30_000);
  let upstream: FakeProvider;
  let test: TestPlatform;
  let openai: OpenAI;
  before(async () => {
    upstream = await startFakeProvider();
    test = await target.start({ workers: false, env: { EDGE_BASE_URL: upstream.url, EDGE_MODEL: "small" } });
    openai = new OpenAI({ baseURL: `${test.url}/v1`, apiKey: test.keys.member, maxRetries: 0 });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });

  /** With items that the client's types do not have. */
  const toBody = (body: object) =>
    ({ model: target.model("small"), store: false, input: "Edit it.", ...body }) as ResponseCreateParamsNonStreaming;
  const create = (body: object) => openai.responses.create(toBody(body));
  const stream = async (body: object) =>
    Array.fromAsync(await openai.responses.create({ ...toBody(body), stream: true }));
  const callWith = (name: string, json: object) => ({
    toolCalls: [{ id: "call_1", name, arguments: JSON.stringify(json) }],
  });
  const offered = () => upstream.requests.at(-1)?.body.tools as { function: { name: string; description?: string } }[];

  it("offers a custom tool as a function with a text, and returns its input as it is", async () => {
    upstream.next(callWith("apply_patch", { input: patch }), { pieces: ["Done."] });
    const asked = await create({ tools: [applyPatch] });
    expect(asked.output[0]).to.include({ type: "custom_tool_call", name: "apply_patch", input: patch });
    expect(asked.tools).to.deep.equal([applyPatch]);
    const [{ function: sent } = { function: { name: "", description: "" } }] = offered();
    expect(sent.name).to.equal("apply_patch");
    expect(sent.description).to.match(/^Edits files\n\n.*lark.*\n.*start:/);
    const result = { type: "custom_tool_call_output", call_id: "call_1", output: "patched" };
    const input = [{ role: "user", content: "Edit it." }, ...asked.output, result] as ResponseInputItem[];
    expect((await create({ tools: [applyPatch], input })).output_text).to.equal("Done.");
    expect(upstream.requests.at(-1)?.body.messages).to.deep.equal([
      { role: "user", content: "Edit it." },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            id: "call_1",
            type: "function",
            function: { name: "apply_patch", arguments: JSON.stringify({ input: patch }) },
          },
        ],
      },
      { role: "tool", content: "patched", tool_call_id: "call_1" },
    ]);
  });

  it("streams the input of a custom tool", async () => {
    upstream.next(callWith("apply_patch", { input: patch }));
    const events = await stream({ tools: [applyPatch] });
    expect(events.map(({ sequence_number: number }) => number)).to.deep.equal(events.map((_, place) => place));
    const called = events.slice(2, -1);
    expect(called.map(({ type }) => type)).to.deep.equal([
      "response.output_item.added",
      "response.custom_tool_call_input.delta",
      "response.custom_tool_call_input.done",
      "response.output_item.done",
    ]);
    expect(called[1]).to.include({ delta: patch });
    expect(called[2]).to.include({ input: patch });
    expect(called[3]).to.have.property("item").that.includes({ input: patch, status: "completed" });
  });

  it("takes what a model wrote that is no JSON as the input", async () => {
    upstream.next({ toolCalls: [{ id: "call_1", name: "apply_patch", arguments: patch }] });
    expect((await create({ tools: [applyPatch] })).output[0]).to.include({ input: patch });
  });

  it("knows the group of a tool that is called, also of tools that stand in the input", async () => {
    const groups = [
      { ...group, name: "functions", tools: [applyPatch] },
      { ...group, tools: [spawn] },
    ];
    const user = { role: "user", content: "Edit it." };
    for (const body of [{ tools: groups }, { input: [inInput(...groups), user] }]) {
      upstream.next(callWith("apply_patch", { input: patch }), callWith("collaboration__spawn", { town: "Graz" }));
      const first = await create(body);
      expect(first.output[0]).to.include({ type: "custom_tool_call", name: "apply_patch", namespace: "functions" });
      expect(offered().map((tool) => tool.function.name)).to.deep.equal(["apply_patch", "collaboration__spawn"]);
      const { output } = await create(body);
      expect(output[0]).to.include({ type: "function_call", name: "spawn", namespace: "collaboration" });
      const result = { type: "function_call_output", call_id: "call_1", output: "ok" };
      const [more] = "input" in body ? body.input : [];
      await create({ ...body, input: [...(more ? [more] : []), user, ...output, result] });
      const sent = upstream.requests.at(-1)?.body.messages?.at(-2);
      expect(sent).to.have.nested.property("tool_calls[0].function.name", "collaboration__spawn");
    }
  });

  it("shortens a name that no provider would take, in the same way each time", async () => {
    const long = { ...group, name: `mcp.${"a".repeat(80)}`, tools: [spawn] };
    await create({ tools: [long] });
    const name = offered()[0]?.function.name ?? "";
    expect(name)
      .to.match(/^mcp_a+_[0-9A-Z]{16}$/)
      .and.to.have.lengthOf(64);
    upstream.next(callWith(name, {}));
    expect((await create({ tools: [long] })).output[0]).to.include({ name: "spawn", namespace: long.name });
  });

  it("can be told which custom tool to call", async () => {
    await create({ tools: [applyPatch, spawn], tool_choice: { type: "custom", name: "apply_patch" } });
    const choice = { type: "function", function: { name: "apply_patch" } };
    expect(upstream.requests.at(-1)?.body.tool_choice).to.deep.equal(choice);
  });

  it("names the tools of a group that run at OpenAI, and rejects too many functions", async () => {
    const asked = create({ tools: [{ ...group, tools: [spawn, { type: "web_search" }] }] }) as ReturnType<
      typeof openai.responses.create
    >;
    const { response } = await asked.withResponse();
    expect(response.headers.get("x-svc-ignored")).to.include("tools[0].tools[1]");
    const many = Array.from({ length: 600 }, (_, n) => ({ ...spawn, name: `spawn_${n}` }));
    const error = await create({ tools: [...many, { ...group, tools: many }] }).catch((thrown: unknown) => thrown);
    expect(error).to.include({ status: 400, param: "tools" });
  });
});
