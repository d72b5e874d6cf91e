import { expect } from "chai";
import pino from "pino";
import { makeMemory } from "../../src/isolation/memory.ts";
import { makeParsePool, type ParsePool } from "../../src/rag/parse-in-child.ts";
import { hostileDocuments } from "../support/hostile-documents.ts";
import { draw, makeRawPdf, pictureStream } from "../support/raw-pdf.ts";
import { readToEnd } from "../support/read-to-end.ts";
import { childPids } from "../support/service-pids.ts";

const logger = pino({ level: "silent" });
const text = (content: string | Buffer) => ({ bytes: Buffer.from(content), type: "text/plain" });

describe("parsing in child processes", function () {
  this.timeout(120_000);
  let pool: ParsePool;
  const open = (timeoutMs = 60_000, ocrLanguages: string[] = []) => {
    pool = makeParsePool({ timeoutMs, ocrLanguages, logger, memory: makeMemory() });
    return pool;
  };
  afterEach(() => pool.close());

  it("ends every hostile document: with its chunks, or with a reason why not", async () => {
    open();
    for (const { what, type, name, make } of hostileDocuments) {
      const end = await readToEnd(pool, { bytes: await make(10_000), type, name });
      expect(end, what).to.match(/^\d+ chunks$|^AppError: The source cannot be read\. [A-Z].+/);
      expect(end, what).to.not.match(/took longer|more memory/);
    }
  });

  it("stops a document that takes too long, says so, and reads the next one", async () => {
    open(500);
    const rows = Buffer.concat([Buffer.from("<table>"), Buffer.alloc(45_000_000, "<tr><td>a<td>b</tr>")]);
    expect(await readToEnd(pool, { bytes: rows, type: "text/html" })).to.contain("took longer than 500 ms.");
    pool.close();
    open();
    expect(await readToEnd(pool, text("Hello."))).to.equal("1 chunks");
  });

  it("reads a PDF with a huge picture within the bounds of memory, also where text is recognized in pictures", async () => {
    const text = { content: draw("A pump moves water.", 60, 700) };
    const shown = (dots: string) => ({
      content: "q 595 0 0 842 0 0 cm /X0 Do Q",
      objects: { dots },
      forms: "/X0 %dots%",
    });
    for (const languages of [[], ["eng"]]) {
      open(100_000, languages);
      for (const picture of [pictureStream(10_000, 10_000, 1), pictureStream(5_900, 6_000, 3)]) {
        const pdf = makeRawPdf([text, shown(picture)]);
        expect(await readToEnd(pool, { bytes: pdf, type: "application/pdf" })).to.equal("1 chunks");
      }
      pool.close();
    }
  });

  it("reads on in a larger process where a small one has no memory left, with each chunk once", async () => {
    open();
    const { signal } = new AbortController();
    const content = Array.from({ length: 10_000 }, (_, n) => `Sentence ${n} says it.`).join(" ");
    const read = async (onOutline: () => Promise<void>) => {
      await using parsed = await pool.read(text(content), { tenantId: "acme", signal });
      await onOutline();
      return (await Array.fromAsync(parsed.chunks)).flat().map((chunk) => chunk.content);
    };
    const whole = await read(async () => undefined);
    const cut = await read(async () => {
      for (const pid of await childPids("rag/parse-child.ts")) process.kill(pid, "SIGKILL"); // as its memory's bound does
    });
    expect(cut).to.deep.equal(whole);
  });

  it("gives a place back when its chunks are not taken, so that the tenant's next document finds one", async () => {
    open();
    const { signal } = new AbortController();
    for (const content of ["Short.", "A longer text. ".repeat(10_000), "Short."]) {
      await using read = await pool.read(text(content), { tenantId: "acme", signal });
      expect(read.expected).to.be.at.least(1);
    }
    expect(await readToEnd(pool, text("Hello."))).to.equal("1 chunks");
  });

  it("reads for another tenant while one has its share of the processes at work", async () => {
    open();
    const stop = new AbortController();
    const slow = { bytes: Buffer.alloc(5_000_000, "<div>"), type: "text/html" };
    const busy = [1, 2, 3].map(() =>
      pool.read(slow, { tenantId: "evil", signal: stop.signal }).catch((error: Error) => error.message),
    );
    expect(await readToEnd(pool, text("Hello."))).to.equal("1 chunks");
    stop.abort(new Error("enough"));
    expect(await Promise.all(busy)).to.deep.equal(["enough", "enough", "enough"]);
  });
});
