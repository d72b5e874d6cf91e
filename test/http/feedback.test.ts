import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { readQuestions } from "../../scripts/retrieval-check/questions.ts";
import { firstIdAt, newId } from "../../src/lib/ids.ts";
import { makeTextRemoval } from "../../workers/maintenance.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const DAY_MS = 86_400_000;
const manual = "Bleed the pump before each heating season.\n\nE-04 means that there is no flow.";
const query = "When is the pump bled before the heating season?";
type Rated = { logId: string; thumb: string; question?: string; answer?: string; comment?: string };

describe("ratings of answers", () => {
  let test: TestPlatform;
  let [owner, member, stranger] = [] as unknown as [ApiClient, ApiClient, ApiClient];
  let documentId: string;
  before(async () => {
    test = await startPlatform();
    const of = (key: string) => makeClient({ url: test.url, key });
    [owner, member, stranger] = [of(test.keys.owner), of(test.keys.member), of(test.keys.stranger)];
    documentId = (await member.post("/rag/ingest", { title: "Pump manual", content: manual })).string("documentId");
  });
  after(() => test?.close());

  const keepTexts = (callTextDays: unknown) => owner.request("PUT", "/settings", { body: { callTextDays } });
  const ask = async (body: object = {}, client = member) =>
    (await client.post("/rag/answer", { query, ...body })).string("logId");
  const rate = (logId: string, body: object = { thumb: "up" }, client = member) =>
    client.post("/rag/feedback", { logId, ...body });
  const listed = async (search = "", client = member) =>
    (await client.get(`/rag/feedback${search}`)).at("data") as Rated[];
  const exported = async (client = member) => {
    const { text } = await client.get("/rag/feedback/export");
    return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Record<string, unknown>]));
  };

  it("keep no texts where the tenant keeps none, unless the rating brings the question", async () => {
    const logId = await ask();
    const rated = await rate(logId, { thumb: "down", comment: "Too long." });
    expect(rated.status, rated.text).to.equal(200);
    expect(rated.body).to.include({ logId, thumb: "down", comment: "Too long.", found: true });
    expect(rated.at("citations[0].documentId")).to.equal(documentId);
    expect(rated.text).to.not.contain("Bleed").and.not.contain("heating");
    expect((await rate(logId, { thumb: "up", question: query })).body).to.include({ thumb: "up", question: query });
    expect(await exported()).to.deep.equal([{ question: query, documentId }]);
  });

  it("keep question, answer and quotes where it does, and the last rating alone", async () => {
    await keepTexts(30);
    const history = [{ role: "user", content: "I have a P-100." }];
    const logId = await ask({ history });
    await rate(logId, { thumb: "down", comment: "No." });
    const { body } = await rate(logId);
    expect(body).to.deep.include({ thumb: "up", question: query, history });
    expect(body).to.not.have.property("comment");
    const found = (await listed()).filter((one) => one.logId === logId);
    expect(found).to.deep.equal([body]);
    const quote = "Bleed the pump before each heating season.";
    const line = (await exported()).find((one) => "answer" in one);
    expect(line).to.deep.include({ question: query, history, documentId, contains: quote });
  });

  it("are listed in pages, by thumb, by whether something was found and by model", async () => {
    const unanswered = await ask({ query: "Which zeppelin insurance?", minCoverage: 0.9 });
    await rate(unanswered);
    const disliked = await ask();
    await rate(disliked, { thumb: "down" });
    expect((await listed("?found=false")).map(({ logId }) => logId)).to.deep.equal([unanswered]);
    expect((await listed("?thumb=down")).map(({ logId }) => logId))
      .to.include(disliked)
      .and.not.include(unanswered);
    expect((await listed("?model=switchyard-offline&found=true")).length).to.be.greaterThan(1);
    expect(await listed("?model=other")).to.deep.equal([]);
    const all = await listed();
    const first = await member.get("/rag/feedback?limit=1");
    const [second] = await listed(`?limit=1&cursor=${first.string("nextCursor")}`);
    expect([first.at("data[0].logId"), second?.logId]).to.deep.equal(all.slice(0, 2).map(({ logId }) => logId));
    expect((await member.get("/rag/feedback?thumbs=up")).status).to.equal(400);
  });

  it("are exported as a file that `retrieval-check` reads: what was rightly not answered has no place", async () => {
    const folder = await mkdtemp(join(tmpdir(), "feedback-"));
    try {
      const file = join(folder, "questions.jsonl");
      const { status, headers, text } = await member.get("/rag/feedback/export");
      expect([status, headers.get("content-type")]).to.deep.equal([200, "application/x-jsonl"]);
      await writeFile(file, text);
      const questions = await readQuestions(file);
      expect(questions.find(({ question }) => question.startsWith("Which zeppelin"))?.places).to.deep.equal([]);
      expect(questions.find(({ question }) => question === query)?.places[0]).to.include({ documentId });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("concern answers of the same tenant, and of a key that is limited to collections its own alone", async () => {
    const logId = await ask();
    expect((await rate(logId, { thumb: "up" }, stranger)).status).to.equal(404);
    expect(await listed("", stranger)).to.deep.equal([]);
    const made = await owner.post("/keys", { role: "member", subject: "guest", collections: ["default"] });
    const guest = makeClient({ url: test.url, key: made.string("key") });
    expect((await rate(logId, { thumb: "up" }, guest)).status).to.equal(404);
    const own = await ask({}, guest);
    expect((await rate(own, { thumb: "up" }, guest)).status).to.equal(200);
    expect((await listed("", guest)).map((one) => one.logId)).to.deep.equal([own]);
    expect(await exported(guest)).to.have.lengthOf(1);
    expect((await rate(own, { thumb: "down" })).status, "a key without limits").to.equal(200);
  });

  it("are refused for what is no answer, for other thumbs and for long comments", async () => {
    const logId = await ask();
    expect((await rate(newId("log"))).status).to.equal(404);
    for (const body of [
      { thumb: "sideways" },
      {},
      { thumb: "up", comment: "x".repeat(2_001) },
      { thumb: "up", comment: "" },
    ])
      expect((await rate(logId, body)).status, JSON.stringify(body)).to.equal(400);
  });

  it("keep what guards let through: masked in questions and answers, refused in comments", async () => {
    const rules = { email_address: { input: "mask", output: "mask" }, iban: { input: "block" } };
    expect((await owner.request("PUT", "/guards", { body: { rules } })).status).to.equal(200);
    try {
      const logId = await ask({ query: `${query} Tell anna.meier@example.org` });
      const rated = await rate(logId, { thumb: "up", comment: "Ask bert@example.org" });
      expect(rated.status, rated.text).to.equal(200);
      expect(rated.text).to.contain("heating season").and.not.contain("example.org");
      const refused = await rate(logId, { thumb: "up", comment: "DE89370400440532013000" });
      expect(refused.at("error.code")).to.equal("compliance_blocked");
    } finally {
      await owner.request("PUT", "/guards", { body: { rules: {} } });
    }
  });

  it("go with the texts that their tenant keeps no longer, and answers without a rating above a number", async () => {
    await keepTexts(1);
    const [old, rated, first, second] = [await ask(), await ask(), await ask(), await ask()];
    await rate(rated);
    const tenantId = await tenantOf(test);
    const { answers } = test.platform.store;
    const record = await answers.get(tenantId, old);
    if (!record) throw new Error("the answer was not kept");
    const before = `${firstIdAt("log", new Date(Date.now() - 2 * DAY_MS)).slice(0, -4)}0001`;
    await answers.insert({ ...record, _id: before });
    await makeTextRemoval(test.platform)();
    expect(await answers.get(tenantId, before)).to.equal(null);
    expect(await answers.get(tenantId, old)).to.not.equal(null);
    await answers.removeUnrated(tenantId, 1);
    const left = await Promise.all([old, rated, first, second].map((id) => answers.get(tenantId, id)));
    expect(left.map((one) => one !== null)).to.deep.equal([false, true, false, true]);
  });
});
