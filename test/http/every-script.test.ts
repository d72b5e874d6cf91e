import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { forEachConcurrent } from "../../src/lib/for-each-concurrent.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** By language: passages, each with a question that it answers. */
const file = new URL("../support/data/passages-by-language.json", import.meta.url);
const languages = Object.entries(JSON.parse(await readFile(file, "utf8")) as Record<string, [string, string][]>);

describe("search in a collection of eight languages", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let client: ApiClient;

  before(async () => {
    test = await startPlatform();
    client = makeClient({ url: test.url, key: test.keys.owner });
    const passages = languages.flatMap(([, pairs]) => pairs.map(([content]) => content));
    await forEachConcurrent(passages, 8, async (content) => {
      const made = await client.post("/rag/ingest", { content, title: "Passage" }, { headers: { prefer: "wait=50" } });
      expect(made.status).to.equal(201);
    });
  });
  after(() => test?.close());

  const firstFor = async (query: string, mode: string) => {
    const { body } = await client.post("/rag/query", { query, mode, topK: 3 });
    return (body as { results: { content: string }[] }).results[0]?.content;
  };

  for (const mode of ["lexical", "hybrid"]) {
    for (const [language, pairs] of languages) {
      it(`finds the passage that answers first, in ${language}, ${mode}`, async () => {
        const found = await Promise.all(pairs.map(([, question]) => firstFor(question, mode)));
        const missed = pairs.filter(([content], n) => found[n] !== content).map(([, question]) => question);
        expect(missed.length, missed.join(" ")).to.be.at.most(1);
      });
    }
  }
});
