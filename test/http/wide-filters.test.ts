import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const COUNT = 170;
const FIRST_FERRY = 50;
/** Midnight in Tokyo, one day after the other. */
const dayOf = (n: number) => new Date(Date.UTC(2026, 0, 1 + n)).toISOString().replace(/T.*/, "T00:00:00+09:00");
/** As a time this is earlier, as a text later. */
const beforeFirst = dayOf(FIRST_FERRY).replace("T00:00:00+09:00", "T12:00:00+23:00");
const filter = { n: { gte: FIRST_FERRY } };
const metadataOf = (n: number) => {
  const isFerry = n >= FIRST_FERRY;
  return { n, 1: n, day: dayOf(n), isFerry, kind: isFerry ? "ferry" : "pump" };
};
type Result = { content: string; documentId: string; score: number };

/** Several documents are as near as each other: any of them may be among the results. */
const scoresOf = (results: readonly Result[]) => results.map(({ score }) => score);

describe("a filter that many documents match", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let client: ApiClient;
  let lookups = 0;
  before(async () => {
    test = await startPlatform();
    client = makeClient({ url: test.url, key: test.keys.owner });
    const { documents } = test.platform.store;
    const { idsByTags } = documents;
    documents.idsByTags = (...search) => {
      lookups += 1;
      return idsByTags(...search);
    };
    const ingest = async (n: number) => {
      const content =
        n < FIRST_FERRY ? `The pump number ${n} is bled first.` : `The ferry number ${n} leaves the harbour.`;
      const made = await client.post("/rag/ingest", { content, metadata: metadataOf(n) });
      expect(made.status, made.text).to.equal(201);
    };
    const all = Array.from({ length: COUNT }, (_, n) => n);
    for (let at = 0; at < COUNT; at += 40) await Promise.all(all.slice(at, at + 40).map(ingest));
  });
  beforeEach(() => {
    lookups = 0;
  });
  after(() => test.close());

  const find = async (query: string, more: object = {}) => {
    const found = await client.post("/rag/query", { query, topK: 5, mode: "vector", filter, ...more });
    expect(found.status, found.text).to.equal(200);
    return found.at("results") as Result[];
  };

  it("finds the same without looking its documents up again", async () => {
    const first = await find("When does the ferry leave?");
    expect([first.length, lookups]).to.deep.equal([5, 1]);
    expect(scoresOf(await find("When does the ferry leave?"))).to.deep.equal(scoresOf(first));
    expect(lookups).to.equal(1);
    const documentId = first[0]?.documentId ?? "";
    const changed = await client.request("PATCH", `/rag/documents/${documentId}`, { body: { metadata: { n: 1 } } });
    expect(changed.status, changed.text).to.equal(200);
    const next = await find("When does the ferry leave?");
    expect(next.map((one) => one.documentId)).not.to.include(documentId);
    expect(scoresOf(next).slice(0, 4)).to.deep.equal(scoresOf(first).slice(1));
    expect([next.length, lookups]).to.deep.equal([5, 1]);
  });

  const wide: Record<string, object> = {
    "a text": { kind: "ferry" },
    "a boolean": { isFerry: true },
    "one of several values": { kind: ["ferry", "boat", 7] },
    "a range of numbers": { n: { gt: FIRST_FERRY - 1, lt: COUNT } },
    "a range of dates": { day: { gte: beforeFirst } },
    "a number as a name": { 1: { gte: FIRST_FERRY } },
    "several conditions": { kind: "ferry", n: { gte: FIRST_FERRY }, day: { lt: "2027-01-01" } },
  };
  for (const [name, where] of Object.entries(wide)) {
    it(`finds the same by ${name}`, async () => {
      const content = `The ferry number ${FIRST_FERRY} leaves the harbour.`;
      const first = await find(content, { filter: where });
      const again = await find(content, { filter: where });
      expect(lookups).to.equal(1);
      expect([again[0]?.content, again.length]).to.deep.equal([content, 5]);
      expect(scoresOf(again)).to.deep.equal(scoresOf(first));
    });
  }

  it("searches deeper if some other documents are nearer, and looks the matching ones up if many are", async () => {
    const where = { filter: { n: { gte: FIRST_FERRY, lt: COUNT } } };
    await find("Which ferry leaves the harbour?", where);
    const isFerry = ({ content }: Result) => content.includes("ferry");
    const deeper = await find("Which pump is bled first?", where); // the first 20 are pumps, and not the first 80
    expect(deeper.map(isFerry)).to.deep.equal(Array(5).fill(true));
    expect(lookups).to.equal(1);
    const found = await find("Which pump is bled first?", { ...where, topK: 1 }); // the first 12 are pumps, and the first 48
    expect(found.map(isFerry)).to.deep.equal([true]);
    expect(lookups, "once for each").to.equal(2);
    await find("Which ferry leaves the harbour?", where);
    expect(lookups, "and from then on").to.equal(3);
  });

  it("is kept to the collections of the query", async () => {
    const content = "The ferry of another collection leaves the harbour.";
    await client.post("/rag/ingest", { content, collection: "other", metadata: { n: 50 } });
    const all = await find("The ferry of another collection leaves the harbour.");
    expect(all[0]?.content).to.equal(content);
    for (let turn = 0; turn < 2; turn += 1) {
      const found = await find("The ferry of another collection leaves the harbour.", { collection: "default" });
      expect(found.map((one) => one.content)).not.to.include(content);
      expect(found).to.have.length(5);
    }
  });
});
