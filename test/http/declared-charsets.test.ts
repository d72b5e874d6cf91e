import { expect } from "chai";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { encode } from "../support/encode.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** Too short for a guess: only the declaration says what it is. */
const word = "Öl";

describe("the declared charset of a document", () => {
  let web: DocumentServer;
  let platform: TestPlatform;
  let client: ApiClient;

  before(async () => {
    web = await startDocumentServer();
    platform = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: web.origin } });
    client = makeClient({ url: platform.url, key: platform.keys.member });
  });
  after(async () => {
    await platform.close();
    web.close();
  });

  const ingest = async (body: FormData | object) => {
    const answer = await client.request("POST", "/rag/ingest", body instanceof FormData ? { raw: body } : { body });
    expect(answer.status, answer.text).to.equal(201);
    const chunks = await client.get(`/rag/documents/${answer.string("documentId")}/chunks`);
    return chunks.text;
  };

  it("is read from the part of a form, at whichever place the file is", async () => {
    for (const charset of ["macintosh", "windows-1257"]) {
      const file = new File([new Uint8Array(encode(word, charset))], "a.txt", {
        type: `text/plain; charset=${charset}`,
      });
      const form = new FormData();
      form.set("title", 'Content-Disposition: form-data; filename="x"');
      form.set("file", file);
      form.set("metadata", "{}");
      expect(await ingest(form), charset).to.contain(word);
    }
  });

  it("is read from the answer of a URL's server", async () => {
    web.put("/oil", { body: encode(word, "macintosh"), type: "text/plain; charset=macintosh" });
    expect(await ingest({ url: `${web.origin}/oil` })).to.contain(word);
  });

  it("is not read from a page that is sent as JSON, which is text already", async () => {
    const content = `<html><head><meta charset="gbk"></head><body>${word}</body></html>`;
    expect(await ingest({ content })).to.contain(word);
  });
});
