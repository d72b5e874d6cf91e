import { expect } from "chai";
import { makeStreamedResponse } from "../../src/gateway/chat/streamed-response.ts";
import type { Message } from "../../src/gateway/messages.ts";
import { toNanoUsd } from "../../src/gateway/money/prices.ts";
import { fromMessage } from "../../src/gateway/providers/anthropic/chat.ts";
import { anthropicModels } from "../../src/gateway/providers/anthropic/models.ts";
import { toMessagesParams, willRepeat } from "../../src/gateway/providers/anthropic/request.ts";
import { makeMessageReader } from "../../src/gateway/providers/anthropic/stream.ts";
import { readEventStream } from "../../src/gateway/providers/event-stream.ts";
import type { StreamPart } from "../../src/gateway/providers/provider.ts";
import { AppError } from "../../src/lib/errors.ts";

const sse = (...events: { type: string }[]) =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
const start = (usage: object) => ({ type: "message_start", message: { id: "msg_1", role: "assistant", usage } });
const block = (index: number, content_block: object) => ({ type: "content_block_start", index, content_block });
const delta = (index: number, change: object) => ({ type: "content_block_delta", index, delta: change });
const stop = (index: number) => ({ type: "content_block_stop", index });
const ending = (stop_reason: string, usage: object) => ({ type: "message_delta", delta: { stop_reason }, usage });
const closing = { type: "message_stop" };

/** A stream with all that the documentation names, and something that it does not. */
const rich = [
  start({ input_tokens: 20, cache_read_input_tokens: 60, cache_creation_input_tokens: 20, output_tokens: 1 }),
  block(0, { type: "thinking", thinking: "", signature: "" }),
  { type: "ping" },
  delta(0, { type: "thinking_delta", thinking: "Überlegen: " }),
  delta(0, { type: "signature_delta", signature: "c2ln" }),
  stop(0),
  block(1, { type: "redacted_thinking", data: "c2VjcmV0" }),
  stop(1),
  block(2, { type: "text", text: "" }),
  delta(2, { type: "text_delta", text: "Grüße 👋 " }),
  delta(2, { type: "citations_delta", citation: { cited_text: "x" } }),
  { type: "brand_new_event", value: 1 },
  delta(2, { type: "text_delta", text: "日本" }),
  stop(2),
  block(3, { type: "tool_use", id: "toolu_1", name: "find", input: {} }),
  delta(3, { type: "input_json_delta", partial_json: "" }),
  delta(3, { type: "input_json_delta", partial_json: '{"q": "le' }),
  delta(3, { type: "input_json_delta", partial_json: 'ase"}' }),
  stop(3),
  block(4, { type: "tool_use", id: "toolu_2", name: "list", input: {} }),
  stop(4),
  ending("tool_use", { output_tokens: 42 }),
  closing,
];

const reader = () => ({ ...makeMessageReader(), readWhole: (body: string) => fromMessage(body, "asked") });

