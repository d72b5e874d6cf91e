import { expect } from "chai";
import { makeClient, valueAt } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { openSlowReader } from "../support/slow-reader.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { whileOthersWork } from "../support/while-others-work.ts";

const FILE_BYTES = 16 << 20;
const READERS = 6;
const MANY_READERS = 80;

describe("the content of a large file", function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let content: Buffer;
  let url: string;
  before(async () => {
    platform = await startPlatform({ workers: false });
    content = Buffer.alloc(FILE_BYTES, Buffer.from(Array.from({ length: 251 }, (_, n) => n)));
    url = await upload();
  });
  after(() => platform?.close());

  const upload = async () => {
    const form = new FormData();
    form.set("purpose", "user_data");
    form.set("file", new File([new Uint8Array(content)], "large.bin"));
    const headers = { authorization: `Bearer ${platform.keys.member}` };
    const response = await fetch(`${platform.url}/v1/files`, { method: "POST", headers, body: form });
    return `${platform.url}/v1/files/${valueAt(await response.json(), "id")}`;
  };
  const read = (url: string, method?: string) =>
    openSlowReader(url, { key: platform.keys.member, ...(method && { method }) });

  it("is read as its readers take it, and is whole in the end", async () => {
    let pieces = 0;
    const { sources } = platform.platform.store;
    const { open } = sources;
    sources.open = async (...about) => {
      const opened = await open(...about);
      return opened && { ...opened, pieces: counted(opened.pieces) };
    };
    async function* counted(each: AsyncIterable<Uint8Array>) {
      for await (const piece of each) {
        pieces += piece.length;
        yield piece;
      }
    }
    const readers = await Promise.all(Array.from({ length: READERS }, () => read(`${url}/content`)));
    try {
      expect(readers.map(({ headers }) => headers["content-length"])).to.deep.equal(
        Array<string>(READERS).fill(String(FILE_BYTES)),
      );
      let before = -1;
      const isStill = () => {
        const last = before;
        before = pieces;
        return last === pieces;
      };
      await pollUntil(isStill, { everyMs: 300 });
      // What a system takes for a connection is not the process's memory.
      expect(pieces / READERS, "bytes that were read for a reader that takes none").to.be.below(FILE_BYTES / 2);
      const victim = makeClient({ url: platform.url, key: platform.keys.stranger });
      expect((await victim.get("/jobs")).status).to.equal(200);
      expect((await readers[0]?.read())?.equals(content)).to.equal(true);
    } finally {
      sources.open = open;
      for (const { close } of readers) close();
    }
  });

  it("takes a megabyte at most of memory for each of many readers that take none", async () => {
    const before = process.memoryUsage().arrayBuffers;
    const readers = await Promise.all(Array.from({ length: MANY_READERS }, () => read(`${url}/content`)));
    try {
      await makeClient({ url: platform.url, key: platform.keys.stranger }).get("/jobs");
      expect(readers.every(({ status }) => status === 200)).to.equal(true);
      expect(process.memoryUsage().arrayBuffers - before).to.be.below(MANY_READERS << 20);
    } finally {
      for (const { close } of readers) close();
    }
  });

  it("is read a piece at a time for one tenant while others work", async () => {
    let running = 0;
    let most = 0;
    const { sources } = platform.platform.store;
    const { open } = sources;
    sources.open = async (...about) => {
      const opened = await open(...about);
      return opened && { ...opened, pieces: { [Symbol.asyncIterator]: () => watched(opened.pieces) } };
    };
    const watched = (pieces: AsyncIterable<Uint8Array>): AsyncIterator<Uint8Array> => {
      const inner = pieces[Symbol.asyncIterator]();
      return {
        next: async () => {
          running += 1;
          most = Math.max(most, running);
          const piece = await inner.next();
          running -= 1;
          return piece;
        },
      };
    };
    const stranger = makeClient({ url: platform.url, key: platform.keys.stranger });
    const readers = await whileOthersWork(stranger, () =>
      Promise.all(Array.from({ length: READERS }, () => read(`${url}/content`))),
    );
    sources.open = open;
    for (const { close } of readers) close();
    expect(most).to.equal(1);
  });

  it("has its length in the answer to HEAD, and none of its bytes", async () => {
    const head = await read(`${url}/content`, "HEAD");
    expect([head.status, head.headers["content-length"], (await head.read()).length]).to.deep.equal([
      200,
      String(FILE_BYTES),
      0,
    ]);
    const missing = await read(`${platform.url}/v1/files/file_01J00000000000000000000000/content`);
    expect(missing.status).to.equal(404);
    missing.close();
  });

  it("breaks off if the file is deleted during the read", async () => {
    const reader = await read(`${url}/content`);
    const headers = { authorization: `Bearer ${platform.keys.member}` };
    expect((await fetch(url, { method: "DELETE", headers })).status).to.equal(200);
    const outcome = await reader.read().then(
      () => "whole",
      (error: NodeJS.ErrnoException) => error.code,
    );
    expect(outcome).to.equal("ECONNRESET");
  });
});
