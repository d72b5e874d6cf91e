import { expect } from "chai";
import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import type { ResponseInputItem, ResponseStreamEvent } from "openai/resources/responses/responses";
import { z } from "zod";
import { describeTargets, notBy } from "../support/describe-targets.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { pdf, pictureOf } from "../support/media.ts";
import type { TestPlatform } from "../support/start-platform.ts";

const question = "What does a lease protect?";
const weather = {
  type: "function" as const,
  name: "weather",
  description: "The weather of a town",
  parameters: { type: "object", properties: { town: { type: "string" } }, required: ["town"] },
  strict: false,
};
const call = { id: "call_1", name: "weather", arguments: '{"town":"Graz"}' };
const ids = { edge: "small", openai: "gpt-6-luna", anthropic: "claude-haiku-5-5" } as const;
type Kind = keyof typeof ids;
const kinds: readonly Kind[] = ["edge", "openai", "anthropic"];

const leftOut = {
  "asks OpenAI for a summary of the reasoning, and ends an item before the next one begins": notBy(
    "the wire format cannot ask for a summary",
    "openai-chat",
    "anthropic-messages",
  ),
  "asks for the detail of a picture": notBy("Anthropic's pictures have no detail", "anthropic-messages"),
};
const leftOutOffline = {
  "names by this API's fields what it does not take": notBy(
    "models of this wire format take a verbosity",
    "openai-responses",
  ),
};

