import { expect } from "chai";
import { createParser } from "eventsource-parser";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";

/** What these tests read of the fake's answers. */
type Answer = {
  choices: { message: { content: string } }[];
  usage: unknown;
  error: { code: string };
  data: { embedding: unknown }[];
};
const readJson = async (response: Response) => (await response.json()) as Answer; // the test itself checks what it reads

describe("fake provider", () => {
  let fake: FakeProvider;
  before(async () => {
    fake = await startFakeProvider();
  });
  afterEach(() => fake.reset());
  after(() => fake.close());

  const post = (path: string, body: unknown) =>
    fetch(fake.url + path, { method: "POST", headers: { authorization: "Bearer k" }, body: JSON.stringify(body) });
  const chat = (extra: object = {}) => post("/chat/completions", { model: "m", messages: [], ...extra });
  const readEvents = (text: string) => {
    const events: string[] = [];
    const parser = createParser({ onEvent: (event) => events.push(event.data) });
    parser.feed(text);
    return events;
  };

  it("answers a completion and records the request", async () => {
    const answer = await readJson(await chat());
    expect(answer.choices[0]?.message.content).to.equal("The lease protects a job.");
    expect(answer.usage).to.deep.equal({ prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 });
    expect(fake.requests).to.have.length(1);
    expect(fake.requests[0]?.headers.authorization).to.equal("Bearer k");
    expect(await fake.requests[0]?.ended).to.equal("completed");
  });

  it("plays the scripted behaviours in order", async () => {
    fake.next({ pieces: ["one"] }, { status: 429, headers: { "retry-after": "2" }, errorCode: "rate_limit_exceeded" });
    expect((await readJson(await chat())).choices[0]?.message.content).to.equal("one");
    const second = await chat();
    expect([second.status, second.headers.get("retry-after")]).to.deep.equal([429, "2"]);
    expect((await readJson(second)).error.code).to.equal("rate_limit_exceeded");
    expect((await chat()).status).to.equal(200);
  });

  it("streams role, pieces, finish reason, usage when asked for, and [DONE]", async () => {
    const events = readEvents(await (await chat({ stream: true, stream_options: { include_usage: true } })).text());
    const chunks = events.slice(0, -1).map((data) => JSON.parse(data));
    expect(events.at(-1)).to.equal("[DONE]");
    expect(chunks[0].choices[0].delta.role).to.equal("assistant");
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).to.equal("The lease protects a job.");
    expect(chunks.at(-2).choices[0].finish_reason).to.equal("stop");
    expect(chunks.at(-1)).to.deep.include({ choices: [] });
    expect(chunks.at(-1).usage.total_tokens).to.equal(18);
  });

  it("splits a tool call over deltas", async () => {
    fake.next({ toolCalls: [{ id: "call_1", name: "find", arguments: '{"q":"lease"}' }] });
    const events = readEvents(await (await chat({ stream: true })).text()).slice(0, -1);
    const deltas = events.flatMap((data) => JSON.parse(data).choices[0].delta.tool_calls ?? []);
    expect(deltas).to.have.length(3);
    expect(deltas[0]).to.deep.include({ index: 0, id: "call_1", type: "function" });
    expect(deltas.map((delta) => delta.function.arguments).join("")).to.equal('{"q":"lease"}');
  });

  it("cuts, shortens and corrupts streams after a number of pieces", async () => {
    fake.next({ fault: { type: "short", afterPieces: 1 } }, { fault: { type: "malformed", afterPieces: 2 } });
    const short = readEvents(await (await chat({ stream: true })).text());
    expect(short.map((data) => JSON.parse(data).choices[0].delta.content)).to.deep.equal(["", "The lease "]);
    const spoiled = readEvents(await (await chat({ stream: true })).text());
    expect(() => JSON.parse(spoiled[3] ?? "")).to.throw(SyntaxError);
    fake.next({ fault: { type: "cut", afterPieces: 1 } });
    const cut = await chat({ stream: true });
    const error = await cut.text().then(
      () => undefined,
      (thrown: Error) => thrown,
    );
    expect(error).to.be.instanceOf(TypeError);
    expect(await fake.requests.at(-1)?.ended).to.equal("broken");
  });

  it("embeds as base64 when asked, else as numbers", async () => {
    const numbers = await readJson(await post("/embeddings", { model: "e", input: ["abc", "de"] }));
    expect(numbers.data.map((one) => one.embedding)).to.deep.equal([
      [3, 0, 0.5, -1],
      [2, 1, 0.5, -1],
    ]);
    const base64 = await readJson(await post("/embeddings", { model: "e", input: ["abc"], encoding_format: "base64" }));
    const bytes = Buffer.from(String(base64.data[0]?.embedding), "base64");
    expect([bytes.readFloatLE(0), bytes.readFloatLE(8)]).to.deep.equal([3, 0.5]);
  });
});
