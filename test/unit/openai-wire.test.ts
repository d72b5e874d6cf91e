import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import type { FilePart, Message } from "../../src/gateway/messages.ts";
import { makeWireProvider } from "../../src/gateway/providers/openai-wire/provider.ts";
import type { CompletionRequest, Provider, StreamPart } from "../../src/gateway/providers/provider.ts";
import { fromWireError, readRetryAfter } from "../../src/gateway/providers/wire-errors.ts";
import type { TransportTimeouts } from "../../src/gateway/resilience/transport.ts";
import { AppError } from "../../src/lib/errors.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { linkedPdf, pdf } from "../support/media.ts";

const never = new AbortController().signal;
const request: CompletionRequest = { model: "m", messages: [{ role: "user", content: "hi" }] };

describe("OpenAI wire format", () => {
  let fake: FakeProvider;
  let provider: Required<Omit<Provider, "batches" | "forward">>;
  before(async () => {
    fake = await startFakeProvider();
    provider = makeProvider({});
  });
  afterEach(() => fake.reset());
  after(async () => {
    await provider.close();
    await fake.close();
  });

  /** A client of the fake, with time limits of its own; those that are not given are never reached. */
  const makeProvider = (timeouts: Partial<TransportTimeouts>, baseUrl = fake.url) =>
    makeWireProvider({
      baseUrl,
      apiKey: "sk-platform",
      dialect: { maxTokensField: "max_tokens" },
      timeouts: { connectMs: 15_000, firstByteMs: 15_000, idleMs: 15_000, ...timeouts },
    });
  const readAll = async (asked: CompletionRequest = request, from = provider) => {
    const parts: StreamPart[] = [];
    for await (const batch of from.stream(asked, { signal: never })) parts.push(...batch);
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

  it("sends a PDF by its data, also of a tool's result, and refuses one by its URL", async () => {
    const file: FilePart = { type: "file", url: pdf };
    const ask = (...messages: Message[]) => provider.complete({ model: "m", messages }, { signal: never });
    const wireFile = (filename: string) => ({ type: "file", file: { filename, file_data: pdf } });
    await ask({
      role: "user",
      content: [
        { type: "text", text: "Sum it up." },
        { ...file, name: "terms.pdf" },
      ],
    });
    await ask({ role: "tool", toolCallId: "call_1", content: [file] });
    expect(fake.requests.map(({ body }) => body.messages)).to.deep.equal([
      [{ role: "user", content: [{ type: "text", text: "Sum it up." }, wireFile("terms.pdf")] }],
      [
        { role: "tool", content: "The result is in the next message of the user.", tool_call_id: "call_1" },
        { role: "user", content: [{ type: "text", text: "From the result of call_1:" }, wireFile("document.pdf")] },
      ],
    ]);
    const linked: Message = { role: "user", content: [{ type: "file", url: linkedPdf, name: "terms.pdf" }] };
    const error = await errorOf(Promise.resolve().then(() => ask(linked)));
    expect([error.code, error.message]).to.deep.equal([
      "invalid_request",
      "This model reads no file from a URL: send terms.pdf as a data: URL.",
    ]);
    expect(fake.requests).to.have.lengthOf(2);
  });

  it("maps a request with tools, tool calls and tool results, and the platform's key", async () => {
    await provider.complete(
      {
        model: "m",
        messages: [
          { role: "system", content: "be short" },
          { role: "assistant", content: "", toolCalls: [{ id: "c1", name: "find", arguments: "{}" }] },
          { role: "tool", content: "found", toolCallId: "c1" },
        ],
        temperature: 0.5,
        maxTokens: 9,
        tools: [{ name: "find", parameters: { type: "object" } }],
        toolChoice: { name: "find" },
      },
      { signal: never },
    );
    expect(fake.requests[0]?.path).to.equal("/v1/chat/completions");
    expect(fake.requests[0]?.headers.authorization).to.equal("Bearer sk-platform");
    expect(fake.requests[0]?.body).to.deep.equal({
      model: "m",
      messages: [
        { role: "system", content: "be short" },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c1", type: "function", function: { name: "find", arguments: "{}" } }],
        },
        { role: "tool", content: "found", tool_call_id: "c1" },
      ],
      temperature: 0.5,
      max_tokens: 9,
      tools: [{ type: "function", function: { name: "find", parameters: { type: "object" } } }],
      tool_choice: { type: "function", function: { name: "find" } },
    });
  });

  it("prefers the key of the call", async () => {
    await provider.complete(request, { signal: never, apiKey: "sk-customer" });
    expect(fake.requests[0]?.headers.authorization).to.equal("Bearer sk-customer");
  });

  it("reads text, reasoning, tool calls, finish reason and usage", async () => {
    fake.next(
      { reasoning: "hm", toolCalls: [{ id: "c9", name: "find", arguments: '{"a":1}' }] },
      { finishReason: "content_filter", usage: false },
    );
    expect(await provider.complete(request, { signal: never })).to.deep.equal({
      text: "",
      reasoning: "hm",
      toolCalls: [{ id: "c9", name: "find", arguments: '{"a":1}' }],
      finishReason: "tool_calls",
      usage: { inputTokens: 11, outputTokens: 7 },
      responseId: "chatcmpl-fake",
      model: "m",
    });
    const filtered = await provider.complete(request, { signal: never });
    expect([filtered.finishReason, filtered.usage]).to.deep.equal(["content_filter", undefined]);
  });

  it("streams parts with usage before the end, and keeps the connection", async () => {
    const parts = await readAll();
    expect(parts.map((part) => (part.type === "text-delta" ? part.text : part.type))).to.deep.equal([
      "The lease ",
      "protects ",
      "a job.",
      "usage",
      "end",
    ]);
    expect(fake.requests[0]?.body.stream_options).to.deep.equal({ include_usage: true });
    expect(await fake.requests[0]?.ended).to.equal("completed");
  });

  it("joins tool calls and multi-byte text that are split over network chunks", async () => {
    fake.next({ pieces: ["ž", "🚲", "語"], pieceMs: 5 });
    expect((await readAll()).map((part) => (part.type === "text-delta" ? part.text : "")).join("")).to.equal("ž🚲語");
    fake.next({ toolCalls: [{ id: "c", name: "find", arguments: '{"q":"x"}' }] });
    const calls = (await readAll()).filter((part) => part.type === "tool-call-delta");
    expect(calls[0]).to.deep.include({ index: 0, id: "c", name: "find" });
    expect(calls.map((part) => part.argumentsDelta).join("")).to.equal('{"q":"x"}');
  });

  it("says so when a stream is cut, ends short, is malformed or reports an error, after the parts that came", async () => {
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
      const error = await errorOf(
        (async () => {
          for await (const batch of provider.stream(request, { signal: never })) parts.push(...batch);
        })(),
      );
      expect(
        parts.map((part) => part.type),
        fault.type,
      ).to.deep.equal(["text-delta", "text-delta"]);
      expect([error.code, error.details, error.retryable]).to.deep.equal(["provider_failed", details, true]);
    }
  });

  it("times out a silent head, a silent stream and an unreachable server", async () => {
    fake.next({ firstByteMs: 20_000 }, { fault: { type: "stall", afterPieces: 1 } }, { firstByteMs: 20_000 });
    const quick = makeProvider({ firstByteMs: 300 });
    const head = await errorOf(quick.complete(request, { signal: never }));
    expect([head.code, head.details]).to.deep.equal(["provider_timeout", { phase: "first_byte" }]);
    const restless = makeProvider({ idleMs: 150 });
    const stall = await errorOf(readAll(request, restless));
    expect([stall.code, stall.details]).to.deep.equal(["provider_timeout", { phase: "idle" }]);
    expect(await fake.requests[1]?.ended).to.equal("broken");
    const open = await errorOf(readAll(request, quick));
    expect(open.details).to.deep.equal({ phase: "first_byte" });
    const nobody = makeProvider({}, "http://127.0.0.1:9/v1");
    const refused = await errorOf(nobody.complete(request, { signal: never }));
    expect([refused.code, refused.details]).to.deep.equal(["provider_failed", { connection: "ECONNREFUSED" }]);
    expect(refused.message).not.to.contain("127.0.0.1");
    await Promise.all([quick, restless, nobody].map((each) => each.close()));
  });

  it("gives an answer that is not streamed the time to be written", async () => {
    const patient = makeProvider({ firstByteMs: 50, answerMs: 15_000 });
    fake.setDefault({ firstByteMs: 1_500 });
    expect((await patient.complete(request, { signal: never })).text).to.equal("The lease protects a job.");
    fake.setDefault({ firstByteMs: 20_000 });
    const embedding = await errorOf(patient.embed({ model: "e", input: ["a"] }, { signal: never }));
    expect(embedding.details).to.deep.equal({ phase: "first_byte" });
    await patient.close();
  });

  it("aborts the upstream request when the caller's signal does", async () => {
    fake.setDefault({ pieceMs: 50 });
    const controller = new AbortController();
    const parts: StreamPart[] = [];
    const error = await errorOf(
      (async () => {
        for await (const batch of provider.stream(request, { signal: controller.signal })) {
          parts.push(...batch);
          controller.abort();
        }
      })(),
    );
    expect(error.code).to.equal("client_closed");
    expect(await fake.requests[0]?.ended).to.equal("broken");
  });

  it("does not blame the provider for a reader that is slower than the time limit", async () => {
    const piece = "x".repeat(64 << 10);
    fake.next({ pieces: Array<string>(15).fill(piece) });
    const strict = makeProvider({ idleMs: 700 });
    let characters = 0;
    let isFirst = true;
    for await (const batch of strict.stream(request, { signal: never })) {
      if (isFirst) await delay(1_500); // more than the limit, and more waits than is read ahead
      isFirst = false;
      for (const part of batch) if (part.type === "text-delta") characters += part.text.length;
    }
    expect(characters).to.equal(15 * piece.length);
    await strict.close();
  });

  it("ends a stream that says more than any model, after what came before", async () => {
    const piece = "x".repeat(64 << 10);
    fake.next({ pieces: Array<string>(100).fill(piece) });
    let characters = 0;
    const error = await errorOf(
      (async () => {
        for await (const batch of makeProvider({}).stream(request, { signal: never }))
          for (const part of batch) if (part.type === "text-delta") characters += part.text.length;
      })(),
    );
    expect(error.code).to.equal("provider_failed");
    expect(characters).to.be.within(1 << 20, 2 << 20);
  });

  it("aborts the upstream request when the reader leaves the loop", async () => {
    fake.setDefault({ pieceMs: 50 });
    for await (const _parts of provider.stream(request, { signal: never })) break;
    expect(await fake.requests[0]?.ended).to.equal("broken");
  });

  it("refuses responses that are not completions", async () => {
    for (const rawBody of ["<html>", "{}", '{"choices":[]}', '{"choices":[{"message":{"content":5}}]}', "null"]) {
      fake.next({ rawBody });
      const error = await errorOf(provider.complete(request, { signal: never }));
      expect([error.code, error.details], rawBody).to.deep.equal(["provider_failed", { code: "malformed_answer" }]);
    }
  });

  it("asks for base64 embeddings and reads arrays too, in the order of the inputs", async () => {
    const asked = { model: "e", input: ["abc", "de"] };
    const first = await provider.embed(asked, { signal: never });
    expect(fake.requests[0]?.body).to.deep.equal({ model: "e", input: ["abc", "de"], encoding_format: "base64" });
    fake.next({ onlyFloats: true });
    const second = await provider.embed(asked, { signal: never });
    expect(first.embeddings.map((vector) => Array.from(vector))).to.deep.equal([
      [3, 0, 0.5, -1],
      [2, 1, 0.5, -1],
    ]);
    expect(second.embeddings).to.deep.equal(first.embeddings);
    expect(first.usage).to.deep.equal({ inputTokens: 2 });
  });

  it("refuses embeddings that are missing or not vectors", async () => {
    const bodies = [
      '{"data":[]}',
      '{"data":[{"index":0,"embedding":"AAA"}]}',
      '{"data":[{"index":0,"embedding":["x"]}]}',
      '{"data":[{"index":3,"embedding":[1]}]}',
    ];
    for (const rawBody of bodies) {
      fake.next({ rawBody });
      const error = await errorOf(provider.embed({ model: "e", input: ["a"] }, { signal: never }));
      expect(error.details, rawBody).to.deep.equal({ code: "malformed_answer" });
    }
  });

  it("maps statuses to errors, with status and code, and never a message about the key", () => {
    const body = JSON.stringify({ error: { message: "Incorrect API key sk-12345", code: "invalid_api_key" } });
    const at = (status: number) => fromWireError(status, {}, body);
    expect(
      [at(400), at(401), at(403), at(408), at(409), at(429), at(500), at(503)].map(({ code, retryable }) => [
        code,
        retryable,
      ]),
    ).to.deep.equal([
      ["provider_rejected", false],
      ["provider_key_refused", false],
      ["provider_failed", false],
      ["provider_timeout", true],
      ["provider_failed", true],
      ["provider_rate_limited", true],
      ["provider_failed", true],
      ["provider_failed", true],
    ]);
    expect(at(401).details).to.deep.equal({ status: 401, code: "invalid_api_key" });
    expect(JSON.stringify([at(401), at(401).message])).not.to.contain("sk-12345");
    const unpaid = fromWireError(400, {}, '{"error":{"message":"Your credit balance is too low to call"}}');
    expect([unpaid.code, unpaid.reason]).to.deep.equal(["provider_failed", "access_refused"]);
    expect(fromWireError(502, {}, "<html>bad gateway</html>").details).to.deep.equal({ status: 502 });
  });

  it("reads Retry-After in seconds, as a date and in milliseconds", () => {
    const now = Date.parse("2026-11-20T10:00:00Z");
    expect(readRetryAfter({ "retry-after": "2" }, now)).to.equal(2_000);
    expect(readRetryAfter({ "retry-after": "Fri, 20 Nov 2026 10:00:07 GMT" }, now)).to.equal(7_000);
    expect(readRetryAfter({ "retry-after-ms": "150", "retry-after": "9" }, now)).to.equal(150);
    expect(readRetryAfter({ "retry-after": "soon" }, now)).to.equal(undefined);
  });
});
