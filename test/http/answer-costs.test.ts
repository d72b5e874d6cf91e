import { expect } from "chai";
import { makeProse } from "../support/documents.ts";
import type { Behaviour } from "../support/fake-provider/behaviour.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const MODEL = "scribe/small";
/** In USD a million tokens. */
const PRICES = { input: 3, output: 5, rerank: 2 };
const ANSWER = "The pump is bled before each heating season [1].";
const written = ["bleed pump ", "heating season"];

/** What goes wrong with the call that writes searches, whether it may be billed, and whether another attempt writes them. */
const failures: Record<string, { behaviour: Behaviour; isBilled: boolean; isMended?: true }> = {
  "writes no search": { behaviour: { pieces: ["```\n", "```"], usage: "counted" }, isBilled: true },
  "is refused": { behaviour: { status: 400, errorMessage: "no such model" }, isBilled: false },
  "is told to wait": { behaviour: { status: 429, headers: { "retry-after": "20" } }, isBilled: false },
  "breaks off in its answer": {
    behaviour: { pieces: written, usage: "counted", fault: { type: "cut", afterPieces: 1 } },
    isBilled: true,
  },
  "says no more in its answer": {
    behaviour: { pieces: written, usage: "counted", fault: { type: "stall", afterPieces: 1 } },
    isBilled: true,
  },
  "says nothing": { behaviour: { pieces: written, usage: "counted", firstByteMs: 6_000 }, isBilled: true },
  "is down at first": { behaviour: { status: 503 }, isBilled: true, isMended: true },
};

describe("an answer, if the model that rewrites its question", function () {
  this.timeout(60_000);
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  before(async () => {
    upstream = await startFakeProvider();
    test = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: upstream.origin } });
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    client = makeClient({ url: test.url, key: test.keys.member });
    const chat = { inputUsdPerMTok: PRICES.input, outputUsdPerMTok: PRICES.output };
    const models = [
      { id: "small", type: "chat", contextWindow: 32_000, ...chat },
      { id: "rerank-1", type: "rerank", contextWindow: 8_000, inputUsdPerMTok: PRICES.rerank, outputUsdPerMTok: 0 },
    ];
    const provider = { baseUrl: upstream.url, key: "sk-scribe-0123456789abcdef", wire: "openai-chat", models };
    expect((await admin.request("PUT", "/ai/providers/custom/scribe", { body: provider })).status).to.equal(200);
    const manual = "Bleed the pump before each heating season. Open the valve until no air comes.";
    await client.post("/rag/ingest", { title: "Pump", content: manual });
    for (const n of [1, 2, 3]) await client.post("/rag/ingest", { content: makeProse(4, `station ${n}`) });
  });
  after(async () => {
    await test?.close();
    await upstream?.close();
  });

  /** The model fails where it writes searches, by turns as given; it answers, and reranks, as always. */
  const play = (...failing: Behaviour[]) => {
    upstream.reset();
    upstream.setDefault((body) => {
      if (!("messages" in body)) return {};
      const isRewriting = JSON.stringify(body).includes("You write searches");
      if (!isRewriting) return { pieces: [ANSWER], usage: "counted" };
      return failing.shift() ?? { pieces: written, usage: "counted" };
    });
  };
  const invoice = async () => {
    await Promise.all(upstream.requests.map(({ ended }) => ended));
    return upstream.requests.reduce((sum, { path, served }) => {
      const tokens = served.prompt_tokens * (path.endsWith("/rerank") ? PRICES.rerank : PRICES.input);
      return sum + (tokens + served.completion_tokens * PRICES.output) / 1e6;
    }, 0);
  };
  /** What the newest calls cost, in the ledger. */
  const ledger = async (known: ReadonlySet<string> = new Set()) => {
    await test.platform.gateway.flush();
    const { data } = (await client.get("/ai/logs?limit=100")).body as { data: { logId: string; costUsd: number }[] };
    const calls = data.filter(({ logId }) => !known.has(logId));
    return { ids: new Set(calls.map(({ logId }) => logId)), usd: calls.reduce((sum, { costUsd }) => sum + costUsd, 0) };
  };
  const body = {
    query: "When is the pump bled?",
    model: MODEL,
    rewrite: true,
    rerank: { model: "scribe/rerank-1" },
    minCoverage: 0,
  };

  for (const [name, { behaviour, isBilled, isMended = false }] of Object.entries(failures)) {
    for (const stream of [false, true]) {
      it(`${name}, is found by the question, and costs what the provider charges${stream ? ", as a stream" : ""}`, async () => {
        const { ids: known } = await ledger();
        play(...(isMended ? [behaviour] : Array.from({ length: 10 }, () => behaviour)));
        let answered: unknown;
        if (stream) {
          const { events } = await client.events("POST", "/rag/answer", { body: { ...body, stream } });
          answered = (await Array.fromAsync(events)).at(-1)?.data;
        } else {
          const answer = await client.post("/rag/answer", body);
          expect(answer.status, answer.text).to.equal(200);
          answered = answer.body;
        }
        expect(valueAt(answered, "rewrite.rewritten"), JSON.stringify(answered)).to.equal(isMended);
        expect(valueAt(answered, "citations[0].title")).to.equal("Pump");
        expect(valueAt(answered, "found")).to.equal(true);
        const charged = await invoice();
        expect(valueAt(answered, "costUsd")).to.be.closeTo(charged, 1e-9);
        const ofRewriting = Number(valueAt(answered, "rewrite.usd"));
        if (isBilled) expect(ofRewriting).to.be.greaterThan(0);
        else expect(ofRewriting).to.equal(0);
        const noted = await pollUntil(
          async () => {
            const { usd } = await ledger(known);
            return Math.abs(usd - charged) < 1e-9 ? "noted" : undefined;
          },
          { timeoutMs: 5_000, what: `the ledger to have ${charged} USD` },
        );
        expect(noted).to.equal("noted");
      });
    }
  }
});
