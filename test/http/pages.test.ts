import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const browser = { headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" } };
const places = ["/", "/console/runs", "/console/runs/job_01J00000000000000000000000", "/approvals"];
/** Most bytes, compressed, of all scripts and styles of the console. */
const MAX_BYTES = 220_000;

describe("the console's page", () => {
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform({ workers: false });
  });
  after(() => test.close());

  const load = (path: string) => makeClient({ url: test.url }).get(path, browser);

  for (const path of [...places, "/runs/run_01J00000000000000000000000"]) {
    it(`${path} holds nothing inline and no data, and its policy allows only its own files`, async () => {
      const page = await load(path);
      expect([page.status, page.headers.get("content-type")]).to.deep.equal([200, "text/html; charset=utf-8"]);
      const policy = page.headers.get("content-security-policy") ?? "";
      expect(policy).to.contain("script-src 'self'").and.to.contain("frame-ancestors 'none'");
      expect(policy).not.to.contain("unsafe");
      expect(page.text).not.to.match(/<style|style=|<script>|\son\w+=/);
    });
  }

  it("loads files that are there and import each other by paths, and no more than 220 kB of them", async () => {
    const seen = new Map<string, string>();
    const visit = async (path: string): Promise<void> => {
      if (seen.has(path)) return;
      seen.set(path, "");
      const { status, text } = await load(path);
      expect(status, path).to.equal(200);
      seen.set(path, text);
      const imports = [...text.matchAll(/\b(?:from|import)\s*\(?"([^"\s]+)"/g)].map(([, name = ""]) => name);
      for (const name of imports) expect(name, `${path} imports`).to.match(/^\.\/[a-z-]+\.js$/);
      for (const name of imports) await visit(new URL(name, `http://x${path}`).pathname);
    };
    const links = [...(await load("/")).text.matchAll(/(?:href|src)="(\/[^"]+\.(?:js|css))"/g)];
    for (const [, path = ""] of links) await visit(path);
    await visit("/console/files/uplot.css");
    const bytes = [...seen.values()].reduce((sum, text) => sum + gzipSync(text).length, 0);
    expect(seen.size).to.be.above(20);
    expect(bytes).to.be.below(MAX_BYTES);
    for (const [path, text] of seen) {
      if (/preact|purify/.test(path)) continue;
      expect(text, path).not.to.match(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|dangerouslySet/);
    }
  });

  it("is sent compressed, and as 304 to a browser that has it", async () => {
    const first = await load("/console/files/app.js");
    expect(first.headers.get("content-encoding")).to.equal("gzip");
    const headers = { "if-none-match": first.headers.get("etag") ?? "" };
    expect((await makeClient({ url: test.url }).get("/console/files/app.js", { headers })).status).to.equal(304);
  });

  it("has no other files", async () => {
    for (const file of ["none.js", "..%2fconsole-files.ts", "tsconfig.json", "app.js.map"]) {
      expect((await load(`/console/files/${file}`)).status, file).to.equal(404);
    }
  });

  it("is JSON with links for programs", async () => {
    const links = await makeClient({ url: test.url }).get("/");
    expect([links.at("name"), links.at("links.reference")]).to.deep.equal(["Switchyard", "/docs"]);
  });

  it("of an invalid run is a 404", async () => {
    expect((await load("/runs/none")).status).to.equal(404);
  });

  it("asks for a run's steps with a session or a key", async () => {
    expect((await load("/runs/run_01J00000000000000000000000/trail")).status).to.equal(401);
  });
});
