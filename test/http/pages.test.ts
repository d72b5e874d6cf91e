import { expect } from "chai";
import { makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** Pages, each with the files that it loads. */
const pages = [
  { path: "/runs/run_01J00000000000000000000000", files: ["/pages/run.js", "/pages/page.css"] },
  { path: "/approvals", files: ["/pages/approvals.js", "/pages/page.css"] },
];

describe("the pages", () => {
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform({ workers: false });
  });
  after(() => test.close());

  for (const { path, files } of pages) {
    it(`${path} holds nothing inline and no data, and its policy allows only its own files`, async () => {
      const nobody = makeClient({ url: test.url });
      const page = await nobody.get(path);
      expect([page.status, page.headers.get("content-type")]).to.deep.equal([200, "text/html; charset=utf-8"]);
      const policy = page.headers.get("content-security-policy") ?? "";
      expect(policy).to.contain("script-src 'self'").and.to.contain("frame-ancestors 'none'");
      expect(policy).not.to.contain("unsafe");
      expect(page.text).not.to.match(/<style|style=|<script>|\son\w+=/);
      for (const file of files) {
        expect(page.text).to.contain(`"${file}"`);
        expect((await nobody.get(file)).status).to.equal(200);
      }
      const scripts = await Promise.all([...files, "/pages/session.js"].map((file) => nobody.get(file)));
      // What a model or a caller wrote is shown as text.
      for (const { text } of scripts)
        expect(text).not.to.match(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(/);
    });
  }

  it("begin at /, which links to all of them, and is JSON for programs", async () => {
    const nobody = makeClient({ url: test.url });
    const page = await nobody.get("/", { headers: { accept: "text/html,application/xhtml+xml,*/*;q=0.8" } });
    expect(page.headers.get("content-type")).to.equal("text/html; charset=utf-8");
    expect(page.headers.get("content-security-policy")).to.contain("script-src 'self'");
    for (const path of ["/docs", "/approvals", "/widget/demo", "/admin/queues", "/readyz"]) {
      expect(page.text).to.contain(`href="${path}"`);
    }
    const links = await nobody.get("/");
    expect([links.at("name"), links.at("links.reference")]).to.deep.equal(["Switchyard", "/docs"]);
  });

  it("of an invalid id are a 404", async () => {
    expect((await makeClient({ url: test.url }).get("/runs/none")).status).to.equal(404);
  });

  it("ask for a run's steps with a key", async () => {
    const { status } = await makeClient({ url: test.url }).get("/runs/run_01J00000000000000000000000/trail");
    expect(status).to.equal(401);
  });
});
