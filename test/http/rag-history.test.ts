import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform } from "../support/start-platform.ts";

const modes = ["lexical", "hybrid", "vector"];
const common = "window system display server protocol screen".split(" ");
const rare = "wayland compositor xterm cairo wacom libinput freetype pango glyph kernel".split(" ");

/** Texts of mostly common words; each has some of the rare ones. */
function makeText(n: number): string {
  const words = Array.from({ length: 12 + (n % 7) }, (_, at) => common[(n * 5 + at * (1 + (n % 3))) % common.length]);
  return [...words, rare[n % rare.length], rare[(n * 3) % rare.length], `part${n}`].join(" ");
}

async function ingest(client: ApiClient, content: string): Promise<string> {
  const answer = await client.post("/rag/ingest", { content });
  expect(answer.status, answer.text).to.equal(201);
  return answer.string("documentId");
}

/** What each query finds in each mode, on a platform of its own where `prepare` has been at work. */
async function rankOn(prepare: (client: ApiClient) => Promise<void>): Promise<Record<string, string[]>> {
  const platform = await startPlatform();
  try {
    const client = makeClient({ url: platform.url, key: platform.keys.member });
    await prepare(client);
    const ranked: Record<string, string[]> = {};
    for (const [at, word] of rare.entries()) {
      const query = `How does ${word} differ from the ${common[at % common.length]} ${common[(at + 1) % common.length]}?`;
      for (const mode of modes) {
        const answer = await client.post("/rag/query", { query, mode, topK: 20 });
        const results = answer.at("results") as { content: string }[]; // the client has parsed it by the route's schema
        ranked[`${mode}: ${query}`] = results.map(({ content }) => content);
      }
    }
    return ranked;
  } finally {
    await platform.close();
  }
}

describe("knowledge retrieval after documents were deleted", () => {
  it("ranks as if they had never been there, in every mode", async () => {
    const texts = Array.from({ length: 15 }, (_, n) => makeText(n));
    const fresh = await rankOn(async (client) => {
      for (const text of texts) await ingest(client, text);
    });
    const experienced = await rankOn(async (client) => {
      for (const [n, text] of texts.entries()) {
        const passing = [
          await ingest(client, `Quite another story, number ${n}. `.repeat(60 + n)),
          await ingest(client, makeText(100 + n)),
        ];
        await ingest(client, text);
        for (const id of passing) expect((await client.delete(`/rag/documents/${id}`)).status).to.be.within(200, 204);
      }
    });
    expect(experienced).to.deep.equal(fresh);
    for (const found of Object.values(fresh)) expect(found).to.not.deep.equal([]);
  }).timeout(60_000);
});