describeTargets("the Responses API of the official openai client", leftOut, (target) => {
  const models = {
    edge: target.model(ids.edge),
    openai: target.model(ids.openai),
    anthropic: target.model(ids.anthropic),
  };
  let upstreams: Record<Kind, FakeProvider>;
  let test: TestPlatform;
  let openai: OpenAI;
  before(async function () {
    this.timeout(60_000);
    upstreams = {
      edge: await startFakeProvider(),
      openai: await startFakeProvider(),
      anthropic: await startFakeProvider(),
    };
    test = await target.start({
      workers: false,
      env: {
        EDGE_BASE_URL: upstreams.edge.url,
        EDGE_MODEL: ids.edge,
        OPENAI_API_KEY: "sk-platform-openai-0123456789",
        OPENAI_BASE_URL: upstreams.openai.url,
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789",
        ANTHROPIC_BASE_URL: upstreams.anthropic.origin,
      },
    });
    openai = new OpenAI({ baseURL: `${test.url}/v1`, apiKey: test.keys.member, maxRetries: 0 });
  });
  beforeEach(() => {
    for (const kind of kinds) upstreams[kind].reset();
  });
  after(async () => {
    await test.close();
    for (const kind of kinds) await upstreams[kind].close();
  });

  const create = (body: Partial<OpenAI.Responses.ResponseCreateParamsNonStreaming>) =>
    openai.responses.create({ model: models.edge, store: false, input: question, ...body });
  const stream = async (body: Partial<OpenAI.Responses.ResponseCreateParamsStreaming>) =>
    Array.fromAsync(
      await openai.responses.create({ model: models.edge, store: false, input: question, ...body, stream: true }),
    );
  const failureOf = async (calling: Promise<unknown>) => {
    const error = await calling.then(
      () => null,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof OpenAI.APIError)) throw new Error("the client raised no error of its own");
    return error;
  };
  const typesOf = (events: readonly ResponseStreamEvent[]) => events.map(({ type }) => type.replace("response.", ""));
  /** The types of events, repeated ones once. */
  const sequenceOf = (events: readonly ResponseStreamEvent[]) =>
    typesOf(events).filter((type, place, all) => type !== all[place - 1]);
  const lastOf = (events: readonly ResponseStreamEvent[]) => {
    const last = events.at(-1);
    if (last?.type !== "response.completed" && last?.type !== "response.incomplete") throw new Error("it has no end");
    return last.response;
  };

  for (const kind of kinds) {
    it(`responds with text, by ${kind}`, async () => {
      const response = await create({ model: models[kind], instructions: "Be short.", metadata: { run: "7" } });
      expect(response.output_text).to.equal("The lease protects a job.");
      expect(response.id).to.match(/^resp_/);
      expect(response).to.include({ object: "response", status: "completed", store: false, instructions: "Be short." });
      expect(response.metadata).to.deep.equal({ run: "7" });
      expect(response.usage).to.deep.include({ input_tokens: 11, output_tokens: 7, total_tokens: 18 });
      expect(response).to.include.keys("logId", "costUsd", "cached");
    });

    it(`numbers every event of a stream, in their order, by ${kind}`, async () => {
      const events = await stream({ model: models[kind] });
      expect(events.map(({ sequence_number: number }) => number)).to.deep.equal(events.map((_, place) => place));
      expect(sequenceOf(events)).to.deep.equal([
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
      ]);
      const text = events.map((event) => (event.type === "response.output_text.delta" ? event.delta : "")).join("");
      expect(text).to.equal("The lease protects a job.");
      expect(lastOf(events).usage).to.deep.include({ input_tokens: 11, output_tokens: 7, total_tokens: 18 });
    });

    it(`calls tools over two turns, as JSON and as a stream, by ${kind}`, async () => {
      upstreams[kind].next({ toolCalls: [call] }, { pieces: ["It rains in Graz."] }, { toolCalls: [call] });
      const asked = await create({ model: models[kind], tools: [weather] });
      const called = asked.output.find(({ type }) => type === "function_call");
      expect(called).to.deep.include({ status: "completed", call_id: "call_1", name: "weather" });
      const input: ResponseInputItem[] = [
        { role: "user", content: question },
        ...asked.output.filter(({ type }) => type === "function_call"),
        { type: "function_call_output", call_id: "call_1", output: "rain" },
      ] as ResponseInputItem[]; // the client's own types make no input of its output
      const reported = await create({ model: models[kind], input, tools: [weather] });
      expect(reported.output_text).to.equal("It rains in Graz.");
      expect(JSON.stringify(upstreams[kind].requests.at(-1)?.body))
        .to.contain("rain")
        .and.contain("call_1");
      const events = await stream({ model: models[kind], tools: [weather] });
      expect(sequenceOf(events).slice(2)).to.deep.equal([
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
      ]);
      expect(lastOf(events).output[0]).to.deep.include({ call_id: "call_1", arguments: '{"town":"Graz"}' });
    });
  }

  /** The chunks of a chat have the reasoning that is to come back at their end. */
  const turnOf = (isStreamed: boolean) => {
    const turn = ["reasoning", "function_call"];
    return isStreamed && target.wire === "openai-chat" ? [...turn, "reasoning"] : turn;
  };

  for (const kind of ["openai", "anthropic"] as const) {
    it(`takes reasoning back as it gave it, byte for byte, by ${kind}`, async () => {
      for (const isStreamed of [false, true]) {
        upstreams[kind].next({ reasoning: "A town is named.", toolCalls: [call] });
        const wanted = {
          model: models[kind],
          tools: [weather],
          reasoning: { effort: "low" as const, summary: "auto" as const },
          include: ["reasoning.encrypted_content" as const],
        };
        const { output } = isStreamed ? lastOf(await stream(wanted)) : await create(wanted);
        expect(output.map(({ type }) => type)).to.deep.equal(turnOf(isStreamed));
        expect(output[0]).to.deep.include({ summary: [{ type: "summary_text", text: "A town is named." }] });
        const input = [
          { role: "user", content: question },
          ...output,
          { type: "function_call_output", call_id: "call_1", output: "rain" },
        ] as ResponseInputItem[]; // likewise
        await create({ ...wanted, input });
        const sent = JSON.stringify(upstreams[kind].requests.at(-1)?.body);
        const item =
          kind === "openai"
            ? '{"id":"rs_fake","type":"reasoning","summary":[{"type":"summary_text","text":"A town is named."}],"encrypted_content":"c2VjcmV0"}'
            : '{"type":"thinking","thinking":"A town is named.","signature":"';
        expect(sent).to.contain(item);
        upstreams.edge.reset();
        await create({ ...wanted, model: models.edge, input });
        expect(JSON.stringify(upstreams.edge.requests.at(-1)?.body)).not.to.contain("A town is named.");
      }
    });
  }

  it("asks OpenAI for a summary of the reasoning, and ends an item before the next one begins", async () => {
    upstreams.openai.next({ reasoning: "A lease is a lock." });
    const events = await stream({ model: models.openai, reasoning: { effort: "low", summary: "detailed" } });
    expect(upstreams.openai.requests[0]?.body.reasoning).to.deep.equal({ effort: "low", summary: "detailed" });
    expect(sequenceOf(events).slice(2)).to.deep.equal([
      "output_item.added",
      "reasoning_summary_part.added",
      "reasoning_summary_text.delta",
      "reasoning_summary_text.done",
      "reasoning_summary_part.done",
      "output_item.done",
      "output_item.added",
      "content_part.added",
      "output_text.delta",
      "output_text.done",
      "content_part.done",
      "output_item.done",
      "completed",
    ]);
    expect(lastOf(events).output[0]).not.to.have.property("encrypted_content");
  });

  it("keeps a form of the answer, and reads it, through its own helper", async () => {
    upstreams.openai.next({ pieces: ['{"town":"Graz"}'] });
    const Town = z.object({ town: z.string() });
    const parsed = await openai.responses.parse({
      model: models.openai,
      store: false,
      input: question,
      text: { format: zodTextFormat(Town, "town"), verbosity: "low" },
    });
    expect(parsed.output_parsed).to.deep.equal({ town: "Graz" });
    expect(JSON.stringify(upstreams.openai.requests[0]?.body)).to.contain('"town"');
  });

  it("gives a kept response again with its reasoning, and counts each call by key and surface", async () => {
    upstreams.anthropic.next({ reasoning: "A lease is a lock." });
    const body = {
      model: models.anthropic,
      store: false,
      input: question,
      include: ["reasoning.encrypted_content" as const],
    };
    const headers = { "x-svc-options": "cache=true" };
    const first = await openai.responses.create(body, { headers });
    const again = await Array.fromAsync(await openai.responses.create({ ...body, stream: true }, { headers }));
    const kept = lastOf(again);
    expect([first, kept].map((response) => Reflect.get(response, "cached"))).to.deep.equal([false, true]);
    const contents = [first, kept].map(({ output }) => output.map((item) => ({ ...item, id: undefined })));
    expect(contents[1]).to.deep.equal(contents[0]);
    expect(contents[0]?.map(({ type }) => type)).to.deep.equal(["reasoning", "message"]);
    expect(upstreams.anthropic.requests).to.have.lengthOf(1);
    await test.platform.gateway.flush();
    const usage = await fetch(`${test.url}/usage?groupBy=surface`, {
      headers: { authorization: `Bearer ${test.keys.owner}` },
    });
    expect(await usage.text()).to.contain('"responses"');
  });

  it("shows pictures and files", async () => {
    const picture = pictureOf(4, 4);
    const content = [
      { type: "input_text" as const, text: "What is this?" },
      { type: "input_image" as const, image_url: picture, detail: "auto" as const },
    ];
    await create({ input: [{ role: "user", content }] });
    expect(upstreams.edge.requests[0]?.body.messages).to.deep.equal([
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "image_url", image_url: { url: picture } },
        ],
      },
    ]);
    const file = { type: "input_file" as const, filename: "terms.pdf", file_data: pdf };
    await create({ model: models.anthropic, input: [{ role: "user", content: [file] }] });
    expect(JSON.stringify(upstreams.anthropic.requests[0]?.body)).to.contain("application/pdf");
  });

  it("asks for the detail of a picture", async () => {
    const image = { type: "input_image" as const, image_url: pictureOf(4, 4), detail: "low" as const };
    await create({ input: [{ role: "user", content: [image] }] });
    expect(JSON.stringify(upstreams.edge.requests[0]?.body.messages)).to.contain('"detail":"low"');
  });

  it("leaves tools out that run at OpenAI, and names what is not used", async () => {
    const { response } = await openai.responses
      .create({
        model: models.edge,
        input: [
          { role: "user", content: question },
          { type: "web_search_call", id: "ws_1", status: "completed" } as never,
        ],
        tools: [{ type: "web_search" }, weather],
        truncation: "auto",
        max_tool_calls: 3,
      } as OpenAI.Responses.ResponseCreateParamsNonStreaming)
      .withResponse();
    expect(response.headers.get("x-svc-ignored")?.split(", ")).to.have.members([
      "max_tool_calls",
      "tools[0]",
      "input[1]",
      "truncation",
    ]);
    const { body } = upstreams.edge.requests[0] ?? {};
    const { name, description, parameters } = weather;
    expect(body?.tools).to.deep.equal([{ type: "function", function: { name, description, parameters } }]);
    expect(body?.messages).to.deep.equal([{ role: "user", content: question }]);
  });

  it("names twenty items at most that it leaves out", async () => {
    const others = Array.from({ length: 50 }, (_, n) => ({
      type: "web_search_call",
      id: `ws_${n}`,
      status: "completed",
    }));
    const input = [{ role: "user", content: question }, ...others] as ResponseInputItem[]; // as an agent of OpenAI's sends it
    const body = { model: models.edge, store: false, input };
    const { response } = await openai.responses.create(body).withResponse();
    expect(response.headers.get("x-svc-ignored")?.split(", ")).to.have.lengthOf(20);
  });

  it("ends incomplete at the limit of tokens", async () => {
    upstreams.edge.next({ finishReason: "length" }, { finishReason: "length" });
    const events = await stream({ max_output_tokens: 16 });
    for (const response of [lastOf(events), await create({ max_output_tokens: 16 })]) {
      expect(response.status).to.equal("incomplete");
      expect(response.incomplete_details).to.deep.equal({ reason: "max_output_tokens" });
      expect(response.output[0]).to.deep.include({ status: "incomplete" });
    }
    expect(events.at(-1)?.type).to.equal("response.incomplete");
  });

  it("reports a stream that breaks off as a response that failed", async () => {
    upstreams.edge.next({ fault: { type: "cut", afterPieces: 1 } });
    const events = await stream({});
    const last = events.at(-1);
    if (last?.type !== "response.failed") throw new Error("it did not fail");
    expect(last.sequence_number).to.equal(events.length - 1);
    expect(last.response).to.deep.include({ status: "failed", output: [] });
    expect(last.response.error).to.include({ code: "server_error" });
  });

  it("raises the client's errors, with the place in the request", async () => {
    const placeOf = async (body: object) => {
      const error = await failureOf(create(body));
      return [error.status, error.param];
    };
    expect(await placeOf({ temperature: 3 })).to.deep.equal([400, "temperature"]);
    expect(await placeOf({ previous_response_id: "resp_1" })).to.deep.equal([404, "previous_response_id"]);
    expect(await placeOf({ background: true })).to.deep.equal([400, "store"]);
    expect(await placeOf({ input: [{ type: "item_reference", id: "msg_1" }] })).to.deep.equal([404, "input[0]"]);
    const linked = { role: "user", content: [{ type: "input_image", image_url: "http://a.b/c.png" }] };
    expect(await placeOf({ input: [linked] })).to.deep.equal([400, "input[0].content[0].image_url"]);
    const forged = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "svc1.e30" };
    expect(await placeOf({ input: [forged] })).to.deep.equal([400, "input[0].encrypted_content"]);
    expect(await placeOf({ input: [] })).to.deep.equal([400, "input"]);
    expect(await placeOf({ input: [{ type: "function_call", call_id: "c" }] })).to.deep.equal([400, "input[0].name"]);
    upstreams.edge.setDefault({ status: 500 });
    expect(await failureOf(create({}))).to.be.instanceOf(OpenAI.InternalServerError);
  });
});

