import { expect } from "chai";
import { makeProse } from "../support/documents.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const MODEL = "scribe/small";
const PRICES = { input: 3, output: 5 };
type Result = { content: string; title: string; score: number; coverage: number };
type Report = { rewritten: boolean; queries: string[]; model?: string; ms: number; usd: number; reason?: string };
type Outcome = { results: Result[]; coverage: number; rewrite?: Report };

describe("rewriting a query", function () {
  this.timeout(60_000);
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  let tenantId: string;

  before(async () => {
    upstream = await startFakeProvider();
    test = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: upstream.origin } });
    tenantId = await tenantOf(test);
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    client = makeClient({ url: test.url, key: test.keys.member });
    const models = [
      {
        id: "small",
        type: "chat",
        contextWindow: 32_000,
        inputUsdPerMTok: PRICES.input,
        outputUsdPerMTok: PRICES.output,
      },
      { id: "rerank-1", type: "rerank", contextWindow: 8_000, inputUsdPerMTok: 2, outputUsdPerMTok: 0 },
    ];
    const provider = { baseUrl: upstream.url, key: "sk-scribe-0123456789abcdef", wire: "openai-chat", models };
    expect((await admin.request("PUT", "/ai/providers/custom/scribe", { body: provider })).status).to.equal(200);
    for (const [title, content] of [
      [
        "Entlüften",
        "Die Umwälzpumpe wird vor jeder Heizperiode entlüftet. Das Ventil bleibt offen, bis keine Luft mehr kommt.",
      ],
      ["Lagerung", "Die Pumpe wird trocken gelagert und vor Frost geschützt. Der Lagerraum muss belüftet sein."],
      ["Parking", "Cars are parked behind the hall. A permit costs 20 EUR and is shown at the gate."],
      ...Array.from({ length: 8 }, (_, n) => [`Station ${n}`, makeProse(8, `station ${n}`)]),
    ] as const)
      await client.post("/rag/ingest", { title, content });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test?.close();
    await upstream?.close();
  });

  const ask = async (more: object, query = "How do I get the air out before winter?"): Promise<Outcome> => {
    const { status, body, text } = await client.post("/rag/query", { query, topK: 3, ...more });
    expect(status, text).to.equal(200);
    return body as Outcome;
  };
  const rewrite = { model: MODEL };
  const messagesOf = (at: number) => upstream.requests[at]?.body.messages as { role: string; content: string }[];

  it("finds a passage in another language, and says what was searched and how much of it is covered", async () => {
    upstream.setDefault({ pieces: ["1. Umwälzpumpe entlüften\n2. Heizperiode Ventil Luft\n"] });
    const plain = await ask({});
    const { results, coverage, rewrite: report } = await ask({ rewrite });
    expect(results[0]?.title).to.equal("Entlüften");
    expect(report).to.deep.include({
      rewritten: true,
      model: MODEL,
      queries: ["Umwälzpumpe entlüften", "Heizperiode Ventil Luft"],
    });
    expect(report?.usd).to.be.greaterThan(0);
    expect(coverage).to.be.greaterThan(plain.coverage + 0.3);
    const scores = results.map(({ score }) => score);
    expect(scores).to.deep.equal(scores.toSorted((a, b) => b - a));
    expect(plain).to.not.have.property("rewrite");
  });

  it("tells the model in which languages the documents are, and what was said before", async () => {
    upstream.setDefault({ pieces: ["Pumpe lagern Frost"] });
    const history = [
      { role: "user", content: "I have a pump for the garden." },
      { role: "assistant", content: "Which one?" },
    ];
    const { results } = await ask({ rewrite: { ...rewrite, history } }, "and how is it stored?");
    expect(results[0]?.title).to.equal("Lagerung");
    const [system, user] = messagesOf(0) ?? [];
    expect(system?.content).to.contain("German").and.to.contain("English");
    expect(user?.content).to.contain("pump for the garden").and.to.contain("and how is it stored?");
  });

  it("tells the model the language of a document as soon as it can be found", async () => {
    const told = async () => {
      upstream.reset();
      upstream.setDefault({ pieces: ["Tor"] });
      await ask({ rewrite, collection: "gate" }, "When is it closed?");
      return messagesOf(0)?.[0]?.content ?? "";
    };
    const german = "Das Tor wird um zehn Uhr abends geschlossen und am Morgen vom Pförtner wieder geöffnet.";
    await client.post("/rag/ingest", { collection: "gate", content: german });
    expect(await told()).to.contain("are in German:");
    const french = "Le portail est fermé à dix heures du soir et rouvert le matin par le gardien de la maison.";
    await client.post("/rag/ingest", { collection: "gate", content: french });
    expect(await told())
      .to.contain("German")
      .and.to.contain("French");
  });

  it("weighs what was written three times as much as the question, together", async () => {
    upstream.setDefault({ pieces: ["Pumpe Frost gelagert\nLagerraum belüftet"] });
    const { results } = await ask({ rewrite }, "What does a permit for cars cost?");
    expect(results[0]?.title).to.equal("Lagerung");
    expect(results.map(({ title }) => title)).to.include("Parking");
  });

  it("says how much of all that was written is covered, not of one search for a general word", async () => {
    upstream.setDefault({ pieces: ["Pumpe Frost gelagert"] });
    const { coverage: whole } = await ask({ rewrite }, "Wie wird die Pumpe gelagert?");
    upstream.setDefault({ pieces: ["Pumpe Frost gelagert\nZeppelin Versicherung Astronaut"] });
    const { coverage } = await ask({ rewrite }, "Wie wird die Pumpe gelagert?");
    expect(coverage).to.be.within(0.3 * whole, 0.7 * whole);
  });

  it("searches as it was asked where the model fails, is slow or writes nothing, and says why", async () => {
    const plain = await ask({});
    for (const [behaviour, reason] of [
      [{ status: 400, errorMessage: "no such model" }, "no such model"],
      [{ pieces: ["\n```json\n```\n"] }, "wrote no search"],
      [{ pieces: ["late"], firstByteMs: 6_000 }, "No answer within 3 s."],
    ] as const) {
      upstream.setDefault(behaviour);
      const { results, rewrite: report } = await ask({ rewrite });
      expect(results).to.deep.equal(plain.results);
      expect(report).to.deep.include({ rewritten: false, queries: [] });
      expect(report?.reason).to.contain(reason);
    }
  });

  it("does nothing with the offline model alone, and says so", async () => {
    const { rewrite: report } = await ask({ rewrite: true });
    expect(report).to.deep.include({ rewritten: false, queries: [], usd: 0 });
    expect(report?.reason).to.contain("no model");
    const answer = await client.post("/rag/answer", {
      query: "When is the pump stored?",
      rewrite: true,
      minCoverage: 0,
    });
    expect(answer.at("rewrite.rewritten"), answer.text).to.equal(false);
  });

  it("is held to the tenant's budget, and refuses models that are not there", async () => {
    await test.platform.gateway.setBudget(tenantId, 0.000_001);
    expect((await ask({ rewrite })).rewrite?.reason).to.contain("budget");
    expect(upstream.requests).to.deep.equal([]);
    await test.platform.gateway.setBudget(tenantId, null);
    for (const model of ["none", "scribe/rerank-1"])
      expect((await client.post("/rag/query", { query: "pump", rewrite: { model } })).text).to.contain("unknown_model");
  });

  it("costs what its provider charges, with reranking and the answer, and also where it was cut", async () => {
    await test.platform.gateway.flush();
    const rows = async () => {
      await test.platform.gateway.flush();
      const { body } = await client.get("/ai/logs?limit=100");
      return (
        body as { data: { logId: string; costUsd: number; inputTokens: number; outputTokens: number; kind: string }[] }
      ).data;
    };
    const known = new Set((await rows()).map(({ logId }) => logId));
    const scripted = [
      { pieces: ["Umwälzpumpe entlüften"], usage: "counted" },
      { rawBody: JSON.stringify({ results: [{ index: 0, relevance_score: 0.9 }], usage: { total_tokens: 1_000 } }) },
      { pieces: ["Before each heating season [1]."], usage: "counted" },
    ] as const;
    upstream.next(...scripted);
    const whole = {
      query: "How do I get the air out?",
      model: MODEL,
      rewrite: true,
      rerank: { model: "scribe/rerank-1" },
    };
    const { body: answer } = await client.post("/rag/answer", { ...whole, minCoverage: 0 });
    upstream.next({ pieces: ["Umwälz", "pumpe"], usage: "counted", fault: { type: "stall", afterPieces: 1 } });
    const { rewrite: cut } = await ask({ rewrite });
    expect(cut?.rewritten).to.equal(false);
    await Promise.all(upstream.requests.map(({ ended }) => ended));
    const made = await pollUntil(async () => {
      const found = (await rows()).filter(({ logId }) => !known.has(logId));
      const calls = found.filter(({ kind }) => kind !== "embedding");
      return calls.length >= 4 ? calls : undefined;
    });
    expect(made).to.have.lengthOf(4);
    const chats = upstream.requests.filter(({ path }) => path.endsWith("/chat/completions"));
    const invoice = chats.reduce(
      (sum, { served }) => sum + (served.prompt_tokens * PRICES.input + served.completion_tokens * PRICES.output) / 1e6,
      (1_000 * 2) / 1e6,
    );
    const ledger = made.reduce((sum, { costUsd }) => sum + costUsd, 0);
    expect(ledger).to.be.closeTo(invoice, 1e-9);
    const ofAnswer = (answer as { costUsd: number }).costUsd;
    expect(ofAnswer + (cut?.usd ?? 0)).to.be.closeTo(ledger, 1e-9);
  });
});
