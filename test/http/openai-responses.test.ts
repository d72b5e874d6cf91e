import { expect } from "chai";
import OpenAI from "openai";
import type { FakeUsage } from "../support/fake-provider/behaviour.ts";
import { linkedPdf, linkedPicture, pdf, pictureOf } from "../support/media.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type ProviderPlatform, startProviderPlatform } from "../support/provider-platform.ts";

const model = "gpt-6-astra";
const tools = [{ type: "function", function: { name: "find", parameters: { type: "object" } } }];
/** Its fields are in an order of its own, and one is unknown. */
const reasoningItem = (n: number) => ({
  encrypted_content: `gAAAA-${n}+/=é`,
  id: `rs_${n}`,
  summary: [],
  type: "reasoning" as const,
  later: { b: 1, a: [null] },
});
const callOf = (n: number) => ({ id: `call_${n}`, name: "find", arguments: `{"n":${n}}` });
const user = (content: unknown) => ({ role: "user", content });

/** What the provider charges in billionths of a USD, by GPT-6 Astra's list price. */
const chargeOf = (usage: FakeUsage) => {
  const {
    prompt_tokens: prompt,
    completion_tokens: output,
    cached_tokens: read = 0,
    cache_write_tokens: written = 0,
  } = usage;
  return (prompt - read - written) * 10_000 + read * 1_000 + written * 12_500 + output * 50_000;
};

type Turn = { tool_calls?: object[]; reasoning_details?: object[]; content?: string };