describeTargets("the Responses API on the offline model", leftOutOffline, (target) => {
  const model = target.model("switchyard-offline");
  let test: TestPlatform;
  let openai: OpenAI;
  before(async () => {
    test = await target.start({ workers: false });
    openai = new OpenAI({ baseURL: `${test.url}/v1`, apiKey: test.keys.member, maxRetries: 0 });
  });
  after(() => test.close());

  it("finds the answer among its instructions, as JSON and as a stream", async () => {
    const answer = "A lease protects a job from being run by two workers at once.";
    const body = { model, store: false, input: question, instructions: `Heartbeats renew it. ${answer}` };
    expect((await openai.responses.create(body)).output_text).to.equal(answer);
    expect((await openai.responses.stream(body).finalResponse()).output_text).to.equal(answer);
  });

  it("calls a tool that fits, and answers from its result", async () => {
    const input = "What is the weather in the town of Graz?";
    const [called] = (await openai.responses.create({ model, store: false, input, tools: [weather] })).output;
    if (called?.type !== "function_call") throw new Error("it called no tool");
    expect(JSON.parse(called.arguments).town).to.contain("Graz");
    const output = "The weather in Graz is rain.";
    const result = { type: "function_call_output" as const, call_id: called.call_id, output };
    const turns = [{ role: "user" as const, content: input }, called, result];
    const reported = await openai.responses.create({ model, store: false, input: turns, tools: [weather] });
    expect(reported.output_text).to.contain(output);
  });

  it("names by this API's fields what it does not take", async () => {
    const settings = { reasoning: { effort: "low" as const }, text: { verbosity: "low" as const } };
    const create = openai.responses.create({ model, store: false, input: question, ...settings });
    const { response } = await create.withResponse();
    expect(response.headers.get("x-svc-ignored")).to.equal("text.verbosity, reasoning.effort");
    const content = [{ type: "input_file" as const, file_data: pdf, filename: "a.pdf" }];
    const input = [
      { role: "user" as const, content: question },
      { role: "user" as const, content },
    ];
    for (const stream of [false, true]) {
      const error = await openai.responses
        .create({ model, store: false, input, stream })
        .catch((thrown: unknown) => thrown);
      expect(error).to.include({ status: 400, param: "input[1].content[0]" });
    }
  });
});
