import Anthropic from "@anthropic-ai/sdk";
import { expect } from "chai";
import { describeTargets, notBy, untilServed } from "../support/describe-targets.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { linkedPicture, pdf, pictureOf } from "../support/media.ts";
import type { TestPlatform } from "../support/start-platform.ts";

const question = { role: "user" as const, content: "What does a lease protect?" };
const weather = {
  name: "weather",
  description: "The weather of a town",
  input_schema: { type: "object" as const, properties: { town: { type: "string" } }, required: ["town"] },
};
const call = { id: "call_1", name: "weather", arguments: '{"town":"Graz"}' };
const image = pictureOf(8, 8).replace("data:image/png;base64,", "");
const imageBlock = {
  type: "image" as const,
  source: { type: "base64" as const, media_type: "image/png" as const, data: image },
};

const sentOn = notBy(
  "it is sent on byte for byte, and the second platform names the rest to the first",
  "anthropic-messages",
);
const leftOut = {
  "passes on what the other API knows, and names the rest": sentOn,
  "names once what only Anthropic reads, however many parts have it, and passes on all else": sentOn,
};

describeTargets("the official client of Anthropic", leftOut, (target) => {
  const small = target.model("small");
  const luna = target.model("gpt-5.6-luna");
  /** What answers name: one that is sent on byte for byte has the second platform's own name. */
  const answered = target.wire === "anthropic-messages" ? "small" : small;
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: Anthropic;
  before(async () => {
    upstream = await startFakeProvider();
    test = await target.start({
      workers: false,
      env: {
        EDGE_BASE_URL: upstream.url,
        EDGE_MODEL: "small",
        PROVIDER_MAX_ATTEMPTS: "1",
        OPENAI_API_KEY: "sk-platform-0123456789abcdef",
        OPENAI_BASE_URL: upstream.url,
      },
    });
    client = new Anthropic({ baseURL: test.url, apiKey: test.keys.member, maxRetries: 0 });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const failureOf = async (calling: Promise<unknown>) => {
    const error = await calling.then(
      () => null,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof Anthropic.APIError)) throw new Error("the client raised no error of its own");
    return error;
  };
  const sent = () => upstream.requests.at(-1)?.body;

  it("gets a message of another provider's model", async () => {
    const message = await client.messages.create({ model: small, max_tokens: 50, messages: [question] });
    expect(message).to.deep.include({
      type: "message",
      role: "assistant",
      model: answered,
      content: [{ type: "text", text: "The lease protects a job." }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: { input_tokens: 11, output_tokens: 7, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
    });
    expect(message.id).to.match(/^msg_/);
    expect(message._request_id).to.match(/^req_/);
  });

  it("passes on what the other API knows, and names the rest", async () => {
    const { response } = await client.messages
      .create({
        model: small,
        max_tokens: 50,
        system: [
          { type: "text", text: "Be short.", cache_control: { type: "ephemeral" } },
          { type: "text", text: "Be kind." },
        ],
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "What is" },
              { type: "text", text: "a lease?" },
            ],
          },
        ],
        ...{ temperature: 0.5, top_p: 0.9, top_k: 5 }, // this client no longer knows them
        stop_sequences: ["END"],
        metadata: { user_id: "user-1" },
        tools: [weather, { type: "web_search_20250305", name: "web_search" }],
        tool_choice: { type: "tool", name: "weather", disable_parallel_tool_use: true },
      })
      .withResponse();
    expect(sent()).to.deep.include({
      messages: [
        { role: "system", content: "Be short.\nBe kind." },
        { role: "user", content: "What is\na lease?" },
      ],
      max_tokens: 50,
      temperature: 0.5,
      top_p: 0.9,
      stop: ["END"],
      tools: [
        {
          type: "function",
          function: { name: weather.name, description: weather.description, parameters: weather.input_schema },
        },
      ],
      tool_choice: { type: "function", function: { name: "weather" } },
    });
    const ignored = response.headers.get("x-svc-ignored")?.split(", ");
    expect(ignored).to.include.members(["top_k", "tools[1]"]);
  });

  it("names once what only Anthropic reads, however many parts have it, and passes on all else", async () => {
    const cache_control = { type: "ephemeral" as const };
    const { response } = await client.beta.messages
      .create({
        model: small,
        max_tokens: 50,
        betas: ["context-management-2025-06-27", "mcp-client-2025-04-04"],
        cache_control,
        context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
        inference_geo: "eu",
        thinking: { type: "adaptive", display: "summarized" },
        system: [{ type: "text", text: "Be short.", cache_control }],
        tools: [
          { ...weather, strict: true, cache_control, defer_loading: true },
          { type: "web_search_20260318", name: "web_search" },
        ],
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "What is in it?", cache_control },
              {
                type: "document",
                source: { type: "text", media_type: "text/plain", data: "Nine berths." },
                citations: { enabled: true },
                cache_control,
              },
              { type: "container_upload", file_id: "file_1" },
            ],
          },
          {
            role: "assistant",
            content: [
              { type: "text", text: "Let me look.", citations: null },
              { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "berths" } },
              { type: "tool_use", id: "call_1", name: "weather", input: {}, caller: { type: "direct" } },
            ],
          },
          {
            role: "user",
            content: [
              {
                type: "tool_result",
                tool_use_id: "call_1",
                content: [
                  { type: "text", text: "Rain.", cache_control },
                  { type: "tool_reference", tool_name: "tides" },
                ],
              },
            ],
          },
        ],
      })
      .withResponse();
    expect(response.headers.get("x-svc-ignored")?.split(", ").toSorted()).to.deep.equal(
      [
        ...["cache_control", "caller", "citations", "defer_loading", "inference_geo"],
        ...["strict", "thinking.display", "tools[1]"],
        ...["messages[0].content[2]", "messages[1].content[1]", "messages[2].content[0].content[1]"],
      ].toSorted(),
    );
    expect(sent()?.messages).to.deep.equal([
      { role: "system", content: "Be short." },
      { role: "user", content: "What is in it?\nNine berths." },
      {
        role: "assistant",
        content: "Let me look.",
        tool_calls: [{ id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "call_1", content: "Rain." },
    ]);
    expect(sent()?.tools).to.have.length(1);
  });

  for (const [param, field] of [
    ["container", { container: "container_1" }],
    ["mcp_servers", { mcp_servers: [{ type: "url", name: "docs", url: "https://mcp.example.com" }] }],
    ["compaction", { compaction: { type: "summarize" } }],
    ["context_management.edits[0]", { context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } }],
    ["context_management.edits[0]", { context_management: { edits: [{ type: "compact_20260112" }] } }],
  ] as const)
    it(`refuses what only Anthropic's servers hold: ${JSON.stringify(field)}`, async () => {
      const about = { model: small, messages: [question], ...field };
      for (const calling of [
        client.beta.messages.create({ ...about, max_tokens: 50 } as Anthropic.Beta.MessageCreateParamsNonStreaming),
        client.beta.messages.countTokens(about as Anthropic.Beta.MessageCountTokensParams),
      ]) {
        const error = await failureOf(calling);
        expect([error.status, error.type]).to.deep.equal([400, "invalid_request_error"]);
        expect(error.message).to.include(param);
      }
      expect(upstream.requests).to.deep.equal([]);
    });

  it("takes a summary for all that was said before it", async () => {
    await client.beta.messages.create({
      model: small,
      max_tokens: 50,
      messages: [
        { role: "user", content: "Long ago." },
        { role: "assistant", content: [{ type: "compaction", content: "They spoke of leases." }] },
        question,
      ],
    });
    expect(sent()?.messages).to.deep.equal([{ role: "assistant", content: "They spoke of leases." }, question]);
  });

  it("asks for JSON by the earlier name of the format too", async () => {
    upstream.next({ pieces: ['{"holder":"a worker"}'] });
    const schema = { type: "object" as const, properties: { holder: { type: "string" } }, required: ["holder"] };
    const about = { model: luna, max_tokens: 2_000, messages: [question] };
    await client.beta.messages.create({ ...about, output_format: { type: "json_schema", schema } });
    expect(JSON.stringify(sent())).to.include('"holder"');
  });

  it("streams the events in their order, and the message that they make", async () => {
    const stream = client.messages.stream({ model: small, max_tokens: 50, messages: [question] });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    const message = await stream.finalMessage();
    expect([...new Set(types)]).to.deep.equal([
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    expect(message.content).to.deep.equal([{ type: "text", text: "The lease protects a job." }]);
    expect(message).to.deep.include({ model: answered, stop_reason: "end_turn" });
    expect(message.usage).to.include({ input_tokens: 11, output_tokens: 7 });
  });

  for (const isStreamed of [false, true])
    it(`uses tools over two turns${isStreamed ? ", streamed" : ""}`, async () => {
      const create = (messages: Anthropic.MessageParam[]) => {
        const body = { model: small, max_tokens: 50, tools: [weather], messages };
        return isStreamed ? client.messages.stream(body).finalMessage() : client.messages.create(body);
      };
      upstream.next({ pieces: [], toolCalls: [call, { ...call, id: "call_2", arguments: '{"town":"Linz"}' }] });
      const asked = await create([question]);
      expect(asked.stop_reason).to.equal("tool_use");
      expect(asked.content).to.deep.equal([
        { type: "tool_use", id: "call_1", name: "weather", input: { town: "Graz" } },
        { type: "tool_use", id: "call_2", name: "weather", input: { town: "Linz" } },
      ]);
      const result = { type: "tool_result" as const, tool_use_id: "call_1", content: "Rain." };
      const failure = { type: "tool_result" as const, tool_use_id: "call_2", content: "No such town.", is_error: true };
      const results = {
        role: "user" as const,
        content: [result, failure, { type: "text" as const, text: "And now?" }],
      };
      await create([question, { role: "assistant", content: asked.content }, results]);
      expect(JSON.parse(JSON.stringify(sent()?.messages?.slice(1)))).to.deep.equal([
        {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: "call_1", type: "function", function: { name: "weather", arguments: '{"town":"Graz"}' } },
            { id: "call_2", type: "function", function: { name: "weather", arguments: '{"town":"Linz"}' } },
          ],
        },
        { role: "tool", tool_call_id: "call_1", content: "Rain." },
        { role: "tool", tool_call_id: "call_2", content: "The tool failed: No such town." },
        { role: "user", content: "And now?" },
      ]);
    });

  it("counts the tokens of a prompt, its instructions and tools too", async () => {
    const { input_tokens: few } = await client.messages.countTokens({ model: small, messages: [question] });
    const system = "Keep to the rules of the harbour.";
    const { input_tokens: more } = await client.messages.countTokens({ model: small, messages: [question], system });
    const tools = [weather];
    const { input_tokens: most } = await client.messages.countTokens({
      model: small,
      messages: [question],
      system,
      tools,
    });
    expect(few).to.be.within(5, 20);
    expect(more).to.be.above(few + 5);
    expect(most).to.be.above(more + 10);
    expect(upstream.requests).to.have.length(0);
  });

  it("lists models in Anthropic's shape", async () => {
    const ids: string[] = [];
    for await (const { id, type } of client.models.list()) {
      expect(type).to.equal("model");
      ids.push(id);
    }
    expect(ids).to.include(small);
    expect(await client.models.retrieve(small)).to.deep.include({ type: "model", id: small });
  });

  it("raises its own errors, by Anthropic's types and statuses", async () => {
    const about = { model: small, max_tokens: 50, messages: [question] };
    const stranger = new Anthropic({ baseURL: test.url, apiKey: "sk_unknown", maxRetries: 0 });
    const cases = [
      [() => client.messages.create({ ...about, model: "nobody" }), 404, "not_found_error", Anthropic.NotFoundError],
      [
        () => client.messages.create({ ...about, max_tokens: 0 }),
        400,
        "invalid_request_error",
        Anthropic.BadRequestError,
      ],
      [() => stranger.messages.create(about), 401, "authentication_error", Anthropic.AuthenticationError],
      [() => stranger.models.list(), 401, "authentication_error", Anthropic.AuthenticationError],
      [() => client.models.retrieve("nobody"), 404, "not_found_error", Anthropic.NotFoundError],
    ] as const;
    for (const [call, status, type, kind] of cases) {
      const error = await failureOf(call());
      expect(error).to.be.instanceOf(kind);
      expect(error.status).to.equal(status);
      expect(error.type).to.equal(type);
      expect(error.error).to.have.keys("type", "error", "request_id");
      expect(error.requestID).to.match(/^req_/);
    }
    upstream.setDefault({ status: 429 });
    const limited = await failureOf(client.messages.create(about));
    expect([limited.status, limited.type]).to.deep.equal([429, "rate_limit_error"]);
    expect(limited).to.be.instanceOf(Anthropic.RateLimitError);
    upstream.setDefault({ status: 503 });
    const overloaded = await failureOf(client.messages.create(about));
    // A platform reports a provider that is overloaded as one that failed, but for Anthropic's clients.
    const isKnown = target.wire === undefined || target.wire === "anthropic-messages";
    expect([overloaded.status, overloaded.type]).to.deep.equal(
      isKnown ? [529, "overloaded_error"] : [500, "api_error"],
    );
    upstream.setDefault({ status: 500 });
    const failed = await failureOf(client.messages.create(about));
    expect([failed.status, failed.type]).to.deep.equal([500, "api_error"]);
    upstream.reset();
    await untilServed(() => client.messages.create(about));
    upstream.next({ fault: { type: "cut", afterPieces: 1 } });
    const cut = await failureOf(client.messages.stream(about).finalMessage());
    expect(cut.type).to.equal("api_error");
  });

  it("takes the key as a bearer token too, and counts calls as anthropic's", async () => {
    const bearer = new Anthropic({ baseURL: test.url, apiKey: null, authToken: test.keys.member, maxRetries: 0 });
    await bearer.messages.create({ model: small, max_tokens: 50, messages: [question] });
    await test.platform.gateway.flush();
    expect(upstream.requests).to.have.length(1);
  });

  it("sends pictures, files and texts of documents on to a model that reads them", async () => {
    const model = luna;
    await client.messages.create({
      model,
      max_tokens: 2_000,
      messages: [
        {
          role: "user",
          content: [
            imageBlock,
            { type: "image", source: { type: "url", url: linkedPicture } },
            {
              type: "document",
              source: { type: "text", media_type: "text/plain", data: "Nine berths." },
              title: "Berths",
            },
            { type: "text", text: "How many?" },
          ],
        },
      ],
    });
    const wire = JSON.stringify(sent());
    expect(wire)
      .to.include(image)
      .and.to.include(linkedPicture)
      .and.to.include("Berths")
      .and.to.include("Nine berths.");
    const file = {
      type: "document" as const,
      source: { type: "base64" as const, media_type: "application/pdf" as const, data: pdf.replace(/^.*,/, "") },
    };
    const refused = await failureOf(
      client.messages.create({ model: small, max_tokens: 50, messages: [{ role: "user", content: [file] }] }),
    );
    expect([refused.status, refused.type]).to.deep.equal([400, "invalid_request_error"]);
    expect(refused.message).to.include("small takes no files");
  });

  for (const isStreamed of [false, true])
    it(`brings another provider's reasoning back to it as blocks of thinking${isStreamed ? ", streamed" : ""}`, async () => {
      const create = (messages: Anthropic.MessageParam[]) => {
        const body = { model: luna, max_tokens: 2_000, tools: [weather], messages };
        const about = { ...body, thinking: { type: "enabled" as const, budget_tokens: 1_000 } };
        return isStreamed ? client.messages.stream(about).finalMessage() : client.messages.create(about);
      };
      const item = {
        type: "reasoning" as const,
        id: "rs_1",
        encrypted_content: "Z2VoZWlt",
        summary: [{ type: "summary_text", text: "It rains." }],
      };
      upstream.next({ reasoningItems: [item], pieces: [], toolCalls: [call] });
      const asked = await create([question]);
      // The chunks of a chat have the reasoning that is to come back at their end.
      const late = isStreamed && target.wire === "openai-chat" ? ["thinking"] : [];
      expect(asked.content.map(({ type }) => type)).to.deep.equal(["thinking", "tool_use", ...late]);
      expect(asked.content[0]).to.deep.include({ thinking: "It rains." });
      const result = { type: "tool_result" as const, tool_use_id: "call_1", content: "Rain." };
      const turn = { role: "assistant" as const, content: asked.content };
      await create([question, turn, { role: "user", content: [result] }]);
      const body = JSON.parse(JSON.stringify(sent()));
      expect(body.reasoning).to.deep.include({ effort: "medium" });
      expect(body.input).to.deep.include(item);
      // Another provider's model gets the conversation without it.
      const elsewhere = {
        model: small,
        max_tokens: 50,
        messages: [question, turn, { role: "user" as const, content: [result] }],
      };
      await client.messages.create(elsewhere);
      expect(JSON.stringify(sent())).not.to.include("Z2VoZWlt");
    });
});
