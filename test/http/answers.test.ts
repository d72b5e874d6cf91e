import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const MODEL = "scribe/small";
type Citation = { documentId: string; chunkId: string; title: string; heading?: string; quote: string; url?: string };
type Answer = {
  answer: string;
  citations: Citation[];
  found: boolean;
  coverage: number;
  model: string | null;
  costUsd: number;
  logId: string;
  usage: { prompt_tokens: number; completion_tokens: number };
};

const manual = `# P-100

## Bleeding

Bleed the pump before each heating season. Open the valve until no air comes.

## Faults

E-04 means that there is no flow. Call the service.`;

describe("answers from documents", function () {
  this.timeout(60_000);
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  let documentId: string;

  before(async () => {
    upstream = await startFakeProvider();
    test = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: upstream.origin } });
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    client = makeClient({ url: test.url, key: test.keys.member });
    const provider = {
      baseUrl: upstream.url,
      key: "sk-scribe-0123456789abcdef",
      wire: "openai-chat",
      models: [{ id: "small", type: "chat", contextWindow: 32_000, inputUsdPerMTok: 3, outputUsdPerMTok: 5 }],
    };
    expect((await admin.request("PUT", "/ai/providers/custom/scribe", { body: provider })).status).to.equal(200);
    documentId = (await client.post("/rag/ingest", { title: "Pump manual", content: manual })).string("documentId");
    const park = "Cars are parked behind the hall. A permit costs 20 EUR.";
    await client.post("/rag/ingest", { title: "Parking", content: park, collection: "site" });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test?.close();
    await upstream?.close();
  });

  const ask = async (
    more: object = {},
    query = "When is the pump bled before the heating season?",
  ): Promise<Answer> => {
    const { status, body, text } = await client.post("/rag/answer", { query, model: MODEL, ...more });
    expect(status, text).to.equal(200);
    return body as Answer;
  };
  const stream = async (body: object) => {
    const { events } = await client.events("POST", "/rag/answer", { body: { ...body, stream: true } });
    const all: Record<string, unknown>[] = [];
    for await (const { data } of events) all.push(data as Record<string, unknown>);
    return all;
  };
  /** What the model got. */
  const prompt = () => JSON.stringify(upstream.requests.at(-1)?.body.messages ?? "");

  it("come with citations whose quotes are in the passages that the model got", async () => {
    upstream.setDefault({ pieces: ['Before each season [1: "Bleed the pump  before each heating season"].'] });
    const { answer, citations, found, coverage, model, costUsd, logId, usage } = await ask({ topK: 1 });
    expect(answer).to.equal("Before each season [1].");
    expect(citations).to.have.lengthOf(1);
    expect(citations[0]).to.deep.include({ documentId, title: "Pump manual", heading: "P-100" });
    expect(citations[0]?.quote).to.equal("Bleed the pump before each heating season");
    expect({ found, model }).to.deep.equal({ found: true, model: MODEL });
    expect(coverage).to.be.greaterThan(0.6);
    expect(costUsd).to.be.closeTo((usage.prompt_tokens * 3 + usage.completion_tokens * 5) / 1e6, 1e-9);
    const log = await pollUntil(async () => {
      const { status, body } = await client.get(`/ai/logs/${logId}`);
      return status === 200 ? (body as { surface: string; model: string }) : undefined;
    });
    expect(log).to.include({ surface: "rag", model: MODEL });
  });

  it("replace words that no passage has by the sentence that fits, and cite nothing that was not given", async () => {
    upstream.setDefault({
      pieces: ['E-04 says there is no flow [1: "E-04 is harmless"]. It was said in Rome [9: "Rome"] and on Mars [1].'],
    });
    const { answer, citations } = await ask({ topK: 1 }, "What does E-04 mean, no flow?");
    expect(citations.map(({ quote }) => quote)).to.deep.equal(["E-04 means that there is no flow."]);
    expect(answer).to.equal("E-04 says there is no flow [1]. It was said in Rome and on Mars [1].");
  });

  it("stream as deltas, then the citations, then the whole answer", async () => {
    upstream.setDefault({ pieces: ["Before each ", "season [", '1: "Bleed the', ' pump before"', "]", ". Done"] });
    const events = await stream({ query: "When is the pump bled?", model: MODEL, topK: 1 });
    const text = events.map((event) => (event.delta as { content: string } | undefined)?.content ?? "").join("");
    expect(text).to.equal("Before each season [1]. Done");
    const [citations, end] = events.slice(-2);
    expect(citations?.citations).to.have.lengthOf(1);
    expect(end).to.deep.include({ done: true, answer: text, found: true, citations: citations?.citations });
    expect(events.slice(0, -1).every(({ done }) => done === false)).to.equal(true);
  });

  it("say that nothing was found without asking a model, if the passages cover too little", async () => {
    const outcome = await ask({ minCoverage: 0.5 }, "Which zeppelin insurance do astronauts prefer?");
    expect(outcome).to.deep.include({ found: false, citations: [], model: null, costUsd: 0 });
    expect(outcome.answer).to.equal("The documents do not answer this question.");
    expect(outcome.coverage).to.be.lessThan(0.5);
    expect(upstream.requests).to.deep.equal([]);
    const events = await stream({ query: "Which zeppelin insurance?", model: MODEL, minCoverage: 0.5 });
    expect(events.at(-1)).to.deep.include({ done: true, found: false });
  });

  it("say so too if the model finds nothing in the passages, and show no mark of it", async () => {
    upstream.setDefault({ pieces: ["NOT", "_FO", "UND"] });
    expect(await ask()).to.deep.include({ found: false, citations: [], model: MODEL });
    const events = await stream({ query: "When is the pump bled?", model: MODEL });
    expect(JSON.stringify(events)).to.not.contain("NOT");
    expect(events.at(-1)).to.deep.include({ answer: "The documents do not answer this question.", found: false });
  });

  it("find the passages of an answer without marks, and show that there are none of one that is made up", async () => {
    upstream.setDefault({ pieces: ["Bleed the pump before each heating season."] });
    expect((await ask()).citations[0]?.quote).to.equal("Bleed the pump before each heating season.");
    upstream.setDefault({ pieces: ["Queen Victoria opened Parliament."] });
    expect(await ask()).to.deep.include({ found: false, citations: [], answer: "Queen Victoria opened Parliament." });
  });

  it("are useful of the offline model, which is named", async () => {
    const { answer, citations, found, model } = await ask({ model: "meta-llm" });
    expect({ found, model }).to.deep.equal({ found: true, model: "switchyard-offline" });
    expect(answer).to.match(/Bleed the pump before each heating season\. ?\[1\]/);
    expect(citations[0]?.quote).to.equal("Bleed the pump before each heating season.");
  });

  it("go on with a conversation, of which the end is read", async () => {
    upstream.setDefault({ pieces: ["Yes [1]."] });
    const history = [
      { role: "user", content: `old ${"x".repeat(11_000)}` },
      { role: "assistant", content: "y".repeat(4_000) },
      { role: "user", content: "I have a P-100." },
    ];
    await ask({ history });
    const messages = upstream.requests[0]?.body.messages as { role: string; content: string }[];
    expect(messages.map(({ role }) => role)).to.deep.equal(["system", "user", "assistant", "user", "user"]);
    const said = messages.slice(1, -1).reduce((sum, { content }) => sum + content.length, 0);
    expect(said).to.be.at.most(12_000);
  });

  it("are limited to collections, by the question and by the key", async () => {
    upstream.setDefault(() => ({ pieces: ["A permit costs 20 EUR [1]."] }));
    const { citations } = await ask({ collection: "site", minCoverage: 0 }, "What does a permit for cars cost?");
    expect(citations[0]?.title).to.equal("Parking");
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const made = await owner.post("/keys", { role: "member", subject: "guest", collections: ["default"] });
    const guest = makeClient({ url: test.url, key: made.string("key") });
    const question = { query: "What does a permit for cars cost?", model: MODEL, minCoverage: 0 };
    expect((await guest.post("/rag/answer", question)).text).to.not.contain("Parking");
    expect(prompt()).to.not.contain("20 EUR");
    expect((await guest.post("/rag/answer", { ...question, collections: ["site"] })).status).to.equal(403);
    expect((await client.post("/rag/answer", { ...question, collection: "nowhere" })).status).to.equal(404);
  });

  it("refuse models that are not there, and questions and conversations that are too long", async () => {
    for (const [body, field] of [
      [{ query: "pump", model: "none" }, "model"],
      [{ query: "x".repeat(8_193) }, "query"],
      [{ query: "pump", history: Array(41).fill({ role: "user", content: "Hi" }) }, "history"],
      [{ query: "pump", history: [{ role: "system", content: "Hi" }] }, "history"],
      [{ query: "pump", topK: 21 }, "topK"],
    ] as const) {
      const { status, text } = await client.post("/rag/answer", body);
      expect(status, text).to.equal(400);
      expect(text).to.contain(field);
    }
  });

  it("report a provider that fails as a chat does, before and in the middle", async () => {
    upstream.setDefault({ status: 400, errorMessage: "no such model" });
    const failed = await client.post("/rag/answer", { query: "When is the pump bled?", model: MODEL });
    expect(failed.status).to.equal(400);
    upstream.setDefault({ pieces: ["Before each ", "season"], fault: { type: "cut", afterPieces: 1 } });
    const events = await stream({ query: "When is the pump bled?", model: MODEL });
    expect(events.at(-1)).to.have.property("error");
  });
});
