import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { root, sourceFiles } from "./source-files.ts";

const run = promisify(execFile);

describe("import directions", function () {
  this.timeout(60_000);

  it("are those of .dependency-cruiser.mjs", async () => {
    const command = join(root, "node_modules/.bin/depcruise");
    const args = [
      command,
      "--config",
      ".dependency-cruiser.mjs",
      "--output-type",
      "json",
      "src",
      "api",
      "workers",
      "scripts",
    ];
    const report = await run(process.execPath, args, { cwd: root, maxBuffer: 1 << 28 }).catch(
      (error: { stdout: string; stderr: string }) => error, // it ends with the number of breaches
    );
    expect(report.stdout, report.stderr).to.not.equal("");
    const { summary } = JSON.parse(report.stdout) as {
      summary: {
        totalCruised: number;
        violations: { rule: { name: string }; from: string; to: string }[];
        ruleSetUsed: { forbidden: { name: string; comment: string }[] };
      };
    };
    const advice = new Map(summary.ruleSetUsed.forbidden.map(({ name, comment }) => [name, comment]));
    const breaches = summary.violations.map(({ rule, from, to }) => `${from} imports ${to}: ${advice.get(rule.name)}`);
    expect(breaches).to.deep.equal([]);
    expect(summary.totalCruised, "modules that were looked at").to.be.greaterThan(sourceFiles("src").length);
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
