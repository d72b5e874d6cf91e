import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, request as httpRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import PdfDocument from "pdfkit";
import { makeDocx, makePdf, makeScannedPdf } from "../support/documents.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const script = fileURLToPath(new URL("../../scripts/ingest.ts", import.meta.url));
const LOADING_MS = 60_000;

type Problem = { id: string; reason: string };
type Account = {
  found: number;
  loaded: number;
  replaced: number;
  skipped: number;
  renamed: { from: string; to: string }[];
  removed: string[];
  warnings: { id: string; code: string; message: string }[];
  leftOut: Problem[];
  failures: Problem[];
  wouldLoad: string[];
  wouldReplace: string[];
  wouldRename: { from: string; to: string }[];
  wouldRemove: string[];
};
type Document = { documentId: string; title: string; jobId: string; source: { name: string } };

/** Passes calls on to the API; while it holds, nobody hears what became of a document that the API has taken. */
async function startProxy(to: () => string) {
  const proxy = { url: "", isHolding: false, held: 0, server: undefined as Server | undefined };
  const server = createServer((incoming, outgoing) => {
    const { method = "GET", url = "/", headers } = incoming;
    const onward = httpRequest(`${to()}${url}`, { method, headers }, (answer) => {
      if (proxy.isHolding && method === "POST") {
        answer.resume().on("end", () => (proxy.held += 1));
        return;
      }
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    incoming.pipe(onward);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  proxy.server = server;
  return proxy;
}

describe("npm run ingest on a folder that changes", function () {
  this.timeout(3 * LOADING_MS);
  let test: TestPlatform;
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  let folder: string;
  let docs: string;
  let client: ApiClient;
  let key: string;
  const running: ChildProcess[] = [];
  before(async () => {
    test = await startPlatform({ env: { RATE_LIMIT_RPM: "6000" } });
    proxy = await startProxy(() => test.url);
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "switchyard-followed-"));
    docs = join(folder, "docs");
    await mkdir(docs);
    const { tenancy } = test.platform;
    const tenantId = await tenancy.ensureTenant(basename(folder));
    ({ key } = await tenancy.createKey({ tenantId, role: "owner", subject: "folder@test" }));
    client = makeClient({ url: test.url, key });
  });
  afterEach(async () => {
    for (const child of running.splice(0)) if (child.exitCode === null) child.kill("SIGKILL");
    proxy.isHolding = false;
    proxy.held = 0;
    await rm(folder, { recursive: true, force: true });
  });
  after(async () => {
    proxy.server?.closeAllConnections();
    proxy.server?.close();
    await test.close();
  });

  const start = (...args: string[]) => {
    const options = ["--url", proxy.url, "--key", key, "--manifest", join(folder, "manifest.jsonl")];
    const child = spawn(process.execPath, [script, docs, ...options, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    running.push(child);
    let [out, err] = ["", ""];
    child.stdout?.setEncoding("utf8").on("data", (text) => (out += text));
    child.stderr?.setEncoding("utf8").on("data", (text) => (err += text));
    return { child, ended: once(child, "close").then(([code]) => ({ code, out, err })) };
  };
  const run = async (...args: string[]) => {
    const { code, out, err } = await start("--json", ...args).ended;
    expect(out, err).to.match(/^\{/);
    return { code, account: JSON.parse(out) as Account }; // what --json prints
  };
  const write = (name: string, text: string | Buffer) => writeFile(join(docs, name), text);
  const documents = async (status = "indexed") =>
    (await client.get(`/rag/documents?limit=200&status=${status}`)).body as Document[]; // the client checked the shape
  const names = async (status?: string) => (await documents(status)).map(({ source }) => source.name).sort();
  const linesOf = async () => (await readFile(join(folder, "manifest.jsonl"), "utf8").catch(() => "")).split("\n");
  const noted = async (state: string) => (await linesOf()).filter((line) => line.includes(`"state":"${state}"`)).length;
  const killAt = async ({ child, ended }: ReturnType<typeof start>, isTime: () => Promise<boolean>) => {
    await pollUntil(isTime, { what: "the middle of a run", timeoutMs: LOADING_MS, everyMs: 5 });
    child.kill("SIGKILL");
    await ended;
  };

  /** Fifty documents of five types that can be read, and their names. */
  const fill = async (): Promise<string[]> => {
    const endings = ["pdf", "docx", "html", "md", "txt"];
    const made: string[] = [];
    await mkdir(join(docs, "more"));
    for (let n = 0; n < 50; n += 1) {
      const ending = endings[n % 5];
      const name = `${n % 2 === 0 ? "" : "more/"}file ${n}.${ending}`;
      const text = `File number ${n} tells how bearing ${n * 7} is greased.`;
      if (ending === "pdf") await write(name, await makePdf([text], `File ${n}`));
      else if (ending === "docx") await write(name, await makeDocx([{ text }]));
      else if (ending === "html") await write(name, `<title>File ${n}</title><p>${text}</p>`);
      else await write(name, text);
      made.push(name);
    }
    return made;
  };
  /** Ten that are odd, each with what the loader says of it. */
  const fillOdd = async (): Promise<[string, RegExp][]> => {
    const locked = new PdfDocument({ userPassword: "secret" });
    const parts: Buffer[] = [];
    locked.on("data", (part: Buffer) => parts.push(part)).text("locked");
    const ended = once(locked, "end");
    locked.end();
    await ended;
    await write("locked.pdf", Buffer.concat(parts));
    await write("empty.md", "");
    await write("scan.pdf", await makeScannedPdf([null]));
    await write("half-scan.pdf", await makeScannedPdf(["One page has text.", null]));
    await write("picture.pdf", Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01", "latin1"));
    await write("broken.docx", (await makeDocx([{ text: "It is cut." }])).subarray(0, 900));
    await write("damaged.pdf", "%PDF-1.7 nothing follows");
    await write("drawing.dwg", "AC1027");
    await symlink(join(docs, "nowhere.md"), join(docs, "dangling.md"));
    await writeFile(join(folder, "outside.md"), "# Outside");
    await symlink(join(folder, "outside.md"), join(docs, "leads-out.md"));
    return [
      ["locked.pdf", /password/],
      ["empty.md", /empty/],
      ["scan.pdf", /text/],
      ["half-scan.pdf", /pages_without_text/],
      ["picture.pdf", /image\/png/],
      ["broken.docx", /source_unreadable/],
      ["damaged.pdf", /damaged/],
      ["drawing.dwg", /\.dwg is no type/],
      ["dangling.md", /leads to nothing/],
      ["leads-out.md", /out of the folder/],
    ];
  };
  const gone = ["file 0.pdf", "more/file 1.docx", "file 2.html", "more/file 3.md", "file 4.txt"];
  const moved = { 5: "pdf", 6: "docx", 7: "html", 8: "md", 9: "txt" };
  const oldName = (n: string | number, ending: string) => `${Number(n) % 2 === 0 ? "" : "more/"}file ${n}.${ending}`;
  const deleteAndRename = async () => {
    for (const name of gone) await rm(join(docs, name));
    for (const [n, ending] of Object.entries(moved))
      await rename(join(docs, oldName(n, ending)), join(docs, `renamed ${n}.${ending}`));
  };
  const left = (made: readonly string[]) => {
    const before = new Set([...gone, ...Object.entries(moved).map(([n, ending]) => oldName(n, ending))]);
    const now = Object.entries(moved).map(([n, ending]) => `renamed ${n}.${ending}`);
    return [...made.filter((name) => !before.has(name)), ...now, "half-scan.pdf"].map((name) => basename(name)).sort();
  };

  it("names each odd file of sixty, and follows deletions and new names through kills", async () => {
    const made = await fill();
    const odd = await fillOdd();
    await killAt(start("--json"), async () => (await noted("done")) >= 10);
    const first = await start().ended;
    expect(first.code, first.err).to.equal(1);
    for (const [name, reason] of odd) {
      const lines = first.out.split("\n").filter((line) => line.includes(`${join(docs, name)} `));
      expect(lines, `${name} in ${first.out}`).to.have.length(1);
      expect(lines[0]).to.match(reason);
    }
    expect(await names()).to.deep.equal([...made.map((name) => basename(name)), "half-scan.pdf"].sort());
    const failed = await names("failed");
    const jobs = new Map((await documents()).map(({ documentId, jobId }) => [documentId, jobId]));

    await deleteAndRename();
    const dry = await run("--prune", "--dry-run");
    expect(dry.account.wouldRemove.sort()).to.deep.equal(gone.map((name) => join(docs, name)).sort());
    expect(dry.account.wouldRename).to.have.length(5);
    const before = await noted("removed");
    await killAt(start("--json", "--prune", "--yes"), async () => (await noted("removed")) >= before + 7);
    const last = await run("--prune", "--yes");
    expect(last.account.removed.length).to.be.at.most(3);
    const now = await documents();
    expect(now.map(({ source }) => source.name).sort()).to.deep.equal(left(made));
    for (const { documentId, jobId } of now) expect(jobs.get(documentId), "it was read again").to.equal(jobId);
    expect(await names("failed"), "no heap of failed ones").to.deep.equal(failed);
    const again = await run("--prune", "--yes");
    expect(again.account).to.deep.include({ loaded: 0, renamed: [], removed: [] });
  });

  it("finds what the server took from a run that was killed before it knew, though its files are gone or renamed", async () => {
    const made = await fill();
    proxy.isHolding = true;
    await killAt(start("--json", "--concurrency", "60"), async () => proxy.held === made.length);
    proxy.isHolding = false;
    await deleteAndRename();
    await write("half-scan.pdf", await makeScannedPdf(["One page has text.", null]));
    const { code, account } = await run("--prune", "--yes");
    expect([code, account.failures]).to.deep.equal([0, []]);
    expect(await names()).to.deep.equal(left(made));
    for (const state of ["queued", "processing", "failed"]) expect(await names(state)).to.deep.equal([]);
    expect(account.renamed).to.have.length(5);
  });
});
