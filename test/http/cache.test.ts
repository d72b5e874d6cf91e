import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, type ApiEvent, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { longPrompts } from "../support/prompts.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const answer = "The lease protects a job.";
const headers = { "x-svc-debug": "true", "x-svc-options": "cache=true" };
/** What a tenant's answers may take, in bytes. */
const room = 1 << 20;
let questions = 0;
/** A question that nobody has asked yet. */
const fresh = () => {
  questions += 1;
  return { messages: [{ role: "user", content: `Question ${questions}` }] };
};

describe("the cache of answers", () => {
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  before(async () => {
    upstream = await startFakeProvider();
    test = await startPlatform({
      workers: false,
      env: { EDGE_BASE_URL: upstream.url, EDGE_MODEL: "small", CACHE_BYTES_PER_TENANT: `${room}` },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const chat = (body: object, options: Record<string, string> = headers, from = client) =>
    from.post("/ai/chat", body, { headers: options });
  const stream = async (body: object, options: Record<string, string> = headers) => {
    const opened = await client.events("POST", "/ai/chat", { body: { ...body, stream: true }, headers: options });
    const events: ApiEvent[] = await Array.fromAsync(opened.events);
    const data = events.map((event) => event.data as { delta?: { content: string }; [field: string]: unknown });
    return { text: data.map(({ delta }) => delta?.content ?? "").join(""), end: data.at(-1) ?? {} };
  };
  const statusOf = (response: { at(path: string): unknown }) => response.at("_preprocessing.cache.status");

  it("answers a repeat without a model call and without cost, with its own log record", async () => {
    const question = fresh();
    const first = await chat(question);
    expect([first.at("text"), first.at("cached"), statusOf(first)]).to.deep.equal([answer, false, "miss"]);
    const second = await chat(question);
    expect([second.at("text"), second.at("cached"), statusOf(second)]).to.deep.equal([answer, true, "hit"]);
    expect([second.at("costUsd"), second.at("inputTokens"), second.at("outputTokens")]).to.deep.equal([0, 11, 7]);
    expect(upstream.requests).to.have.lengthOf(1);
    expect(second.at("logId")).not.to.equal(first.at("logId"));
    const log = await client.get(`/ai/logs/${second.string("logId")}`);
    expect([log.at("cached"), log.at("costUsd"), log.at("attempts")]).to.deep.equal([true, 0, 0]);
  });

  it("streams a repeat, and answers a stream's repeat as JSON", async () => {
    const question = fresh();
    const first = await stream(question);
    expect([first.text, first.end.cached]).to.deep.equal([answer, false]);
    const second = await stream(question);
    expect([second.text, second.end.cached, second.end.costUsd]).to.deep.equal([answer, true, 0]);
    expect((await chat(question)).at("cached")).to.equal(true);
    expect(upstream.requests).to.have.lengthOf(1);
  });

  it("keeps tool calls as they were", async () => {
    const call = { id: "call_1", name: "find", arguments: '{"q":1}' };
    upstream.next({ toolCalls: [call] });
    const question = { ...fresh(), tools: [{ type: "function", function: { name: "find" } }] };
    const first = await chat(question);
    const second = await chat(question);
    expect(second.at("cached")).to.equal(true);
    expect(second.at("toolCalls")).to.deep.equal(first.at("toolCalls"));
    expect((await stream(question)).end.toolCalls).to.deep.equal(first.at("toolCalls"));
  });

  it("is used by itself at temperature 0 only, and can be turned off", async () => {
    const cold = { ...fresh(), temperature: 0 };
    await chat(cold, {});
    expect((await chat(cold, {})).at("cached")).to.equal(true);
    expect((await chat(cold, { "x-svc-options": "cache=false" })).at("cached")).to.equal(false);
    const warm = fresh();
    const debug = { "x-svc-debug": "true" };
    await chat(warm, debug);
    const again = await chat(warm, debug);
    expect([again.at("cached"), statusOf(again)]).to.deep.equal([false, "off"]);
  });

  it("keeps tenants and requests apart", async () => {
    const question = fresh();
    await chat(question);
    const others = [
      await chat(question, headers, makeClient({ url: test.url, key: test.keys.stranger })),
      await chat({ ...question, maxTokens: 9 }),
      await chat({ ...question, temperature: 0.3 }),
      await chat({ ...question, systemPrompt: "Be brief." }),
    ];
    for (const other of others) expect(other.at("cached")).to.equal(false);
    expect((await chat({ ...question, model: "meta-llm" })).at("cached"), "the default by its name").to.equal(true);
  });

  it("forgets after the requested time", async () => {
    const question = fresh();
    const options = { ...headers, "x-svc-options": "cache=true;cache-ttl=1" };
    await chat(question, options);
    expect((await chat(question, options)).at("cached")).to.equal(true);
    await pollUntil(async () => (await chat(question, options)).at("cached") === false, {
      what: "the end of its time",
    });
    for (const wrong of ["0", "90000", "x"]) {
      const refused = await chat(question, { "x-svc-options": `cache-ttl=${wrong}` });
      expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "x-svc-options"]);
    }
  });

  it("keeps no error, no cut stream and no truncated answer", async () => {
    const question = fresh();
    upstream.next({ status: 400 }, { fault: { type: "cut", afterPieces: 1 } }, { finishReason: "length" });
    expect((await chat(question)).status).to.equal(400);
    expect((await stream(question)).end.error).to.be.an("object");
    expect((await chat(question)).at("choices[0].finish_reason")).to.equal("length");
    expect((await chat(question)).at("cached")).to.equal(false);
    expect((await chat(question)).at("cached")).to.equal(true);
  });

  for (const isStreamed of [false, true]) {
    it(`calls the model once for many identical chats at once, ${isStreamed ? "streamed" : "as JSON"}`, async () => {
      const question = fresh();
      const gate = Promise.withResolvers<void>();
      upstream.setDefault({ until: gate.promise });
      const asking = Promise.all(
        Array.from({ length: 20 }, async () => {
          if (isStreamed) return await stream(question);
          const response = await chat(question);
          return { text: response.at("text"), end: response.body as Record<string, unknown> };
        }),
      );
      await pollUntil(() => upstream.requests.length === 1, { what: "the call" });
      await client.get("/readyz"); // which asks Redis too, so all have joined when it answers
      gate.resolve();
      const all = await asking;
      expect(upstream.requests).to.have.lengthOf(1);
      expect(new Set(all.map(({ text }) => text))).to.deep.equal(new Set([answer]));
      expect(all.filter(({ end }) => end.cached === false)).to.have.lengthOf(1);
      expect(new Set(all.map(({ end }) => end.logId)).size, "each has its record").to.equal(20);
    });
  }

  it("continues for the others when the first caller leaves, and ends when all have left", async () => {
    const gate = Promise.withResolvers<void>();
    upstream.setDefault({ until: gate.promise });
    const question = fresh();
    const [one, two] = [new AbortController(), new AbortController()];
    const ask = (signal: AbortSignal) => client.post("/ai/chat", question, { headers, signal }).catch(() => null);
    const leaving = ask(one.signal);
    await pollUntil(() => upstream.requests.length === 1, { what: "the call" });
    const staying = ask(two.signal);
    await client.get("/readyz"); // which asks Redis too, so the second one has joined when it answers
    one.abort();
    await leaving;
    gate.resolve();
    expect((await staying)?.at("text")).to.equal(answer);
    expect(upstream.requests).to.have.lengthOf(1);

    upstream.reset();
    upstream.setDefault({ firstByteMs: 5_000 });
    const alone = new AbortController();
    const gone = client.post("/ai/chat", fresh(), { headers, signal: alone.signal }).catch(() => null);
    await pollUntil(() => upstream.requests.length === 1, { what: "the call" });
    alone.abort();
    await gone;
    expect(await upstream.requests[0]?.ended).to.equal("broken");
  });

  it("uses the compressed chat, which is also all that the provider gets", async () => {
    const messages = longPrompts[0]?.messages ?? [];
    const options = { "x-svc-debug": "true", "x-svc-options": "compress=true;cache=true" };
    const short = await chat({ messages }, options);
    const report = short.at("_preprocessing.compression") as { ratio: number; techniques: string[] };
    expect(report.ratio).to.be.below(0.9);
    expect(report.techniques).to.include("drop-least-informative");
    const sent = JSON.stringify(upstream.requests.at(-1)?.body.messages);
    expect(sent.length).to.be.below(JSON.stringify(messages).length * 0.9);
    expect((await stream({ messages }, options)).end._preprocessing).to.deep.include({ cache: { status: "hit" } });
    const whole = await chat({ messages }, headers);
    expect([whole.at("cached"), whole.at("_preprocessing.compression")]).to.deep.equal([false, undefined]);
  });

  it("has a room for each tenant, in which new answers take the place of those that expire first", async () => {
    const options = { ...headers, "x-svc-options": "cache=true;cache-ttl=86400" };
    upstream.setDefault({ pieces: ["a".repeat(200_000)] });
    const questions = Array.from({ length: 40 }, fresh);
    for (const question of questions) await chat(question, options);
    const { producer, prefix } = test.platform.redis;
    const keys = await producer.keys(`${prefix}:answer*`);
    const sizes = await Promise.all(keys.map((key) => producer.memory("USAGE", key)));
    expect(sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0)).to.be.below(1.5 * room);
    const [first, last] = [questions[0] ?? {}, questions.at(-1) ?? {}];
    expect([statusOf(await chat(last, options)), statusOf(await chat(first, options))]).to.deep.equal(["hit", "miss"]);
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    const others = fresh();
    await chat(others, options, stranger);
    await chat(fresh(), options);
    expect(statusOf(await chat(others, options, stranger)), "another tenant's").to.equal("hit");
  });

  it("reuses the room of expired answers", async () => {
    const last = makeClient({ url: test.url, key: test.keys.stranger });
    upstream.setDefault({ pieces: ["b".repeat(120_000)] });
    const brief = { ...headers, "x-svc-options": "cache=true;cache-ttl=1" };
    const lasting = fresh();
    await chat(lasting, headers, last);
    const passing = Array.from({ length: 5 }, fresh);
    for (const question of passing) await chat(question, brief, last);
    const probe = passing[4] ?? {};
    await pollUntil(async () => statusOf(await chat(probe, headers, last)) === "miss", { what: "their end" });
    for (let more = 0; more < 4; more += 1) await chat(fresh(), headers, last);
    expect(statusOf(await chat(lasting, headers, last)), "nothing that lives had to go").to.equal("hit");
    const { producer, prefix } = test.platform.redis;
    for (const ends of await producer.keys(`${prefix}:answer-ends:*`)) {
      const kept = await producer.zrange(ends, "0", "-1");
      const living = await Promise.all(kept.map((key) => producer.exists(`${prefix}:answers:${key}`)));
      expect(living, "the account has no answer that is gone").to.deep.equal(kept.map(() => 1));
    }
  });
});
