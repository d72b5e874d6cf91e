import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const script = fileURLToPath(new URL("../../scripts/retrieval-check.ts", import.meta.url));
const MODEL = "scribe/small";
const PRICES = { input: 3, output: 5 };
type Figures = Record<string, number | string>;
type Report = {
  questions: number;
  figures: Figures[];
  missed: string[];
  changes: { setting: string; against: string; better: number; worse: number }[];
  answers?: Record<string, number>;
};

const documents = {
  Pumpe: "Die Umwälzpumpe wird vor jeder Heizperiode entlüftet. Das Ventil bleibt offen, bis keine Luft mehr kommt.",
  Parking: "Cars are parked behind the hall. A permit costs 20 EUR and is shown at the gate.",
  Faults: "E-04 means that there is no flow. Call the service.",
};
const air = { question: "How is the air let out of the device?", title: "Pumpe", contains: "Ventil bleibt offen" };
const permit = { question: "What does a permit for cars cost?", title: "Parking", answer: "20 EUR" };
const unanswered = { question: "Which zeppelin insurance do astronauts prefer?" };

describe("npm run retrieval-check", function () {
  this.timeout(60_000);
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "retrieval-check-"));
    upstream = await startFakeProvider();
    test = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: upstream.origin } });
    const admin = makeClient({ url: test.url, key: test.keys.admin });
    client = makeClient({ url: test.url, key: test.keys.member });
    const prices = { inputUsdPerMTok: PRICES.input, outputUsdPerMTok: PRICES.output };
    const provider = {
      baseUrl: upstream.url,
      key: "sk-scribe-0123456789abcdef",
      wire: "openai-chat",
      models: [{ id: "small", type: "chat", contextWindow: 32_000, ...prices }],
    };
    expect((await admin.request("PUT", "/ai/providers/custom/scribe", { body: provider })).status).to.equal(200);
    for (const [title, content] of Object.entries(documents)) await client.post("/rag/ingest", { title, content });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test?.close();
    await upstream?.close();
    await rm(folder, { recursive: true, force: true });
  });

  const run = async (lines: readonly (object | string)[], options: readonly string[] = [], key = test.keys.member) => {
    const file = join(folder, "questions.jsonl");
    await writeFile(file, lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n"));
    const args = [script, file, "--url", test.url, "--key", key, ...options];
    return new Promise<{ code: number; out: string; err: string }>((resolve) => {
      const child = execFile(process.execPath, args, { timeout: 50_000 }, (_error, out, err) =>
        resolve({ code: child.exitCode ?? -1, out, err }),
      );
    });
  };
  const measured = async (lines: readonly object[], options: readonly string[]) => {
    const { code, out, err } = await run(lines, [...options, "--json"]);
    expect(code, err).to.equal(0);
    return JSON.parse(out) as Report;
  };

  it("prints a table of settings, and what one finds earlier than the one before", async () => {
    const { code, out, err } = await run([permit, unanswered]);
    expect(code, err).to.equal(0);
    expect(out).to.match(/^2 questions\nsetting +recall@1 +recall@5 .*mrr +kept +refused +ms +usd\n/);
    expect(out).to.match(/\nlexical +1\.000 .*\nhybrid +1\.000 /);
    expect(out).to.contain("hybrid against lexical: 0 found earlier, 0 later");
  });

  it("counts what rewriting finds, what coverage keeps and refuses, and what it cost", async () => {
    upstream.setDefault({ pieces: ["Umwälzpumpe entlüften\nVentil offen Luft"], usage: "counted" });
    const settings = ["--setting", "lexical", "--setting", `rewrite=${MODEL},minCoverage=0.3`];
    const { questions, figures, changes } = await measured([air, unanswered], settings);
    const [plain, rewritten] = figures;
    expect(questions).to.equal(2);
    expect(plain).to.include({ setting: "lexical", "recall@30": 0, mrr: 0, usd: 0 });
    expect(rewritten).to.include({ "recall@1": 1, mrr: 1, kept: 1 });
    expect(changes).to.deep.equal([{ setting: settings[3], against: "lexical", better: 1, worse: 0 }]);
    const { inputTokens, outputTokens } = upstream.served();
    const invoice = (inputTokens * PRICES.input + outputTokens * PRICES.output) / 1e6;
    expect(Number(rewritten?.usd)).to.be.closeTo(invoice, 1e-9).and.greaterThan(0);
  });

  it("finds an answer also at a further place, and none at a passage without the words", async () => {
    const wrong = { ...permit, contains: "30 EUR" };
    const { figures } = await measured(
      [wrong, { ...wrong, also: [{ title: "Parking", contains: ["none", "behind  the HALL"] }] }],
      ["--setting", "lexical"],
    );
    expect(figures[0]).to.include({ "recall@1": 0.5, mrr: 0.5 });
  });

  it("names the questions that are not found, and where they should be answered", async () => {
    const wrong = { ...permit, title: "Parkign" };
    const { out } = await run([air, wrong, unanswered], ["--setting", "lexical"]);
    expect(out).to.contain("\nnot found: What does a permit for cars cost? (Parkign)\n");
    expect(out).to.contain('(Pumpe, "Ventil bleibt offen")').and.not.contain(`not found: ${unanswered.question}`);
    expect(out, "nothing is refused").to.match(/\nlexical .* - {2,}- {2,}\d/);
    const { missed } = await measured([permit, wrong], ["--setting", "lexical"]);
    expect(missed).to.deep.equal([permit.question]);
  });

  it("has a model judge the answers, which costs what the ledger says", async () => {
    upstream.setDefault(({ messages }) => {
      const isJudged = JSON.stringify(messages).includes("You compare an answer");
      return { pieces: isJudged ? ["Yes."] : ['It costs 20 EUR [1: "A permit costs 20 EUR"].'], usage: "counted" };
    });
    await test.platform.gateway.flush();
    const spent = async () => {
      await test.platform.gateway.flush();
      const { data } = (await client.get("/ai/logs?limit=100")).body as { data: { costUsd: number }[] };
      return data.reduce((sum, { costUsd }) => sum + costUsd, 0);
    };
    const before = await spent();
    const judging = ["--setting", "lexical,minCoverage=0.4", "--answers", MODEL, "--judge", MODEL];
    const { answers } = await measured([permit, unanswered], judging);
    expect(answers).to.include({ cited: 1, correct: 1 });
    expect(upstream.requests, "an answer and its judge; nothing for what is not answered").to.have.lengthOf(2);
    const { inputTokens, outputTokens } = upstream.served();
    const invoice = (inputTokens * PRICES.input + outputTokens * PRICES.output) / 1e6;
    expect((await spent()) - before).to.be.closeTo(invoice, 1e-9);
    upstream.setDefault({ pieces: ["No"] });
    expect((await measured([permit], judging)).answers).to.include({ correct: 0 });
  });

  it("ends with exit code 1 below a threshold, for a line that is no question, and for a setting that cannot be", async () => {
    const low = await run([permit, { ...permit, title: "Nowhere" }], ["--least", "recall@5=0.5", "--least", "mrr=0.8"]);
    expect(low).to.include({ code: 1 });
    expect(low.err).to.contain("mrr is 0.500, not 0.8.").and.not.contain("recall@5 is");
    for (const line of ["{", { title: "Parking" }, { question: "" }, { ...permit, contains: [] }]) {
      const { code, err } = await run([permit, line]);
      expect([code, err], JSON.stringify(line)).to.satisfy(() => code === 1 && err.includes("line 2"));
    }
    const setting = await run([permit], ["--setting", "lexicl"]);
    expect(setting.code).to.equal(1);
    expect(setting.err).to.contain("lexicl");
  });

  it("ends with exit code 2 if the API refuses", async () => {
    const { code, err } = await run([permit], [], "sk_wrong");
    expect(code).to.equal(2);
    expect(err).to.contain("401");
  });
});
