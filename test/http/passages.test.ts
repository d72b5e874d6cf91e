import { expect } from "chai";
import { makeProse } from "../support/documents.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { makeMarkdownTable, tables } from "../support/tables.ts";

type Result = {
  content: string;
  chunkId: string;
  chunkIds: string[];
  index: number;
  score: number;
  documentId: string;
};

const SENTENCES = 200;
const prose = makeProse(SENTENCES, "compressor");
const sentences = prose.split(/(?<=\.) /);

describe("passages around a hit", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let client: ApiClient;
  let documentId: string;
  let chunks: number;

  const ingest = async (content: string, title: string) => {
    const made = await client.post("/rag/ingest", { content, title }, { headers: { prefer: "wait=50" } });
    expect(made.status, made.text).to.equal(201);
    return made;
  };
  const find = async (query: string, more: object) => {
    const { status, body, text } = await client.post("/rag/query", { query, documentIds: [documentId], ...more });
    expect(status, text).to.equal(200);
    return (body as { results: Result[] }).results;
  };
  /** The sentences of a text in their order, without those that are cut at its ends. */
  const wholeOf = (content: string) => content.split(/(?<=\.)\s+/).filter((text) => sentences.includes(text));

  before(async () => {
    test = await startPlatform();
    client = makeClient({ url: test.url, key: test.keys.owner });
    const made = await ingest(prose, "Compressors");
    documentId = made.string("documentId");
    chunks = made.at("chunks") as number;
    expect(chunks).to.be.above(8);
  });
  after(() => test?.close());

  for (const expand of [0, 1, 5]) {
    it(`shows ${expand} neighbours on each side, and says each sentence once`, async () => {
      for (const wanted of [0, 90, SENTENCES - 1]) {
        const [hit] = await find(`Sentence ${wanted}`, { topK: 1, expand, mode: "lexical" });
        if (!hit) throw new Error("nothing was found");
        const around = Array.from({ length: 2 * expand + 1 }, (_, at) => hit.index - expand + at);
        const expected = around.filter((n) => n >= 0 && n < chunks).map((n) => hit.chunkId.replace(/:\d+$/, `:${n}`));
        expect(hit.chunkIds).to.deep.equal(expected);
        const found = wholeOf(hit.content);
        const from = sentences.indexOf(found[0] ?? "");
        expect(found, "each once, and none left out").to.deep.equal(sentences.slice(from, from + found.length));
      }
    });
  }

  it("joins hits that follow each other, if asked to expand them, and names what a result covers", async () => {
    const apart = await find("compressor sentence degrees", { topK: chunks });
    expect(apart.map(({ chunkIds }) => chunkIds.length)).to.deep.equal(Array(chunks).fill(1));
    const all = await find("compressor sentence degrees", { topK: chunks, expand: 0 });
    expect(all).to.have.lengthOf(1);
    expect(all[0]?.chunkIds).to.have.lengthOf(chunks).and.to.contain(all[0]?.chunkId);
    expect(wholeOf(all[0]?.content ?? "")).to.deep.equal(sentences);
    const some = await find("Sentence 10 and sentence 150", { topK: 2, mode: "lexical", expand: 1 });
    expect(new Set(some.flatMap(({ chunkIds }) => chunkIds)).size).to.equal(
      some.flatMap(({ chunkIds }) => chunkIds).length,
    );
    expect(some.map(({ score }) => score)).to.deep.equal(some.map(({ score }) => score).sort((a, b) => b - a));
  });

  it("says the head of a table once where it joins its parts", async () => {
    const form = new FormData();
    form.set("file", new File([new Uint8Array(makeMarkdownTable(tables.markdown))], "staff.md"));
    const made = await client.request("POST", "/rag/ingest", { raw: form, headers: { prefer: "wait=50" } });
    const query = { query: "Cy Razorbillson", topK: 1, expand: 5, documentIds: [made.string("documentId")] };
    const [hit] = ((await client.post("/rag/query", query)).body as { results: Result[] }).results;
    expect(hit?.chunkIds.length).to.be.above(2);
    expect(hit?.content.match(/\| Person \|/g)).to.have.lengthOf(1);
    for (const row of tables.markdown.rows) expect(hit?.content.split(`| ${row[0]} |`)).to.have.lengthOf(2);
  });

  it("does so in the steps of workflows, too, and refuses more than five", async () => {
    const step = { type: "rag_query", query: "Sentence 90", topK: 1, documentIds: [documentId], expand: 2 };
    const workflow = await client.post("/workflows", { name: "Look up", steps: [step] });
    const path = `/workflows/${workflow.string("workflowId")}`;
    const run = await client.post(`${path}/execute`, { input: {} }, { headers: { prefer: "wait=30" } });
    const record = await client.get(`${path}/runs/${run.string("runId")}`);
    expect(record.text).to.match(/"chunkIds":\["[^"]+"(,"[^"]+"){4}\]/);
    const refused = await client.post("/rag/query", { query: "x", expand: 6 });
    expect(refused.status).to.equal(400);
    expect(refused.text).to.contain("expand");
  });
});
