import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { root, sourceFiles } from "./source-files.ts";

const run = promisify(execFile);

/** A small tree with some breaches. `npm run check` holds the same rules against the product itself. */
const breaching = {
  "src/agents/limits.ts": 'import type { Run } from "../store/run-store.ts";\nexport type Limits = { run?: Run };',
  "src/agents/state.ts": "export type State = 1;",
  "src/observe/health.ts": 'import type { Run } from "../store/run-store.ts";\nexport type Health = { run?: Run };',
  "src/tenancy/keys.ts": 'import type { Work } from "../jobs/work.ts";\nexport type Keys = { work?: Work };',
  "src/store/run-store.ts": 'import type { State } from "../agents/state.ts";\nexport type Run = { state: State };',
  "src/jobs/job.ts": 'import type { Work } from "./work.ts";\nexport type Job = { work?: Work };',
  "src/jobs/work.ts": 'import type { Job } from "./job.ts";\nexport type Work = { job?: Job };',
  "api/app.ts":
    'import { work } from "../workers/main.ts";\nimport "../src/agents/limits.ts";\nexport const app = work;',
  "workers/main.ts": 'import type { Job } from "../src/jobs/job.ts";\nexport const work: Job = {};',
};

describe("the rules of import directions", function () {
  this.timeout(60_000);

  it("find imports of a higher or a neighbouring room, cycles and hosts that know each other, of types too", async () => {
    const folder = await mkdtemp(join(tmpdir(), "switchyard-imports-"));
    try {
      for (const [path, code] of Object.entries(breaching)) {
        await mkdir(dirname(join(folder, path)), { recursive: true });
        await writeFile(join(folder, path), code);
      }
      const config = join(root, ".dependency-cruiser.mjs");
      const args = [join(root, "node_modules/.bin/depcruise"), "--config", config, "--output-type", "json"];
      const report = await run(process.execPath, [...args, "src", "api", "workers"], { cwd: folder }).catch(
        (error: { stdout: string; stderr: string }) => error, // it ends with the number of breaches
      );
      expect(report.stdout, report.stderr).to.not.equal("");
      const { summary } = JSON.parse(report.stdout) as {
        summary: { violations: { rule: { name: string }; from: string; to: string }[] };
      };
      const found = summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`);
      expect(found.toSorted()).to.deep.equal([
        "api-and-workers-apart: api/app.ts -> workers/main.ts",
        "no-cycles: src/jobs/job.ts -> src/jobs/work.ts",
        "rooms-import-downwards: src/observe/health.ts -> src/store/run-store.ts",
        "rooms-import-downwards: src/store/run-store.ts -> src/agents/state.ts",
        "rooms-import-downwards: src/tenancy/keys.ts -> src/jobs/work.ts",
      ]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe("importing any module", function () {
  this.timeout(60_000);

  it("starts nothing: no connection, server, timer or thread", async () => {
    const paths = sourceFiles("src", "api", "workers").map(({ path }) => path);
    const imported = paths.map((path) => join(root, path));
    const code = `
      for (const path of ${JSON.stringify(imported)}) await import(path);
      const open = process.getActiveResourcesInfo().filter((name) => !["PipeWrap", "TTYWrap", "CloseReq", "FSReqCallback"].includes(name));
      console.log(JSON.stringify(open));
      process.exit(0);
    `;
    const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", code], { cwd: root });
    expect(JSON.parse(stdout)).to.deep.equal([]);
  });
});
