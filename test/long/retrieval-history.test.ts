import { expect } from "chai";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform } from "../support/start-platform.ts";
import { seededRandom } from "../trials/bench/measure.ts";

const writes = 500;
const queries = 200;
const seed = 1;
const modes = ["vector", "lexical", "hybrid"];
const syllables = "ba de fi go lu mer nos pra ske tov wil yan".split(" ");

type Random = () => number;
type Found = { content: string; score: number; similarity: number };

const below = (random: Random, end: number) => Math.floor(random() * end);

/** Few words are in most texts, and most words in few: the place of a word falls off as in real text. */
function makeWord(random: Random): string {
  const place = Math.floor(1_500 * random() ** 3);
  return [place % 12, Math.floor(place / 12) % 12, Math.floor(place / 144)].map((at) => syllables[at]).join("");
}

const makeWords = (random: Random, count: number) => Array.from({ length: count }, () => makeWord(random)).join(" ");

/** One to many sentences, some under headings: the larger ones become several chunks. */
function makeText(random: Random): string {
  const sentences = Array.from({ length: 1 + Math.floor(60 * random() ** 3) }, (_, n) => {
    const heading = n > 0 && n % 15 === 0 ? `\n\n## ${makeWords(random, 3)}\n\n` : "";
    return `${heading}${makeWords(random, 4 + below(random, 12))}.`;
  });
  return sentences.join(" ");
}

/** A document that is there: its text, and the path that serves it where it came by URL. */
type Living = { documentId: string; text: string; path?: string };

function openLibrary(client: ApiClient, web: DocumentServer) {
  return async ({ text, path }: Omit<Living, "documentId">): Promise<Living> => {
    if (path !== undefined) web.put(path, { body: text, type: "text/markdown" });
    const answer = await client.post(
      "/rag/ingest",
      path === undefined ? { content: text } : { url: web.origin + path },
    );
    expect(answer.status, answer.text).to.equal(201);
    return { documentId: answer.string("documentId"), text, ...(path === undefined ? {} : { path }) };
  };
}

async function ask(client: ApiClient, query: string, mode = "hybrid"): Promise<Found[]> {
  return (await client.post("/rag/query", { query, mode, topK: 20 })).at("results") as Found[]; // checked by the client
}

/** Ingests, replaces, deletes, and asks now and then; returns what is there at the end, in the order in which it came. */
async function liveThrough(client: ApiClient, web: DocumentServer, random: Random): Promise<Living[]> {
  const ingest = openLibrary(client, web);
  const living: Living[] = [];
  for (let count = 0; count < writes; count += 1) {
    if (count % 10 === 0) await ask(client, makeWords(random, 3)); // what has been searched is kept up to date in memory
    const kind = random();
    const [at, copied] = [below(random, living.length), living[below(random, living.length)]];
    const [chosen, text] = [living[at], kind < 0.04 && copied ? copied.text : makeText(random)];
    if (chosen === undefined || kind < 0.5) {
      living.push(await ingest({ text, ...(kind < 0.3 ? { path: `/${count}.md` } : {}) }));
    } else if (kind < 0.75 && chosen.path !== undefined) {
      living[at] = await ingest({ text, path: chosen.path });
      expect(living[at]?.documentId).to.equal(chosen.documentId);
    } else {
      expect((await client.delete(`/rag/documents/${chosen.documentId}`)).status).to.equal(204);
      living.splice(at, 1);
    }
  }
  return living;
}

describe("knowledge retrieval after a long history", function () {
  this.timeout(300_000);

  it(`ranks and scores as a fresh store in every mode, after ${writes} random writes (seed ${seed})`, async () => {
    const web = await startDocumentServer();
    const options = { env: { FETCH_ALLOW_ORIGINS: web.origin } };
    const [old, fresh] = [await startPlatform(options), await startPlatform(options)];
    try {
      const [oldClient, freshClient] = [old, fresh].map(({ url, keys }) => makeClient({ url, key: keys.member })) as [
        ApiClient,
        ApiClient,
      ]; // one a platform
      const random = seededRandom(seed);
      const living = await liveThrough(oldClient, web, random);
      expect(living.length).to.be.above(80);
      const ingest = openLibrary(freshClient, web);
      for (const { text, path } of living) await ingest({ text, ...(path === undefined ? {} : { path }) });

      let found = 0;
      for (let count = 0; count < queries; count += 1) {
        const query = makeWords(random, 1 + below(random, 5));
        for (const mode of modes) {
          const [ranked, wanted] = await Promise.all([ask(oldClient, query, mode), ask(freshClient, query, mode)]);
          const texts = (results: Found[]) => results.map(({ content }) => content);
          expect(texts(ranked), `${mode}: ${query}`).to.deep.equal(texts(wanted));
          for (const [at, { score, similarity }] of wanted.entries()) {
            expect(ranked[at]?.score, `${mode}: ${query}`).to.be.closeTo(score, 1e-6);
            expect(ranked[at]?.similarity, `${mode}: ${query}`).to.be.closeTo(similarity, 1e-6);
          }
          found += wanted.length;
        }
      }
      expect(found).to.be.above(queries * modes.length * 5);
    } finally {
      await Promise.all([old.close(), fresh.close()]);
      web.close();
    }
  });
});
