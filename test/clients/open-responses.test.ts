import { expect } from "chai";
import type { z } from "zod";
import type { Behaviour } from "../support/fake-provider/behaviour.ts";
import { pictureOf } from "../support/media.ts";
import { eventShape, responseShape, type ShapedResponse } from "../support/open-responses.ts";
import { type ProviderPlatform, startProviderPlatform } from "../support/provider-platform.ts";

const offline = "switchyard-offline";
/** Models by how they are reached. */
const models = {
  "the offline model": offline,
  "OpenAI's chat completions": "gpt-5.4-nano",
  "OpenAI's Responses API": "gpt-6-astra",
  "Anthropic's Messages API": "claude-haiku-5-5",
} as const;

const picture = pictureOf(24, 16);
const weather = {
  type: "function",
  name: "get_weather",
  description: "The weather of a town",
  parameters: { type: "object", properties: { town: { type: "string" } }, required: ["town"] },
};
const call: Behaviour = { toolCalls: [{ id: "call_1", name: "get_weather", arguments: '{"town":"Graz"}' }] };
const message = (role: string, content: unknown) => ({ type: "message", role, content });

const textOf = ({ output }: ShapedResponse) =>
  output
    .flatMap((one) => (one.type === "message" ? one.content : []))
    .map((part) => ("text" in part ? part.text : ""))
    .join("");

type Case = {
  body: object;
  /** What the model behind does; the offline model does what it does. */
  said?: Behaviour;
  /** What of the request its server must have got. */
  sent?: readonly string[];
  check(response: ShapedResponse, by: { isOffline: boolean }): void;
};

/** What the specification's own compliance suite looks at, and besides it what the responses say. */
const cases: Record<string, Case> = {
  "a text": {
    body: { input: [message("user", "Who are you?")] },
    said: { pieces: ["Good ", "morning."] },
    sent: ["Who are you?"],
    check(response, { isOffline }) {
      expect(textOf(response)).to.match(isOffline ? /I am switchyard-offline/ : /^Good morning\.$/);
    },
  },
  "a system prompt": {
    body: { input: [message("system", "The ferry leaves at seven."), message("user", "When does the ferry leave?")] },
    said: { pieces: ["At seven."] },
    sent: ["The ferry leaves at seven.", "When does the ferry leave?"],
    check: (response) => expect(textOf(response)).to.include("seven"),
  },
  "a tool call": {
    body: { input: [message("user", "How is the weather in Graz?")], tools: [weather] },
    said: call,
    sent: ["get_weather", "How is the weather in Graz?"],
    check({ output, tools }) {
      const [called] = output.filter((one) => one.type === "function_call");
      expect(called).to.include({ name: "get_weather", status: "completed" });
      expect(JSON.parse(called?.arguments ?? "").town).to.include("Graz");
      expect(called?.call_id).to.be.a("string").that.is.not.equal("");
      expect(tools.map(({ name }) => name)).to.deep.equal(["get_weather"]);
    },
  },
  "the result of a tool": {
    body: {
      input: [
        message("user", "How is the weather in Graz?"),
        { type: "function_call", call_id: "call_1", name: "get_weather", arguments: '{"town":"Graz"}' },
        { type: "function_call_output", call_id: "call_1", output: "The weather in Graz is hail." },
      ],
      tools: [weather],
    },
    said: { pieces: ["It ", "is hail."] },
    sent: ["The weather in Graz is hail.", "call_1"],
    check: (response) => expect(textOf(response)).to.include("hail"),
  },
  "a picture": {
    body: {
      input: [
        message("user", [
          { type: "input_text", text: "What does this show?" },
          { type: "input_image", image_url: picture },
        ]),
      ],
    },
    said: { pieces: ["A ", "quay."] },
    sent: [picture.slice(picture.indexOf(",") + 1)],
    check(response, { isOffline }) {
      expect(textOf(response)).to.include(isOffline ? "a PNG of 24 by 16 pixels" : "A quay.");
    },
  },
  "several turns": {
    body: {
      input: [
        message("user", "My boat is called Merlin."),
        message("assistant", "Noted."),
        message("user", "What is my boat called?"),
      ],
    },
    said: { pieces: ["Merlin."] },
    sent: ["My boat is called Merlin.", "Noted.", "What is my boat called?"],
    check: (response) => expect(textOf(response)).to.include("Merlin"),
  },
  "a schema": {
    body: {
      input: "Which town is it? The town is Graz.",
      text: {
        format: {
          type: "json_schema",
          name: "place",
          schema: { type: "object", properties: { town: { type: "string" } }, required: ["town"] },
        },
      },
    },
    said: { pieces: ['{"town":', '"Graz"}'] },
    sent: ["town"],
    check: (response, { isOffline }) => {
      const place = JSON.parse(textOf(response)) as { town: string };
      expect(place).to.have.all.keys("town");
      expect(place.town).to.match(isOffline ? /The town is Graz\.$/ : /^Graz$/);
    },
  },
  "some of its tools": {
    body: {
      input: [message("user", "How is the weather in Graz?")],
      tools: [weather, { type: "function", name: "get_time" }],
      tool_choice: { type: "allowed_tools", tools: [{ type: "function", name: "get_weather" }] },
    },
    said: call,
    sent: ["get_weather"],
    check({ output, tool_choice: choice }) {
      expect(output.map((one) => one.type === "function_call" && one.name)).to.deep.equal(["get_weather"]);
      expect(choice).to.deep.equal({
        type: "allowed_tools",
        mode: "auto",
        tools: [{ type: "function", name: "get_weather" }],
      });
    },
  },
};