async function* chunksOf(text: string, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(text: string, size = 1_000_000): Promise<StreamPart[]> {
  const parts: StreamPart[] = [];
  const opened = async () => ({ chunks: chunksOf(text, size), finish: () => undefined });
  for await (const batch of readEventStream(opened, reader())) parts.push(...batch);
  return parts;
}

const errorOf = async (work: Promise<unknown>): Promise<AppError> => {
  const error = await work.catch((thrown: unknown) => thrown);
  if (!(error instanceof AppError)) throw new Error("expected an AppError");
  return error;
};

describe("Anthropic wire format", () => {
  it("reads a stream the same wherever the network cuts it", async () => {
    for (const size of [1, 2, 3, 7, 64, 1_000_000]) {
      const answer = makeStreamedResponse();
      const parts = await read(sse(...rich), size);
      answer.take(parts, "anthropic");
      expect(answer.content(), `${size} bytes at a time`).to.deep.equal({
        text: "Grüße 👋 日本",
        reasoning: "Überlegen: ",
        toolCalls: [
          { id: "toolu_1", name: "find", arguments: '{"q": "lease"}' },
          { id: "toolu_2", name: "list", arguments: "{}" },
        ],
      });
      const reasoning = parts.flatMap((part) => (part.type === "reasoning-delta" ? part.text : []));
      expect(reasoning.join("")).to.equal("Überlegen: ");
      const usage = { inputTokens: 100, outputTokens: 42, cachedTokens: 60, cacheWriteTokens: 20 };
      expect(answer.usage()).to.deep.equal(usage);
      const ended = { type: "end", finishReason: "tool_calls", responseId: "msg_1" };
      expect(parts.filter(({ type }) => type === "end")).to.deep.equal([ended]);
    }
  });

  it("reports the prompt's usage with the first content, and charges a broken stream with it", async () => {
    const seen: StreamPart[] = [];
    const opened = async () => ({ chunks: chunksOf(sse(...rich.slice(0, 10)), 1_000), finish: () => undefined });
    const failing = (async () => {
      for await (const batch of readEventStream(opened, reader())) seen.push(...batch);
    })();
    expect((await errorOf(failing)).details).to.deep.equal({ code: "stream_cut" });
    const answer = makeStreamedResponse();
    answer.take(seen, "anthropic");
    const measured = answer.measure({
      messages: [{ role: "user", content: "a prompt that would be counted otherwise" }],
      model: undefined,
    });
    expect(measured).to.include({ inputTokens: 100, cachedTokens: 60, cacheWriteTokens: 20 });
    expect(measured.outputTokens).to.be.within(4, 15);
  });

  it("yields no part before there is content, so that a stream that fails first can be retried", async () => {
    const failed = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    const parts: StreamPart[] = [];
    const text = sse(start({ input_tokens: 5, output_tokens: 1 }), { type: "ping" }, failed as { type: string });
    const opened = async () => ({ chunks: chunksOf(text, 10), finish: () => undefined });
    const reading = (async () => {
      for await (const batch of readEventStream(opened, reader())) parts.push(...batch);
    })();
    const error = await errorOf(reading);
    expect([error.code, error.retryable, error.details]).to.deep.equal([
      "provider_failed",
      true,
      { code: "overloaded_error", provider: "Overloaded" },
    ]);
    expect(parts).to.deep.equal([]);
  });

  it("is whole when the closing event is lost, and takes usage that comes again at the end", async () => {
    const text = sse(
      start({ input_tokens: 0, output_tokens: 0 }),
      block(0, { type: "text", text: "" }),
      delta(0, { type: "text_delta", text: "hi" }),
      ending("max_tokens", { input_tokens: 9, output_tokens: 3, cache_read_input_tokens: null }),
    );
    const answer = makeStreamedResponse();
    answer.take(await read(text), "anthropic");
    expect([answer.usage(), answer.finish()?.finishReason]).to.deep.equal([
      { inputTokens: 9, outputTokens: 3 },
      "length",
    ]);
  });

  it("reads a message with blocks of every kind, and every stop reason", () => {
    const message = (stop_reason: string) => ({
      model: "claude-x",
      content: [
        { type: "thinking", thinking: "", signature: "c2ln" },
        { type: "text", text: "one " },
        { type: "server_tool_use", id: "srv", name: "web_search", input: {} },
        { type: "text", text: "two" },
        { type: "tool_use", id: "toolu_1", name: "find", input: { q: "x" } },
      ],
      stop_reason,
      usage: { input_tokens: 3, output_tokens: 4 },
    });
    expect(fromMessage(JSON.stringify(message("tool_use")), "asked")).to.deep.equal({
      text: "one two",
      toolCalls: [{ id: "toolu_1", name: "find", arguments: '{"q":"x"}' }],
      finishReason: "tool_calls",
      model: "claude-x",
      usage: { inputTokens: 3, outputTokens: 4 },
      parts: [
        { type: "reasoning", item: { type: "thinking", thinking: "", signature: "c2ln" } },
        { type: "text", text: "one " },
        { type: "text", text: "two" },
        { type: "tool-call", id: "toolu_1", name: "find", arguments: '{"q":"x"}' },
      ],
    });
    const reasons = [
      "end_turn",
      "stop_sequence",
      "pause_turn",
      "max_tokens",
      "model_context_window_exceeded",
      "refusal",
    ];
    expect(reasons.map((reason) => fromMessage(JSON.stringify(message(reason)), "asked").finishReason)).to.deep.equal([
      "tool_calls",
      "tool_calls",
      "length",
      "length",
      "length",
      "content_filter",
    ]);
    const nameless = { content: [{ type: "tool_use", id: "toolu_1" }], stop_reason: "tool_use" };
    for (const wrong of [{ content: "hi" }, nameless])
      expect(() => fromMessage(JSON.stringify(wrong), "asked")).to.throw(AppError, "not a message");
  });

  it("charges what is kept for an hour at its own price", () => {
    const usage = {
      input_tokens: 3,
      cache_creation_input_tokens: 12_000,
      cache_creation: { ephemeral_5m_input_tokens: 2_000, ephemeral_1h_input_tokens: 10_000 },
      output_tokens: 100,
    };
    const read = fromMessage(JSON.stringify({ content: [], stop_reason: "end_turn", usage }), "m");
    const model = anthropicModels.find(({ id }) => id === "claude-haiku-4-5-20251001");
    expect(model && read.usage && toNanoUsd({ ...model, provider: "anthropic" }, read.usage)).to.equal(
      3 * 1_000 + 2_000 * 1_250 + 10_000 * 2_000 + 100 * 5_000,
    );
  });

  it("puts the messages of one side that follow each other into one turn", () => {
    const messages: Message[] = [
      { role: "user", content: "a" },
      { role: "user", content: "b" },
      { role: "assistant", content: "" },
      { role: "assistant", content: "c" },
      { role: "user", content: "d" },
    ];
    expect(toMessagesParams({ model: "m", messages }).messages).to.deep.equal([
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      { role: "assistant", content: "c" },
      { role: "user", content: "d" },
    ]);
  });

  it("sends pictures and files of users and tools as Anthropic documents them", () => {
    const content = [
      { type: "text" as const, text: "What is this?" },
      { type: "image" as const, url: "data:image/png;base64,iVBORw0KGgo=", detail: "high" as const },
      { type: "image" as const, url: "https://example.com/a.jpg" },
      { type: "file" as const, url: "data:application/pdf;base64,JVBERi0=", name: "a.pdf" },
      { type: "file" as const, url: "https://example.com/b.pdf" },
      { type: "text" as const, text: "" },
    ];
    const toolCalls = [{ id: "toolu_1", name: "see", arguments: "{}" }];
    const blocks = [
      { type: "text", text: "What is this?" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } },
      { type: "image", source: { type: "url", url: "https://example.com/a.jpg" } },
      {
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
        title: "a.pdf",
      },
      { type: "document", source: { type: "url", url: "https://example.com/b.pdf" } },
    ];
    const messages: Message[] = [
      { role: "user", content },
      { role: "assistant", content: "", toolCalls },
      { role: "tool", content, toolCallId: "toolu_1" },
    ];
    expect(toMessagesParams({ model: "m", messages }).messages).to.deep.equal([
      { role: "user", content: blocks },
      { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "see", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: blocks }] },
    ]);
  });

  it("reads the same reasoning from a message and from its stream, and sends it back byte for byte in its place", async () => {
    const thinking = { type: "thinking", thinking: "Überlegen: ", signature: "c2ln+/=", extra: { kept: [1, null] } };
    const redacted = { type: "redacted_thinking", data: "c2VjcmV0" };
    const call = { type: "tool_use", id: "toolu_1", name: "find", input: { q: "lease", deep: { a: 1 } } };
    const between = { type: "thinking", thinking: "", signature: "bm90ZQ==" };
    const blocks = [thinking, redacted, { type: "text", text: "I look." }, between, call];
    const usage = { input_tokens: 3, output_tokens: 4 };
    const streamed = await read(
      sse(
        start(usage),
        block(0, { ...thinking, thinking: "", signature: "" }),
        delta(0, { type: "thinking_delta", thinking: "Über" }),
        delta(0, { type: "thinking_delta", thinking: "legen: " }),
        delta(0, { type: "signature_delta", signature: "c2ln" }),
        delta(0, { type: "signature_delta", signature: "+/=" }),
        stop(0),
        block(1, redacted),
        stop(1),
        block(2, { type: "text", text: "I look." }),
        stop(2),
        block(3, { type: "thinking", thinking: "", signature: "" }),
        delta(3, { type: "signature_delta", signature: "bm90ZQ==" }),
        stop(3),
        block(4, { ...call, input: {} }),
        delta(4, { type: "input_json_delta", partial_json: JSON.stringify(call.input) }),
        stop(4),
        ending("tool_use", usage),
        closing,
      ),
      3,
    );
    const items = streamed.flatMap((part) => (part.type === "reasoning-item" ? [part.item] : []));
    expect(JSON.stringify(items)).to.equal(JSON.stringify([thinking, redacted, between]));
    const kinds = streamed.map(({ type }) => type).filter((type) => /item|text|tool/.test(type));
    expect(kinds.join()).to.equal(
      "reasoning-item,reasoning-item,text-delta,reasoning-item,tool-call-delta,tool-call-delta",
    );

    const { text, toolCalls, parts = [] } = fromMessage(JSON.stringify({ content: blocks, usage }), "m");
    const named = parts.map((part) => (part.type === "reasoning" ? { ...part, provider: "anthropic" } : part));
    const messages: Message[] = [
      { role: "user", content: "a" },
      { role: "assistant", content: text, toolCalls, parts: named },
    ];
    const turns = JSON.stringify(toMessagesParams({ model: "m", messages }).messages);
    expect(turns).to.equal(
      JSON.stringify([
        { role: "user", content: "a" },
        { role: "assistant", content: blocks },
      ]),
    );
  });

  it("marks for the prompt cache the instructions and the user's last two turns, where more turns are likely", () => {
    const mark = { cache_control: { type: "ephemeral" } };
    const tools = [{ name: "find" }, { name: "list" }];
    const toolCalls = ["toolu_1", "toolu_2"].map((id) => ({ id, name: "find", arguments: "{}" }));
    const question: Message[] = [{ role: "user", content: "a" }];
    const conversation: Message[] = [
      ...question,
      { role: "assistant", content: "b" },
      { role: "user", content: "c" },
      { role: "assistant", content: "", toolCalls },
      ...toolCalls.map(({ id }) => ({ role: "tool" as const, content: "found", toolCallId: id })),
    ];
    const requests = [{ messages: question }, { messages: conversation }, { messages: question, promptCacheKey: "k" }];
    expect(requests.map((request) => willRepeat({ model: "m", ...request }))).to.deep.equal([false, true, true]);
    const withSystem = { model: "m", tools, messages: [{ role: "system" as const, content: "s" }, ...conversation] };
    const params = toMessagesParams(withSystem, true);
    expect(params.system).to.deep.equal([{ type: "text", text: "s", ...mark }]);
    expect(params.messages).to.deep.equal([
      { role: "user", content: "a" },
      { role: "assistant", content: "b" },
      { role: "user", content: [{ type: "text", text: "c", ...mark }] },
      { role: "assistant", content: toolCalls.map(({ id }) => ({ type: "tool_use", id, name: "find", input: {} })) },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: "found" },
          { type: "tool_result", tool_use_id: "toolu_2", content: "found", ...mark },
        ],
      },
    ]);
    const marksOf = (value: unknown) => JSON.stringify(value).split("cache_control").length - 1;
    expect([marksOf(params), marksOf(toMessagesParams(withSystem))]).to.deep.equal([3, 0]);
    const withoutSystem = toMessagesParams({ model: "m", tools, messages: conversation }, true);
    expect([marksOf(withoutSystem), marksOf(withoutSystem.tools)]).to.deep.equal([3, 1]);
  });

  it("maps the choice of a tool", () => {
    const tools = [{ name: "find" }];
    const choiceOf = (toolChoice: "auto" | "none" | "required" | { name: string }) =>
      toMessagesParams({ model: "m", messages: [{ role: "user", content: "a" }], tools, toolChoice }).tool_choice;
    expect((["auto", "none", "required", { name: "find" }] as const).map(choiceOf)).to.deep.equal([
      { type: "auto" },
      { type: "none" },
      { type: "any" },
      { type: "tool", name: "find" },
    ]);
  });
});
