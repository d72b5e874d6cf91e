import { expect } from "chai";
import type { Message } from "../../src/gateway/messages.ts";
import { makeResponsesProvider } from "../../src/gateway/providers/openai-responses/provider.ts";
import type { CompletionRequest, Served, StreamPart } from "../../src/gateway/providers/provider.ts";
import { AppError } from "../../src/lib/errors.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";

const never = new AbortController().signal;
const timeouts = { connectMs: 15_000, firstByteMs: 15_000, idleMs: 15_000 };
const messages: Message[] = [{ role: "user", content: "hi" }];
const request: CompletionRequest = { model: "gpt-6-astra", canReason: true, messages };
const image = "data:image/png;base64,iVBORw0KGgo=";
const pdf = "data:application/pdf;base64,JVBERi0=";
/** With its fields in an order of its own, and one that no client knows. */
const reasoningItem = (n: number) => ({
  encrypted_content: `gAAAA-${n}+/=é`,
  id: `rs_${n}`,
  summary: [],
  type: "reasoning" as const,
  later: { b: 1, a: [null] },
});
const call = (n: number) => ({ id: `call_${n}`, name: "find", arguments: `{"n":${n}}` });
const wireCall = (n: number) => ({
  type: "function_call",
  call_id: `call_${n}`,
  name: "find",
  arguments: `{"n":${n}}`,
});