/** What a value is by the specification. */
function shaped<S extends z.ZodType>(shape: S, value: unknown): z.output<S> {
  const { success, data, error } = shape.safeParse(value);
  if (!success) throw new Error(`${error.message}\n${JSON.stringify(value)}`);
  return data;
}

describe("the specification Open Responses", function () {
  this.timeout(60_000);
  let harness: ProviderPlatform;
  before(async () => {
    harness = await startProviderPlatform(
      ({ origin, url }) => ({
        OPENAI_API_KEY: "sk-platform-openai-0123456789",
        OPENAI_BASE_URL: url,
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789",
        ANTHROPIC_BASE_URL: origin,
      }),
      { workers: false },
    );
  });
  beforeEach(() => harness.upstream.reset());
  after(() => harness.close());

  /** The events of a stream, each of the specified shape, named after its type, numbered from 0. */
  async function stream(body: object) {
    const { status, headers, events } = await harness.client.events("POST", "/v1/responses", { body });
    expect([status, headers.get("content-type")]).to.deep.equal([200, "text/event-stream; charset=utf-8"]);
    const all = await Array.fromAsync(events);
    for (const [place, { event, id, data }] of all.entries()) {
      expect(shaped(eventShape, data)).to.include({ type: event, sequence_number: place });
      expect(id, "servers should give none").to.equal(undefined);
    }
    return all.map(({ data }) => Object(data));
  }

  for (const [kind, model] of Object.entries(models)) {
    const isOffline = model === offline;
    describe(`on ${kind}`, () => {
      for (const [name, { body, said, sent = [], check }] of Object.entries(cases)) {
        it(`${name}, as JSON and as a stream`, async () => {
          if (said) harness.upstream.next(said, said);
          const response = await harness.client.post("/v1/responses", { model, ...body });
          expect([response.status, response.headers.get("content-type")], response.text).to.deep.equal([
            200,
            "application/json; charset=utf-8",
          ]);
          const whole = shaped(responseShape, response.body);
          expect([whole.status, whole.error, whole.incomplete_details]).to.deep.equal(["completed", null, null]);
          check(whole, { isOffline });
          const events = await stream({ model, ...body, stream: true });
          const end = events.at(-1);
          expect(end.type).to.equal("response.completed");
          check(shaped(responseShape, end.response), { isOffline });
          expectLifecycle(events);
          if (isOffline) return;
          expect(harness.upstream.requests).to.have.lengthOf(2);
          for (const { body: request } of harness.upstream.requests)
            for (const part of sent) expect(JSON.stringify(request)).to.include(JSON.stringify(part).slice(1, -1));
        });
      }
    });
  }

  it("a response that is cut, and one that fails after it began", async () => {
    const pieces = ["Half ", "of it"];
    harness.upstream.next({ pieces, finishReason: "length" }, { pieces, fault: { type: "cut", afterPieces: 1 } });
    const model = models["OpenAI's chat completions"];
    const cut = shaped(responseShape, (await harness.client.post("/v1/responses", { model, input: "Count." })).body);
    expect([cut.status, cut.incomplete_details]).to.deep.equal(["incomplete", { reason: "max_output_tokens" }]);
    expect(cut.output.at(-1)).to.include({ status: "incomplete" });
    const failed = (await stream({ model, input: "Count.", stream: true })).at(-1);
    expect(failed.type).to.equal("response.failed");
    expect(shaped(responseShape, failed.response)).to.have.property("status", "failed");
  });
});

/** An item begins, its parts come between, and it ends as the response has it. */
function expectLifecycle(events: { type: string; output_index?: number; item?: object; response?: ShapedResponse }[]) {
  const types = events.map(({ type }) => type);
  expect(types.slice(0, 2)).to.deep.equal(["response.created", "response.in_progress"]);
  const output = events.at(-1)?.response?.output ?? [];
  for (const [place, item] of output.entries()) {
    const own = events.filter(({ output_index: index }) => index === place);
    expect(own[0]).to.have.nested.include({ type: "response.output_item.added", "item.id": item.id });
    expect(own.at(-1)).to.deep.include({ type: "response.output_item.done", item });
    const between = own.slice(1, -1).map(({ type }) => type);
    if (item.type === "function_call") {
      const name = "response.function_call_arguments";
      expect([between[0], between.at(-1)]).to.deep.equal([`${name}.delta`, `${name}.done`]);
    }
    if (item.type !== "message") continue;
    expect([between[0], between.at(-1)]).to.deep.equal(["response.content_part.added", "response.content_part.done"]);
    expect(between).to.include("response.output_text.delta");
    expect(between.at(-2)).to.equal("response.output_text.done");
  }
}
