import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { type DocumentServer, startDocumentServer } from "../support/document-server.ts";
import { makeDocx, makePdf } from "../support/documents.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const script = fileURLToPath(new URL("../../scripts/ingest.ts", import.meta.url));
const FILES = 60;

type Run = { child: ChildProcess; ended: Promise<{ code: number | null; out: string; err: string }> };
type Account = {
  found: number;
  loaded: number;
  skipped: number;
  failed: number;
  left: number;
  wouldLoad?: string[];
  failures: { id: string; reason: string }[];
};

/** Longest wait for a few documents, in ms: they are parsed at a low priority, which is late on a busy machine. */
const LOADING_MS = 60_000;

describe("npm run ingest", function () {
  this.timeout(3 * LOADING_MS);
  let site: DocumentServer;
  let test: TestPlatform;
  let folder: string;
  const running: ChildProcess[] = [];
  before(async () => {
    site = await startDocumentServer();
    test = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: site.origin, RATE_LIMIT_CONCURRENT: "6" } });
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "switchyard-ingest-"));
  });
  afterEach(async () => {
    for (const child of running.splice(0)) if (child.exitCode === null) child.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  });
  after(async () => {
    await test.close();
    site.close();
  });

  const run = (key: string, ...args: string[]): Run => {
    const options = ["--url", test.url, "--key", key, "--manifest", join(folder, ".manifest.jsonl")];
    const child = spawn(process.execPath, [script, ...options, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    running.push(child);
    let [out, err] = ["", ""];
    child.stdout?.setEncoding("utf8").on("data", (text) => (out += text));
    child.stderr?.setEncoding("utf8").on("data", (text) => (err += text));
    return { child, ended: once(child, "close").then(([code]) => ({ code, out, err })) };
  };
  const accountOf = ({ out }: { out: string }) => JSON.parse(out) as Account; // what --json prints
  /** Titles of all documents of a tenant, page by page. */
  const titles = async (client: ApiClient) => {
    const found: string[] = [];
    for (let path = "/rag/documents?limit=200"; path !== ""; ) {
      const page = await client.get(path);
      found.push(...(page.body as { title: string }[]).map(({ title }) => title)); // the client checked the shape
      path = /<([^>]+)>/.exec(page.headers.get("link") ?? "")?.[1] ?? "";
    }
    return found.sort();
  };
  const newTenant = async (name: string) => {
    const { tenancy } = test.platform;
    const tenantId = await tenancy.ensureTenant(name);
    const { key } = await tenancy.createKey({ tenantId, role: "owner", subject: "bulk@test" });
    return { key, client: makeClient({ url: test.url, key }) };
  };
  const noted = async (state: string) => {
    const text = await readFile(join(folder, ".manifest.jsonl"), "utf8").catch(() => "");
    return text.split("\n").filter((line) => line.includes(`"state":"${state}"`)).length;
  };

  it("loads everything once, though it is stopped by Ctrl-C and killed in between", async () => {
    const { key, client } = await newTenant("interrupted");
    const docs = join(folder, "docs");
    for (const part of ["a", "b/c", "node_modules/x", ".hidden"]) await mkdir(join(docs, part), { recursive: true });
    await writeFile(join(docs, "node_modules/x/no.md"), "# no");
    await writeFile(join(docs, ".hidden/no.md"), "# no");
    await writeFile(join(docs, "a/image.png"), "no document");
    const expected: string[] = [];
    for (let n = 0; n < FILES; n += 1) {
      const name = `doc ${String(n).padStart(3, "0")}`;
      const at = join(docs, n % 2 === 0 ? "a" : "b/c", name);
      expected.push(name);
      const text = `This is ${name}. It speaks of pumps and valves.`;
      if (n % 30 === 1) await writeFile(`${at}.docx`, await makeDocx([{ heading: name, level: 1 }, { text }]));
      else if (n % 30 === 2) await writeFile(`${at}.pdf`, await makePdf([text], name));
      else if (n % 3 === 0) await writeFile(`${at}.html`, `<title>${name}</title><h1>${name}</h1><p>${text}</p>`);
      else await writeFile(`${at}.md`, `# ${name}\n\n${text}`);
    }
    const stopped = run(key, docs, "--json");
    await pollUntil(async () => (await noted("done")) >= 5, { what: "the first documents", timeoutMs: LOADING_MS });
    stopped.child.kill("SIGINT");
    const first = await stopped.ended;
    expect(first.code).to.equal(130);
    expect(accountOf(first).left).to.be.above(0);

    const killed = run(key, docs, "--json");
    const before = await noted("done");
    await pollUntil(async () => (await noted("done")) >= before + 5, { what: "more documents", timeoutMs: LOADING_MS });
    killed.child.kill("SIGKILL");
    await killed.ended;
    await appendFile(join(folder, ".manifest.jsonl"), '{"target":"cut in the mid');

    const last = await run(key, docs, "--json").ended;
    expect([last.code, last.err]).to.deep.equal([0, ""]);
    const account = accountOf(last);
    expect(account).to.include({ found: FILES, failed: 0, left: 0 });
    expect(account.skipped).to.be.at.least(10);
    expect((await titles(client)).map((title) => title.replace(/\.\w+$/, ""))).to.deep.equal(expected);

    const again = await run(key, docs).ended;
    expect([again.code, again.out]).to.deep.equal([
      0,
      `0 to load (0 B), ${FILES} loaded before, 1 left out\n0 loaded, 0 failed, ${FILES} skipped in ${/in (\S+) s/.exec(again.out)?.[1]} s\n\nLeft out:\n  ${join(docs, "a/image.png")}  .png is no type that is loaded\n`,
    ]);
  });

  it("takes globs, URLs, lists of URLs and JSONL, and reports each failure with its reason", async () => {
    const { key, client } = await newTenant("mixed");
    site.put("/page", () => ({ body: "<title>A page</title><p>It is about bearings.</p>", type: "text/html" }));
    site.put("/listed", () => ({ body: "Listed text about seals." }));
    await writeFile(join(folder, "one.md"), "# One");
    await writeFile(join(folder, "two.md"), "# Two");
    await writeFile(join(folder, "broken.pdf"), "%PDF-1.7 this is no PDF");
    await writeFile(join(folder, "empty.md"), "");
    await writeFile(join(folder, "urls.txt"), `# a list\n${site.origin}/listed\n\n${site.origin}/gone\nno address\n`);
    await writeFile(
      join(folder, "more.jsonl"),
      `${JSON.stringify({ title: "From a line", content: "Text about gaskets." })}\nnot json\n${JSON.stringify({ nothing: 1 })}\n`,
    );
    const what = [
      `${folder}/*.{md,pdf}`,
      `${site.origin}/page`,
      join(folder, "urls.txt"),
      join(folder, "more.jsonl"),
      "/no/such",
    ];

    const dry = await run(key, ...what, "--dry-run", "--json").ended;
    expect(accountOf(dry).wouldLoad).to.have.length(7);
    expect(await titles(client)).to.deep.equal([]);

    const ended = await run(key, ...what).ended;
    expect(ended.code).to.equal(1);
    expect(ended.out)
      .to.match(/5 loaded, 7 failed/)
      .and.match(/Not loaded:/);
    for (const reason of [
      /broken\.pdf +source_unreadable/,
      /empty\.md +the file is empty/,
      /gone +source_unreachable/,
      /urls\.txt#5 +the line is not a URL/,
      /more\.jsonl#2 +the line is no JSON object/,
      /more\.jsonl#3 +the line is no JSON object/,
      /\/no\/such +there is no such file/,
    ]) {
      expect(ended.out).to.match(reason);
    }
    expect(await titles(client)).to.have.length(5);
  });

  it("loads into a collection, of which a line may name another, and notes what is loaded for each", async () => {
    const { key, client } = await newTenant("collections");
    const lines = join(folder, "more.jsonl");
    await writeFile(join(folder, "one.md"), "# One");
    await writeFile(
      lines,
      `${JSON.stringify({ content: "Two" })}\n${JSON.stringify({ content: "Three", collection: "cranes" })}\n`,
    );
    const what = [join(folder, "one.md"), lines, "--json"];
    const documents = async () => {
      const { data } = (await client.get("/rag/collections")).body as { data: { name: string; documents: number }[] };
      return Object.fromEntries(data.map((collection) => [collection.name, collection.documents]));
    };
    expect((await run(key, ...what, "--collection", "pumps").ended).code).to.equal(0);
    expect(await documents()).to.deep.equal({ default: 0, pumps: 2, cranes: 1 });
    expect(accountOf(await run(key, ...what, "--collection", "pumps").ended)).to.include({ loaded: 0, skipped: 3 });
    expect(accountOf(await run(key, ...what).ended)).to.include({ loaded: 3, skipped: 0 });
    expect(await documents()).to.include({ default: 2, pumps: 2 });
    const refused = accountOf(await run(key, join(folder, "one.md"), "--json", "--collection", "no name").ended);
    expect(refused.failures[0]?.reason).to.include("collection");
  });

  it("replaces the document of a file that has changed", async () => {
    const { key, client } = await newTenant("changed");
    const path = join(folder, "manual.md");
    await writeFile(path, "# Manual\n\nThe old pump.");
    expect((await run(key, path).ended).code).to.equal(0);
    await writeFile(path, "# Manual\n\nThe new and better pump.");
    expect((await run(key, path).ended).code).to.equal(0);
    expect(await titles(client)).to.have.length(1);
    expect((await client.post("/rag/query", { query: "pump", topK: 1 })).string("results[0].content")).to.include(
      "better",
    );
  });

  it("refuses a manifest whose documents the tenant does not have, and loads nothing", async () => {
    const path = join(folder, "one.md");
    await writeFile(path, "# One");
    const first = await newTenant("first");
    expect((await run(first.key, path).ended).code).to.equal(0);
    const second = await newTenant("second");
    await writeFile(join(folder, "two.md"), "# Two");
    for (const what of [path, join(folder, "two.md")]) {
      const refused = await run(second.key, what).ended;
      expect([refused.code, refused.err.includes("another data folder or tenant")]).to.deep.equal([2, true]);
    }
    expect(await titles(second.client)).to.deep.equal([]);
    expect((await run(first.key, path).ended).out).to.include("0 loaded, 0 failed, 1 skipped");
  });

  it("reports in one line why it cannot begin", async () => {
    const path = join(folder, "one.md");
    await writeFile(path, "# One");
    const refused = await run("sk_00000000000000000000000000000000", path).ended;
    expect([refused.code, refused.err.trim().split("\n").length]).to.deep.equal([2, 1]);
    expect(refused.err).to.include("401 invalid_api_key");
    const keyless = await run("", path).ended;
    expect([keyless.code, keyless.err.trim()]).to.deep.equal([
      2,
      "No API key was given: name one by --key or in KEY. `npm start` prints the first one.",
    ]);
    const unreachable = await run(test.keys.owner, path, "--url", "http://127.0.0.1:1").ended;
    expect(unreachable.code).to.equal(2);
    expect(unreachable.err).to.match(/^There is no API at http:\/\/127\.0\.0\.1:1: .*\n$/);
  });
});
