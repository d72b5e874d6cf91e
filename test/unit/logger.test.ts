import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "chai";

const run = promisify(execFile);
const logger = new URL("../../src/observe/logger.ts", import.meta.url).href;

describe("the log of a process", () => {
  for (const { how, end } of [
    { how: "exits at once", end: "process.exit(0);" },
    { how: "comes to its end", end: "" },
  ]) {
    it(`has all of its lines when it ${how}`, async () => {
      const script = `
        import { makeLogger } from ${JSON.stringify(logger)};
        const logger = makeLogger({ level: "info", name: "brief" });
        for (let n = 0; n < 100; n += 1) logger.info({ n, apiKey: "sk-hidden" }, "line");
        ${end}`;
      const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script]);
      const lines = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      expect(lines.map(({ n }) => n)).to.have.members(Array.from({ length: 100 }, (_, n) => n));
      expect(stdout).not.to.contain("sk-hidden");
    });
  }
});