describe("Responses wire format", () => {
  let fake: FakeProvider;
  let provider: ReturnType<typeof makeResponsesProvider>;
  before(async () => {
    fake = await startFakeProvider();
    provider = makeResponsesProvider({ baseUrl: fake.url, timeouts });
  });
  afterEach(() => fake.reset());
  after(async () => {
    await provider.close();
    await fake.close();
  });

  const complete = (asked: Partial<CompletionRequest> = {}) =>
    provider.complete({ ...request, ...asked }, { signal: never, apiKey: "sk-openai" });
  const readAll = async (parts: StreamPart[] = [], asked: Partial<CompletionRequest> = {}) => {
    for await (const batch of provider.stream({ ...request, ...asked }, { signal: never })) parts.push(...batch);
    return parts;
  };
  const errorOf = async (work: Promise<unknown>): Promise<AppError> => {
    const error = await work.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof AppError)) throw new Error(`expected an AppError, got ${error}`);
    return error;
  };

  it("maps a conversation with pictures, files, tool calls and their results", async () => {
    await complete({
      messages: [
        { role: "system", content: "be short" },
        {
          role: "user",
          content: [
            { type: "text", text: "what is this?" },
            { type: "image", url: image, detail: "low" },
            { type: "image", url: "https://example.com/a.png" },
            { type: "file", url: pdf, name: "a.pdf" },
            { type: "file", url: "https://example.com/b.pdf" },
          ],
        },
        { role: "assistant", content: "let me look", toolCalls: [call(1)] },
        {
          role: "tool",
          toolCallId: "call_1",
          content: [
            { type: "text", text: "seen" },
            { type: "image", url: image },
          ],
        },
        { role: "assistant", content: "a cat" },
        { role: "user", content: "sure?" },
      ],
    });
    expect(fake.requests[0]?.path).to.equal("/v1/responses");
    expect(fake.requests[0]?.headers.authorization).to.equal("Bearer sk-openai");
    expect(fake.requests[0]?.body).to.deep.equal({
      model: "gpt-6-astra",
      input: [
        { role: "system", content: "be short" },
        {
          role: "user",
          content: [
            { type: "input_text", text: "what is this?" },
            { type: "input_image", image_url: image, detail: "low" },
            { type: "input_image", image_url: "https://example.com/a.png", detail: "auto" },
            { type: "input_file", filename: "a.pdf", file_data: pdf },
            { type: "input_file", file_url: "https://example.com/b.pdf" },
          ],
        },
        { role: "assistant", content: "let me look" },
        wireCall(1),
        {
          type: "function_call_output",
          call_id: "call_1",
          output: [
            { type: "input_text", text: "seen" },
            { type: "input_image", image_url: image, detail: "auto" },
          ],
        },
        { role: "assistant", content: "a cat" },
        { role: "user", content: "sure?" },
      ],
      store: false,
      include: ["reasoning.encrypted_content"],
    });
  });

  it("maps the settings, and asks no model for reasoning that has none", async () => {
    const schema = { type: "object", properties: {}, additionalProperties: false };
    const plain: CompletionRequest = {
      model: "gpt-4.1",
      messages,
      temperature: 0.5,
      topP: 0.9,
      maxTokens: 16,
      tools: [{ name: "find", description: "Finds", parameters: { type: "object" } }, { name: "stop" }],
      toolChoice: { name: "find" },
      parallelToolCalls: false,
      responseFormat: { type: "json_schema", json_schema: { name: "answer", strict: true, schema } },
      effort: "none",
      verbosity: "low",
      metadata: { team: "a" },
      user: "u1",
      safetyIdentifier: "s1",
      serviceTier: "flex",
      promptCacheKey: "run_1",
    };
    await provider.complete(plain, { signal: never });
    expect(fake.requests[0]?.body).to.deep.equal({
      model: "gpt-4.1",
      input: messages,
      store: false,
      max_output_tokens: 16,
      temperature: 0.5,
      top_p: 0.9,
      tools: [
        { type: "function", name: "find", description: "Finds", parameters: { type: "object" }, strict: false },
        { type: "function", name: "stop", parameters: { type: "object", properties: {} }, strict: false },
      ],
      tool_choice: { type: "function", name: "find" },
      parallel_tool_calls: false,
      reasoning: { effort: "none" },
      text: { format: { type: "json_schema", name: "answer", strict: true, schema }, verbosity: "low" },
      metadata: { team: "a" },
      user: "u1",
      safety_identifier: "s1",
      service_tier: "flex",
      prompt_cache_key: "run_1",
    });
    await complete({ responseFormat: { type: "json_object" }, toolChoice: "required" });
    expect(fake.requests[1]?.body).to.deep.include({
      text: { format: { type: "json_object" } },
      tool_choice: "required",
    });
  });

  it("reads text, reasoning, tool calls, their order, finish reason and usage", async () => {
    const usage = { prompt_tokens: 90, completion_tokens: 8, cached_tokens: 50, cache_write_tokens: 30 };
    fake.next({ reasoning: "hm", pieces: ["Let me ", "look."], toolCalls: [call(1)], usage });
    const { parts = [], ...result } = await complete();
    expect(result).to.deep.equal({
      text: "Let me look.",
      reasoning: "hm",
      toolCalls: [call(1)],
      finishReason: "tool_calls",
      usage: { inputTokens: 90, outputTokens: 8, cachedTokens: 50, cacheWriteTokens: 30 },
      responseId: "resp_fake",
      model: "gpt-6-astra",
    });
    expect(parts.map((part) => (part.type === "reasoning" ? part.item.id : part.type))).to.deep.equal([
      "rs_fake",
      "text",
      "tool-call",
    ]);
    fake.next({ finishReason: "length" }, { finishReason: "content_filter" }, { isRejection: true, usage: false });
    const endings = [await complete(), await complete(), await complete()];
    expect(endings.map(({ finishReason }) => finishReason)).to.deep.equal(["length", "content_filter", "stop"]);
    expect(endings[2]).not.to.have.any.keys("usage", "parts", "reasoning");
    expect(endings[2]?.text).to.equal("The lease protects a job.");
  });

  it("returns encrypted reasoning over three tool turns byte for byte and in its place, as JSON and streamed", async () => {
    for (const isStreamed of [false, true]) {
      const messages: Message[] = [{ role: "user", content: "find it" }];
      const sent: string[] = [];
      for (const n of [1, 2, 3]) {
        fake.next({ reasoningItems: [reasoningItem(n), reasoningItem(n + 10)], toolCalls: [call(n)] });
        const items = isStreamed
          ? (await readAll([], { messages })).flatMap((part) => (part.type === "reasoning-item" ? [part.item] : []))
          : ((await complete({ messages })).parts ?? []).flatMap((part) =>
              part.type === "reasoning" ? [part.item] : [],
            );
        expect(items).to.have.length(2);
        const parts = items.map((item) => ({ type: "reasoning" as const, provider: "openai", item }));
        messages.push(
          { role: "assistant", content: "", parts: [...parts, { type: "tool-call", ...call(n) }] },
          { role: "tool", toolCallId: `call_${n}`, content: "nothing" },
        );
        sent.push(...[reasoningItem(n), reasoningItem(n + 10), wireCall(n)].map((item) => JSON.stringify(item)));
        sent.push(JSON.stringify({ type: "function_call_output", call_id: `call_${n}`, output: "nothing" }));
      }
      await complete({ messages });
      const input = fake.requests.at(-1)?.body.input;
      expect(Array.isArray(input) && input.slice(1).map((item) => JSON.stringify(item))).to.deep.equal(sent);
    }
  });

  it("keeps no reasoning that a server without a store could not go on from", async () => {
    fake.setDefault({ reasoningItems: [{ type: "reasoning", id: "rs_1", summary: [{ text: "hm" }] }] });
    const { parts, reasoning } = await complete();
    expect([parts, reasoning]).to.deep.equal([undefined, "hm"]);
    expect((await readAll()).map(({ type }) => type)).to.deep.equal([
      "reasoning-delta",
      ...Array<string>(3).fill("text-delta"),
      "usage",
      "end",
    ]);
  });

  it("streams the parts in their order, with the usage before the end, and keeps the connection", async () => {
    fake.next({ reasoning: "hm", pieces: ["Let ", "me."], toolCalls: [call(1), { ...call(2), arguments: "" }] });
    const parts = await readAll();
    const shown = parts.map((part) => (part.type.endsWith("-delta") && "text" in part ? part.text : part.type));
    expect(shown.slice(0, 4)).to.deep.equal(["hm", "reasoning-item", "Let ", "me."]);
    expect(shown.slice(-2)).to.deep.equal(["usage", "end"]);
    const calls = parts.filter((part) => part.type === "tool-call-delta");
    expect(calls[0]).to.deep.include({ index: 0, id: "call_1", name: "find" });
    expect(calls.map(({ argumentsDelta }) => argumentsDelta).join("")).to.equal('{"n":1}{}');
    expect(calls.find(({ index }) => index === 1)).to.deep.include({ id: "call_2", name: "find" });
    expect(parts.at(-1)).to.deep.include({ type: "end", finishReason: "tool_calls", responseId: "resp_fake" });
    expect(await fake.requests[0]?.ended).to.equal("completed");
    fake.next({ finishReason: "length" });
    expect((await readAll()).at(-1)).to.deep.include({ type: "end", finishReason: "length" });
  });

  it("reports a stream that is cut, ends short, is malformed or reports an error, after the parts that came", async () => {
    const faults = [
      [{ type: "cut", afterPieces: 2 }, { connection: "UND_ERR_SOCKET" }],
      [{ type: "short", afterPieces: 2 }, { code: "stream_cut" }],
      [{ type: "malformed", afterPieces: 2 }, { code: "malformed_answer" }],
      [
        { type: "error-event", afterPieces: 2 },
        { code: "overloaded", provider: "overloaded" },
      ],
    ] as const;
    for (const [fault, details] of faults) {
      fake.next({ fault });
      const parts: StreamPart[] = [];
      const error = await errorOf(readAll(parts));
      const kinds = parts.map(({ type }) => type);
      expect(kinds, fault.type).to.deep.equal(["text-delta", "text-delta"]);
      expect([error.code, error.details, error.retryable]).to.deep.equal(["provider_failed", details, true]);
    }
  });

  it("reports a response that failed as the same error with a status", async () => {
    const cases = [
      ["server_error", "provider_failed", true],
      ["rate_limit_exceeded", "provider_rate_limited", true],
      ["insufficient_quota", "provider_rate_limited", false],
      ["invalid_prompt", "provider_rejected", false],
      ["image_parse_error", "provider_rejected", false],
    ] as const;
    for (const [code, expected, retryable] of cases) {
      fake.setDefault({ failure: { code, message: "It failed." } });
      for (const work of [complete(), readAll()]) {
        const error = await errorOf(work);
        expect([error.code, error.retryable, (error.details as { code?: string }).code], code).to.deep.equal([
          expected,
          retryable,
          code,
        ]);
      }
    }
  });

  it("measures what of an answer had come when it broke off", async () => {
    const served: Served[] = [];
    const context = { signal: never, onCharged: (one: Served) => void served.push(one) };
    fake.next(
      { reasoning: "hm ", fault: { type: "cut", afterPieces: 2 } },
      { fault: { type: "short", afterPieces: 0 } },
    );
    await errorOf(provider.complete(request, context));
    await errorOf(provider.complete(request, context));
    expect(served).to.deep.equal([{ text: "hm The lease protects " }, { text: "" }]);
  });

  it("charges a response that failed without a usage for nothing", async () => {
    const served: Served[] = [];
    const context = { signal: never, onCharged: (one: Served) => void served.push(one) };
    fake.setDefault({ failure: { code: "server_error", message: "It failed." } });
    await errorOf(provider.complete(request, context));
    await errorOf(Array.fromAsync(provider.stream(request, context)));
    expect(served).to.deep.equal([{ promptUsage: { inputTokens: 0, outputTokens: 0 } }]);
  });

  it("refuses answers that are not responses", async () => {
    for (const rawBody of ["<html>", "{}", '{"output":{}}', '{"output":[{"type":"message","content":5}]}', "null"]) {
      fake.next({ rawBody });
      const error = await errorOf(complete());
      expect([error.code, error.details], rawBody).to.deep.equal(["provider_failed", { code: "malformed_answer" }]);
    }
  });

  it("passes over items and contents of kinds that it does not know", async () => {
    const message = { type: "message", content: [{ type: "audio" }, { type: "output_text", text: "done" }] };
    fake.next({ rawBody: JSON.stringify({ output: [{ type: "web_search_call", id: "ws_1" }, message] }) });
    expect(await complete()).to.deep.equal({ text: "done", toolCalls: [], finishReason: "stop", model: "gpt-6-astra" });
  });
});
