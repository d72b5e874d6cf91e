import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { createServer, request as httpRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import PdfDocument from "pdfkit";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { makeDocx, makePdf, makeScannedPdf } from "../support/documents.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { needRoot, OTHER_UID } from "../support/other-user.ts";
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
  let site: DocumentServer;
  let test: TestPlatform;
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  let folder: string;
  let docs: string;
  let client: ApiClient;
  let key: string;
  const running: ChildProcess[] = [];
  before(async () => {
    site = await startDocumentServer();
    test = await startPlatform({ env: { RATE_LIMIT_RPM: "6000", FETCH_ALLOW_ORIGINS: site.origin } });
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
    user = {};
    proxy.isHolding = false;
    proxy.held = 0;
    await rm(folder, { recursive: true, force: true });
  });
  after(async () => {
    proxy.server?.closeAllConnections();
    proxy.server?.close();
    await test.close();
    site.close();
  });

  let user = {};
  const start = (...args: string[]) => {
    const options = ["--url", proxy.url, "--key", key, "--manifest", join(folder, "manifest.jsonl")];
    const child = spawn(process.execPath, [script, docs, ...options, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      ...user,
    });
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

  it("loads again what was deleted on the server, and refuses a wrong key though all is loaded", async () => {
    await write("one.md", "# One");
    await write("two.jsonl", JSON.stringify({ content: "left out of folders" }));
    expect((await run()).account.loaded).to.equal(1);
    const wrong = await start("--key", `sk_${"0".repeat(32)}`).ended;
    expect([wrong.code, wrong.err]).to.satisfy(([code, err]: [number, string]) => code === 2 && err.includes("401"));
    const [document] = await documents();
    await client.delete(`/rag/documents/${document?.documentId}`);
    const { code, account } = await run();
    expect([code, account.loaded, account.skipped]).to.deep.equal([0, 1, 0]);
    expect(await names()).to.deep.equal(["one.md"]);
    expect((await run()).account).to.include({ loaded: 0, skipped: 1 });
  });

  it("replaces the document of a file in place, the failed one of a failed file too", async () => {
    await write("plan.pdf", "%PDF-1.7 this is none");
    await write("two.txt", "Two pumps are bled.");
    expect((await run()).code).to.equal(1);
    expect((await run()).code).to.equal(1);
    const failed = await documents("failed");
    expect(failed.map(({ source }) => source.name)).to.deep.equal(["plan.pdf"]);
    const [two] = await documents();
    await write("plan.pdf", await makePdf(["A plan of the quay."], "Plan"));
    await write("two.txt", "Three pumps are bled.");
    expect((await run("--dry-run")).account.wouldReplace).to.have.length(2);
    expect((await run()).account).to.include({ loaded: 2, replaced: 2 });
    expect(await documents("failed")).to.deep.equal([]);
    const ids = (await documents()).map(({ documentId }) => documentId);
    expect(ids).to.have.members([failed[0]?.documentId, two?.documentId]);
    await write("plan.pdf", "%PDF-1.7 broken again");
    expect((await run()).code).to.equal(1);
    expect(await names(), "the earlier version stays").to.deep.equal(["plan.pdf", "two.txt"]);
  });

  it("gives a renamed file's document its new name, and reads it again if its type changes", async () => {
    await write("old.txt", "x".repeat(3));
    await write("note.txt", "# A heading\n\nOf a note.");
    await run();
    const before = new Map((await documents()).map((one) => [one.source.name, one]));
    await rename(join(docs, "old.txt"), join(docs, "new.txt"));
    await rename(join(docs, "note.txt"), join(docs, "note.md"));
    expect((await run()).account).to.deep.include({ loaded: 1, removed: [] });
    const after = new Map((await documents()).map((one) => [one.source.name, one]));
    expect([...after.keys()].sort()).to.deep.equal(["new.txt", "note.md"]);
    const [from, to] = [before.get("old.txt"), after.get("new.txt")];
    expect([to?.documentId, to?.jobId]).to.deep.equal([from?.documentId, from?.jobId]);
    expect(after.get("note.md")?.documentId).to.equal(before.get("note.txt")?.documentId);
    expect(after.get("note.md")?.jobId).not.to.equal(before.get("note.txt")?.jobId);
  });

  it("follows links to files of the folder, once each, and reads no file whose date alone has changed", async () => {
    await mkdir(join(docs, ".store"));
    await mkdir(join(docs, "part"));
    await write(".store/a1", "# Linked");
    await write("part/own.md", "# Own");
    await symlink(join(docs, ".store/a1"), join(docs, "linked.md"));
    await symlink("part/own.md", join(docs, "again.md"));
    await symlink("part", join(docs, "folder.md"));
    const { code, account } = await run();
    expect([code, account.loaded]).to.deep.equal([0, 2]);
    expect(await names()).to.deep.equal(["linked.md", "own.md"]);
    expect(account.leftOut.map(({ id }) => basename(id)).sort()).to.deep.equal(["again.md", "folder.md"]);
    await utimes(join(docs, "part/own.md"), new Date(), new Date(Date.now() - 5_000));
    expect((await run()).account).to.include({ loaded: 0, skipped: 2 });
  });

  it("removes nothing that was not asked for, or that cannot be seen", async () => {
    await mkdir(join(docs, "part"));
    await write("part/one.md", "# One");
    await write("two.md", "# Two");
    await run();
    await rm(join(docs, "part/one.md"));
    await rm(join(docs, "two.md"));
    const refused = await start("--prune").ended;
    expect([refused.code, refused.err]).to.deep.equal([
      2,
      "--prune asks before it removes anything: without a terminal, say --yes.\n",
    ]);
    expect((await start().ended).out).to.include("2 deleted here (see --prune)");
    expect(await names()).to.deep.equal(["one.md", "two.md"]);
    await rename(docs, `${docs}-away`);
    const away = await run("--prune", "--yes");
    expect([away.code, away.account.removed]).to.deep.equal([1, []]);
    await rename(`${docs}-away`, docs);
    expect((await run("--prune", "--yes", join(docs, "part"))).account.removed).to.have.length(2);
    expect(await names()).to.deep.equal([]);
  });

  it("follows the lines of a list, which may begin with a mark of its encoding", async () => {
    const list = join(folder, "bom.jsonl");
    const line = (title: string) => JSON.stringify({ title, content: `Text of ${title}, with an ü.` });
    await writeFile(list, `\ufeff${line("one")}\r\n${line("two")}\r\n`);
    expect((await run(list)).account).to.deep.include({ loaded: 2, failures: [] });
    await writeFile(list, Buffer.from(`\ufeff${line("one")}\r\n${line("three")}\r\n`, "utf16le"));
    expect((await run(list, "--prune", "--yes")).account).to.deep.include({ failures: [] });
    const titles = async () => (await documents()).map(({ title }) => title).sort();
    expect(await titles()).to.deep.equal(["one", "three"]);
    await writeFile(list, `${line("one")}\n`);
    expect((await run(list, "--prune", "--yes")).account.removed).to.deep.equal([`${list}#2`]);
    expect(await titles()).to.deep.equal(["one"]);
  });

  it("makes no document of a line again that has only moved", async () => {
    const list = join(folder, "lines.jsonl");
    const save = (titles: string) =>
      writeFile(list, [...titles].map((title) => JSON.stringify({ title, content: `Text of ${title}.` })).join("\n"));
    const jobs = async () => new Map((await documents()).map(({ title, jobId }) => [title, jobId]));
    await save("abcde");
    await run(list);
    for (const [titles, made] of [
      ["xabcde", 1],
      ["abcdex", 0],
      ["ecybx", 1],
      ["yz", 1],
      ["zyabb", 3],
    ] as const) {
      const before = await jobs();
      await save(titles);
      expect((await run(list, "--prune", "--dry-run")).account.wouldLoad.length, titles).to.be.at.most(made);
      expect((await run(list, "--prune", "--yes")).account, titles).to.include({ loaded: made });
      const now = await documents();
      expect(
        now
          .map(({ title }) => title)
          .sort()
          .join(""),
      ).to.equal([...titles].sort().join(""));
      const kept = now.filter(({ title, jobId }) => before.get(title) === jobId);
      expect(kept, titles).to.have.length(titles.length - made);
    }
  });

  it("follows the URLs of a list in the folder, also once the list is gone", async () => {
    for (const name of ["/one", "/two"]) site.put(name, () => ({ body: `The page ${name} is about seals.` }));
    const urls = async () => {
      const found = (await client.get("/rag/documents")).body as { source: { url: string } }[];
      return found.map(({ source }) => new URL(source.url).pathname).sort();
    };
    await write("urls.txt", `\ufeff${site.origin}/one\r\n${site.origin}/two\r\n`);
    expect((await run()).account).to.deep.include({ loaded: 2, failures: [] });
    await write("urls.txt", `${site.origin}/two\n`);
    await run();
    expect(await urls(), "without --prune").to.deep.equal(["/one", "/two"]);
    await run("--prune", "--yes");
    expect(await urls()).to.deep.equal(["/two"]);
    await rm(join(docs, "urls.txt"));
    await run("--prune", "--yes");
    expect(await urls()).to.deep.equal([]);
  });

  it("loads with warnings, and refuses what would lose something with --require-complete", async () => {
    await write("half-scan.pdf", await makeScannedPdf(["One page has text.", null]));
    const refused = await run("--require-complete");
    expect([refused.code, refused.account.failures[0]?.reason.split(":")[0]]).to.deep.equal([1, "source_incomplete"]);
    expect(await documents()).to.deep.equal([]);
    const shown = await start("--require-complete").ended;
    expect(shown.out).to.match(/half-scan\.pdf +source_incomplete/);
    await writeFile(join(folder, "manifest.jsonl"), "");
    const { code, account } = await run();
    expect([code, account.warnings.map((one) => one.code)]).to.deep.equal([0, ["pages_without_text"]]);
  });

  it("names what it may not read", async function () {
    needRoot(this);
    await write("one.md", "# One");
    await write("secret.md", "# Secret");
    await write("secret.txt", "https://example.org/");
    await mkdir(join(docs, "closed"));
    await write("closed/two.md", "# Two");
    for (const path of ["secret.md", "secret.txt", "closed"]) await chmod(join(docs, path), 0);
    await chmod(folder, 0o777);
    user = { uid: OTHER_UID, gid: OTHER_UID };
    const { code, account } = await run();
    expect([code, account.loaded]).to.deep.equal([1, 1]);
    expect(account.failures.map(({ id, reason }) => [basename(id), reason])).to.deep.equal([
      ["closed", "the folder cannot be read: EACCES"],
      ["secret.md", "the file cannot be read: EACCES"],
      ["secret.txt", "the file cannot be read: EACCES"],
    ]);
  });
});
