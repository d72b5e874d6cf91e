import { expect } from "chai";
import { makeProse } from "../support/documents.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const KEY = "sk-rerank-0123456789abcdef";
const RERANKER = "judge/rerank-1";
const CHAT = "judge/small";
const topics = ["valves", "gaskets", "filters", "couplings", "bearings", "impellers"];
type Result = { content: string; score: number };
type Report = { reranked: boolean; model?: string; ms: number; usd: number; reason?: string };
type Outcome = { results: Result[]; rerank?: Report };

describe("reranking", function () {
  this.timeout(60_000);
  let upstream: FakeProvider;
  let test: TestPlatform;
  let admin: ApiClient;
  let tenantId: string;

  const body = () => ({
    baseUrl: upstream.url,
    key: KEY,
    wire: "openai-chat",
    models: [
      { id: "rerank-1", type: "rerank", contextWindow: 8_000, inputUsdPerMTok: 2, outputUsdPerMTok: 0 },
      { id: "small", type: "chat", contextWindow: 32_000, inputUsdPerMTok: 3, outputUsdPerMTok: 5 },
    ],
  });
  const put = (client: ApiClient, more = {}) =>
    client.request("PUT", "/ai/providers/custom/judge", { body: { ...body(), ...more } });

  before(async () => {
    upstream = await startFakeProvider();
    test = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: upstream.origin } });
    admin = makeClient({ url: test.url, key: test.keys.admin });
    tenantId = await tenantOf(test);
    const notes = Array.from({ length: 36 }, (_, n) => {
      const text = `Note ${n}: the ${topics[n % topics.length]} of pump ${n} are checked each week.`;
      return `## Pump ${n}\n\n${text}${n === 20 ? " They are replaced." : ""}\n\n${makeProse(6, `station ${n}`)}`;
    });
    const made = await admin.post(
      "/rag/ingest",
      { title: "Stations", content: notes.join("\n\n") },
      { headers: { prefer: "wait=50" } },
    );
    expect(made.at("chunks"), made.text).to.equal(36);
    expect((await put(admin)).status).to.equal(200);
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test?.close();
    await upstream?.close();
  });

  const ask = async (more: object, query = "the filters of pump 20 replaced"): Promise<Outcome> => {
    const { status, body: found, text } = await admin.post("/rag/query", { query, ...more });
    expect(status, text).to.equal(200);
    return found as Outcome;
  };
  /** A judge that likes one note best. */
  const prefer = (n: number) =>
    upstream.setDefault((asked) => {
      const documents = asked.documents as string[];
      const results = documents.map((text, index) => ({
        index,
        relevance_score: text.includes(`Note ${n}:`) ? 0.9 : 0.1,
      }));
      return { rawBody: JSON.stringify({ results, usage: { total_tokens: 1_000 } }) };
    });

  it("reorders the first thirty hits by a reranking endpoint, and meters it", async () => {
    const plain = await ask({ topK: 36 });
    const last = plain.results[29]?.content ?? "";
    prefer(Number(/Note (\d+)/.exec(last)?.[1]));
    const { results, rerank } = await ask({ rerank: { model: RERANKER }, topK: 3 });
    expect(results).to.have.lengthOf(3);
    expect(results[0]).to.deep.include({ content: last, score: 0.9 });
    expect(results.map(({ score }) => score)).to.deep.equal([0.9, 0.1, 0.1]);
    expect(rerank).to.deep.include({ reranked: true, model: RERANKER, usd: 0.002 });
    const [request] = upstream.requests;
    expect(request?.path).to.equal("/v1/rerank");
    expect(request?.headers.authorization).to.equal(`Bearer ${KEY}`);
    expect(request?.body).to.deep.include({ model: "rerank-1", query: "the filters of pump 20 replaced", top_n: 30 });
    const read = request?.body.documents as string[];
    expect(read).to.have.lengthOf(30);
    expect(new Set(read)).to.have.lengthOf(30);
    for (const passage of read) expect(passage).to.match(/^Stations > Pump \d+\n## Pump/);
    const logs = await pollUntil(async () => {
      const { body: page } = await admin.get("/ai/logs?kind=rerank");
      const { data } = page as { data: { costUsd: number; inputTokens: number }[] };
      return data.length > 0 ? data : undefined;
    });
    expect(logs).to.have.lengthOf(1);
    expect(logs[0]).to.include({ inputTokens: 1_000 });
  });

  it("keeps hits beyond the thirtieth after the others, in falling scores", async () => {
    prefer(7);
    const { results } = await ask({ rerank: true, topK: 36 });
    expect(results).to.have.lengthOf(36);
    const scores = results.map(({ score }) => score);
    expect(scores).to.deep.equal(scores.toSorted((a, b) => b - a));
  });

  it("believes the tenant's own reranking model, and reads scores outside of 0 to 1", async () => {
    upstream.setDefault({
      rawBody: JSON.stringify({
        results: [
          { index: 4, relevance_score: 3.2 },
          { index: 1, relevance_score: -8 },
        ],
      }),
    });
    const plain = await ask({ topK: 5 });
    const { results, rerank } = await ask({ rerank: true, topK: 2 });
    expect(rerank).to.deep.include({ reranked: true, model: RERANKER });
    expect(results.map(({ content }) => content)).to.deep.equal(
      [plain.results[4], plain.results[1]].map((hit) => hit?.content),
    );
    expect(results[0]?.score).to.be.within(0.9, 1);
  });

  it("has a model that chats grade the passages", async () => {
    upstream.setDefault((asked) => {
      const { content = "" } = (asked.messages?.at(-1) ?? {}) as { content?: string };
      const passages = [...content.matchAll(/<passage number="(\d+)">\n[\s\S]*?(Note \d+:)/g)];
      return { pieces: passages.map(([, number, note]) => `${number}: ${note === "Note 14:" ? 10 : 2}\n`) };
    });
    const { results, rerank } = await ask({ rerank: { model: CHAT }, topK: 2 }, "the filters of pump 14");
    expect(results[0]?.content).to.contain("Note 14:");
    expect(results.map(({ score }) => score)).to.deep.equal([1, 0.2]);
    expect(rerank?.reranked).to.equal(true);
    expect(rerank?.usd).to.be.above(0);
    expect(upstream.requests[0]?.body.max_tokens).to.equal(600);
  });

  it("keeps the order of the search if the model fails, and says why", async () => {
    const plain = await ask({ topK: 5 });
    upstream.setDefault({ pieces: ["I cannot say."] });
    expect((await ask({ rerank: { model: CHAT } })).rerank?.reason).to.contain("graded no passage");
    const faults = [
      { behaviour: { status: 400, errorMessage: "no such model" }, reason: "no such model" },
      {
        behaviour: { rawBody: JSON.stringify({ results: [{ index: 99, relevance_score: 1 }] }) },
        reason: "not asked for",
      },
    ];
    for (const { behaviour, reason } of faults) {
      upstream.setDefault(behaviour);
      const { results, rerank } = await ask({ topK: 5, rerank: { model: RERANKER } });
      expect(results).to.deep.equal(plain.results);
      expect(rerank).to.deep.include({ reranked: false, model: RERANKER, usd: 0 });
      expect(rerank?.reason).to.contain(reason);
    }
  });

  it("is held to the tenant's budget", async () => {
    await test.platform.gateway.setBudget(tenantId, 0.000_001);
    const { rerank } = await ask({ rerank: { model: RERANKER } });
    expect(rerank?.reranked).to.equal(false);
    expect(rerank?.reason).to.contain("budget");
    expect(upstream.requests).to.deep.equal([]);
    await test.platform.gateway.setBudget(tenantId, null);
  });

  it("refuses models that are not there, cannot judge, or are another tenant's", async () => {
    for (const model of ["judge/none", "edge-embed-offline"]) {
      const { status, text } = await admin.post("/rag/query", { query: "filters", rerank: { model } });
      expect(status).to.be.oneOf([400, 404]);
      expect(text).to.contain("unknown_model").and.to.contain("rerank.model");
    }
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    expect((await stranger.post("/rag/query", { query: "filters", rerank: { model: RERANKER } })).text).to.contain(
      "unknown_model",
    );
    const none = (await stranger.post("/rag/query", { query: "filters", rerank: true })).body as Outcome;
    expect(none.rerank).to.deep.include({ reranked: false });
    const chat = { model: RERANKER, messages: [{ role: "user", content: "Hi" }] };
    expect((await admin.post("/ai/chat", chat)).text).to.contain("unknown_model");
    expect((await put(admin, { wire: "anthropic-messages" })).status).to.equal(400);
  });
});
