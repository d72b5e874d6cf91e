import { access, readdir, readFile, stat } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { expect } from "chai";
import { withModels } from "../../scripts/readme-models.ts";
import { withSettings } from "../../scripts/readme-settings.ts";
import { valueAt } from "../support/http-client.ts";
import { root } from "./source-files.ts";

const MAX_README_LINES = 250;
const MAX_PICTURE_BYTES = 2_500_000;

const read = (path: string) => readFile(join(root, path), "utf8");
const isThere = (path: string) =>
  access(join(root, path)).then(
    () => true,
    () => false,
  );
/** A heading's anchor, as GitHub makes it. */
const toAnchor = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
const anchorsOf = (text: string) => [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => toAnchor(heading));

describe("the documentation", () => {
  let pages: { path: string; text: string }[];
  let decisions: string[];
  before(async () => {
    const named = async (folder: string) =>
      (await readdir(join(root, folder))).filter((name) => name.endsWith(".md")).map((name) => `${folder}/${name}`);
    const paths = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "REVIEW.md", ...(await named("docs"))];
    decisions = await named("docs/decisions");
    pages = await Promise.all([...paths, ...decisions].map(async (path) => ({ path, text: await read(path) })));
  });

  it(`has a README of ${MAX_README_LINES} lines at most, which leads to every page`, async () => {
    const readme = await read("README.md");
    expect(readme.split("\n").length - 1).to.be.at.most(MAX_README_LINES);
    const index = await read("docs/decisions/README.md");
    for (const { path } of pages.slice(1)) {
      const isDecision = decisions.includes(path) && !path.endsWith("/README.md");
      const [page, link] = isDecision ? [index, path.replace("docs/decisions/", "")] : [readme, path];
      expect(page, `no link to ${path}`).to.include(`](${link}`);
    }
  });

  it("has the settings of src/config/config.ts", async () => {
    const page = await read("docs/settings.md");
    expect(withSettings(page), "run `node scripts/readme-settings.ts`").to.equal(page);
  });

  it("has what each model of the catalogue takes", async () => {
    const page = await read("docs/models.md");
    expect(withModels(page), "run `node scripts/readme-models.ts`").to.equal(page);
  });

  it("has the measured lines where `npm run bench -- --write` puts them", async () => {
    const [, table = ""] = (await read("docs/performance.md")).split(/<!-- bench:(?:begin|end) -->/);
    const rows = table.split("\n").filter((line) => line.startsWith("| "));
    expect(rows.length).to.be.above(25);
    for (const row of rows) expect(row.split(" | "), row).to.have.length(7);
  });

  it("links to files and headings that exist", async () => {
    for (const { path, text } of pages) {
      for (const [, link = ""] of text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
        const [file = "", anchor] = link.split("#");
        const target = file === "" ? path : normalize(join(dirname(path), file));
        expect(await isThere(target), `${path}: ${link}`).to.equal(true);
        if (anchor) expect(anchorsOf(await read(target)), `${path}: ${link}`).to.include(anchor);
      }
    }
  });

  it(`has pictures of ${MAX_PICTURE_BYTES} bytes at most together`, async () => {
    const folder = join(root, "docs", "pictures");
    const sizes = (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size);
    const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    expect(bytes).to.be.within(1, MAX_PICTURE_BYTES);
  });

  it("names files and commands that exist", async () => {
    const scripts = Object.keys(valueAt(JSON.parse(await read("package.json")), "scripts") ?? {});
    for (const { path, text } of pages) {
      const files = [...text.matchAll(/`((?:src|api|workers|scripts|test|deploy|examples)\/[\w./-]+)`/g)];
      for (const [, file = ""] of files) expect(await isThere(file), `${path}: ${file}`).to.equal(true);
      for (const [, script = ""] of text.matchAll(/npm run ([\w:-]+)/g)) expect(scripts, path).to.include(script);
    }
  });

  it("writes the authorization in one way", () => {
    for (const { path, text } of pages) {
      const headers = [...text.matchAll(/^[^\n]*curl[^\n]*-H ["'](authorization[^"']*)["']/gim)].map(
        ([, each]) => each,
      );
      for (const header of headers) expect(header, path).to.equal("authorization: Bearer $KEY");
    }
  });

  it("names a test for each claim on security, and each of them is there", async () => {
    const tables = (await read("docs/security.md")).split("\n\n").filter((part) => part.startsWith("| claim | test |"));
    const rows = [...tables.join("\n").matchAll(/^\| (?!claim|---)(.+) \| (.+) \|$/gm)];
    expect(rows.length).to.be.above(30);
    for (const [, claim = "", names = ""] of rows) {
      const named = [...names.matchAll(/`(test\/[\w/.-]+)`: (.+?)(?=; `test\/|$)/g)];
      expect(named, `no test for: ${claim}`).to.have.length.above(0);
      for (const [, file = "", titles = ""] of named) {
        const tests = (await read(file)).split("\n").filter((line) => /^\s*it\(/.test(line));
        for (const title of titles.split("; ")) {
          const isHere = tests.some((line) => line.includes(title));
          expect(isHere, `${file} has no test "${title}"`).to.equal(true);
        }
      }
    }
  });
});