describe("OpenAI's Responses API behind a chat", function () {
  this.timeout(60_000);
  let harness: ProviderPlatform;
  before(async () => {
    harness = await startProviderPlatform(({ url }) => ({
      OPENAI_API_KEY: "sk-platform-0123456789abcdef",
      OPENAI_BASE_URL: url,
    }));
  });
  beforeEach(() => harness.upstream.reset());
  after(() => harness.close());

  it("reports the tokens that were thought, of either wire format that has them", async () => {
    const usage = { prompt_tokens: 11, completion_tokens: 40, reasoning_tokens: 32 };
    for (const withTools of [true, false]) {
      const name = `tools: ${withTools}`; // with tools it is asked by its Responses API, else by chat completions
      harness.upstream.next({ usage }, { usage }, { usage }, { usage: { ...usage, reasoning_tokens: 41 } });
      const ask = (stream: boolean) => {
        const functions = withTools ? { tools: tools.map(({ type, function: one }) => ({ type, ...one })) } : {};
        return { model, input: "What does a lease protect?", stream, ...functions };
      };
      const response = await harness.client.post("/v1/responses", ask(false));
      expect(response.at("usage.output_tokens_details.reasoning_tokens"), name).to.equal(32);
      const { events } = await harness.client.events("POST", "/v1/responses", { body: ask(true) });
      const end = Object((await Array.fromAsync(events)).at(-1)?.data).response;
      expect(end.usage.output_tokens_details.reasoning_tokens, name).to.equal(32);
      const messages = [user("What does a lease protect?")];
      const chat = await harness.client.post("/v1/chat/completions", {
        model,
        messages,
        ...(withTools ? { tools } : {}),
      });
      expect(chat.at("usage.completion_tokens_details"), name).to.deep.equal({ reasoning_tokens: 32 });
      const wrong = await harness.client.post("/v1/responses", ask(false));
      expect(wrong.at("usage.output_tokens_details.reasoning_tokens"), "more than all").to.equal(0);
    }
    expect(new Set(harness.upstream.requests.map(({ path }) => path)).size, "both formats").to.equal(2);
  });

  /** An assistant's turn as a client of OpenAI's API puts it together, from JSON or from a stream's deltas. */
  const jsonTurn = (path: string) => async (messages: object[]) => {
    const response = await harness.client.post(path, { model, tools, messages });
    expect(response.status, response.text).to.equal(200);
    return response.at("choices[0].message") as Turn; // the client checked the shape
  };
  const streamedTurn = async (messages: object[]): Promise<Turn> => {
    const openai = new OpenAI({ baseURL: `${harness.test.url}/v1`, apiKey: harness.test.keys.member, maxRetries: 0 });
    const params = { model, tools, messages, stream: true } as unknown as OpenAI.ChatCompletionCreateParamsStreaming;
    const turn = {
      content: "",
      tool_calls: [] as { function: { arguments: string } }[],
      reasoning_details: [] as object[],
    };
    for await (const chunk of await openai.chat.completions.create(params)) {
      const delta = (chunk.choices[0]?.delta ?? {}) as OpenAI.ChatCompletionChunk.Choice.Delta & Turn;
      turn.content += delta.content ?? "";
      for (const { index, ...call } of delta.tool_calls ?? []) {
        const known = turn.tool_calls[index];
        if (known) known.function.arguments += call.function?.arguments ?? "";
        else turn.tool_calls[index] = { ...call, function: { arguments: "", ...call.function } };
      }
      turn.reasoning_details.push(...(delta.reasoning_details ?? []));
    }
    return turn;
  };

  const ways = {
    "by /ai/chat": jsonTurn("/ai/chat"),
    "by /v1/chat/completions": jsonTurn("/v1/chat/completions"),
    "by a stream": streamedTurn,
  };
  for (const [name, ask] of Object.entries(ways)) {
    it(`takes encrypted reasoning back over three tool turns, byte for byte and in its place, ${name}`, async () => {
      const messages: object[] = [user("find it")];
      const expected: object[] = [user("find it")];
      for (const n of [1, 2, 3]) {
        const reasoningItems = [reasoningItem(n), reasoningItem(n + 10)];
        harness.upstream.next({ reasoningItems, pieces: ["Let me ", "look."], toolCalls: [callOf(n)] });
        const turn = await ask(messages);
        messages.push({ role: "assistant", ...turn }, { role: "tool", tool_call_id: `call_${n}`, content: "nothing" });
        expected.push(
          ...reasoningItems,
          { role: "assistant", content: "Let me look." },
          { type: "function_call", call_id: `call_${n}`, name: "find", arguments: `{"n":${n}}` },
          { type: "function_call_output", call_id: `call_${n}`, output: "nothing" },
        );
      }
      await ask(messages);
      expect(harness.upstream.requests.map(({ path }) => path)).to.deep.equal(Array(4).fill("/v1/responses"));
      expect(JSON.stringify(harness.upstream.requests[3]?.body.input)).to.equal(JSON.stringify(expected));
    });
  }

  it("goes back with its reasoning even if no tool was called", async () => {
    harness.upstream.next({ reasoningItems: [reasoningItem(1)], toolCalls: [callOf(1)] });
    const turn = await jsonTurn("/ai/chat")([user("find it")]);
    const result = { role: "tool", tool_call_id: "call_1", content: "nothing" };
    const messages = [user("find it"), { role: "assistant", ...turn }, result, user("Thanks. And now?")];
    expect((await harness.client.post("/ai/chat", { model, messages })).status).to.equal(200);
    expect(harness.upstream.requests[1]?.path).to.equal("/v1/responses");
    // Models that cannot reason refuse it, by either API.
    const file = user([{ type: "file", file: { file_url: linkedPdf } }]);
    for (const more of [[], [file]])
      expect(
        (await harness.client.post("/ai/chat", { model: "gpt-4.1", messages: [...messages, ...more] })).status,
      ).to.equal(200);
    const paths = harness.upstream.requests.slice(2).map(({ path }) => path);
    expect(paths).to.deep.equal(["/v1/chat/completions", "/v1/responses"]);
  });

  it("costs an agent of ten iterations what the invoice says, and names its run as the key of the prompt cache", async () => {
    const turns = Array.from({ length: 9 }, (_, place) => place + 1);
    /** Each prompt is read from the cache as far as the one before, and the rest is written to it. */
    const usageOf = (turn: number) => ({
      prompt_tokens: 2_000 + 151 * turn,
      completion_tokens: 17 + turn,
      cached_tokens: turn === 1 ? 0 : 2_000 + 151 * (turn - 1),
      cache_write_tokens: turn === 1 ? 2_151 : 151,
    });
    const call = (turn: number) => ({
      id: `call_${turn}`,
      name: "calculator",
      arguments: `{"expression":"${turn} + 0"}`,
    });
    for (const turn of turns) {
      if (turn === 5) harness.upstream.next({ status: 503 });
      harness.upstream.next({ reasoningItems: [reasoningItem(turn)], toolCalls: [call(turn)], usage: usageOf(turn) });
    }
    harness.upstream.next({ pieces: ["Nine berths."], usage: usageOf(10) });
    const agent = { name: "Harbour", model, systemPrompt: "You count berths.", tools: [{ type: "calculator" }] };
    const agentId = (await harness.client.post("/agents", agent)).string("agentId");
    const begun = await harness.client.post(`/agents/${agentId}/run`, { input: "How many berths are there?" });
    const path = `/agents/${agentId}/runs/${begun.string("runId")}`;
    const readEnded = async () => {
      const read = await harness.client.get(path);
      return read.at("finishedAt") === undefined ? null : read;
    };
    const run = await pollUntil(readEnded, { timeoutMs: 30_000, what: "the end of the run" });
    expect([run.at("status"), run.at("finalOutput")]).to.deep.equal(["completed", "Nine berths."]);
    expect(run.at("steps")).to.have.length(10);

    const keys = harness.upstream.requests.map(({ body }) => body.prompt_cache_key);
    expect(keys).to.deep.equal(Array(11).fill(run.string("runId")));
    const reasoning = [harness.upstream.requests.at(-1)?.body.input ?? []]
      .flat()
      .filter((item) => typeof item === "object" && item.type === "reasoning")
      .map((item) => JSON.stringify(item));
    expect(reasoning).to.deep.equal(turns.map((turn) => JSON.stringify(reasoningItem(turn))));

    const charges = harness.upstream.requests.map(({ served }) => chargeOf(served)).filter((charge) => charge > 0);
    const invoice = charges.reduce((sum, charge) => sum + charge, 0);
    expect(charges).to.have.length(10);
    expect(Math.round(Number(run.at("costUsd")) * 1e9)).to.equal(invoice);
    await harness.test.platform.gateway.flush();
    const spent = (await harness.client.get("/usage?groupBy=surface")).at("data") as {
      surface: string;
      costUsd: number;
    }[];
    const byAgents = spent.find(({ surface }) => surface === "agents");
    expect(Math.round(Number(byAgents?.costUsd) * 1e9)).to.equal(invoice);
  });

  it("sends pictures, files and the pictures of a tool's result in its documented form", async () => {
    const picture = pictureOf(8, 8);
    const content = [
      { type: "text", text: "What is this?" },
      { type: "image_url", image_url: { url: picture, detail: "low" } },
      { type: "image_url", image_url: { url: linkedPicture } },
      { type: "file", file: { filename: "terms.pdf", file_data: pdf } },
      { type: "file", file: { file_url: linkedPdf } },
    ];
    const called = { id: "call_1", type: "function", function: { name: "find", arguments: "{}" } };
    const result = { role: "tool", tool_call_id: "call_1", content: [content[0], content[1]] };
    const messages = [user(content), { role: "assistant", content: null, tool_calls: [called] }, result];
    const response = await harness.client.post("/ai/chat", { model: "gpt-4.1", messages });
    expect(response.status, response.text).to.equal(200);
    expect(harness.upstream.requests[0]?.body).to.deep.equal({
      model: "gpt-4.1",
      input: [
        user([
          { type: "input_text", text: "What is this?" },
          { type: "input_image", image_url: picture, detail: "low" },
          { type: "input_image", image_url: linkedPicture, detail: "auto" },
          { type: "input_file", filename: "terms.pdf", file_data: pdf },
          { type: "input_file", file_url: linkedPdf },
        ]),
        { type: "function_call", call_id: "call_1", name: "find", arguments: "{}" },
        {
          type: "function_call_output",
          call_id: "call_1",
          output: [
            { type: "input_text", text: "What is this?" },
            { type: "input_image", image_url: picture, detail: "low" },
          ],
        },
      ],
      store: false,
    });
    const streamed = { model: "gpt-4.1", messages, stream: true };
    await Array.fromAsync((await harness.client.events("POST", "/ai/chat", { body: streamed })).events);
    expect(harness.upstream.requests[1]?.body).to.deep.equal({ ...harness.upstream.requests[0]?.body, stream: true });
    harness.upstream.reset();
    const local = [user(content.slice(0, 4))];
    expect((await harness.client.post("/ai/chat", { model: "gpt-4.1", messages: local })).status).to.equal(200);
    expect(harness.upstream.requests[0]?.path, "what Chat Completions can do").to.equal("/v1/chat/completions");
  });
});
