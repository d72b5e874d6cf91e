import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { makeLogger } from "../../src/observe/logger.ts";
import { makeRunAlone } from "../../workers/run-alone.ts";
import { pollUntil } from "../support/poll-until.ts";

const logger = makeLogger({ level: "silent", name: "test" });
const job = { queue: "scripted", jobId: "job_1" };
const never = new AbortController().signal;

describe("a process that a job has for itself", function () {
  this.timeout(30_000);
  let folder: string;
  let script: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "lone-job-"));
    script = join(folder, "child.mjs");
    // It says that it has the job, and then holds its event loop until it is killed.
    const text = `
      import { writeFileSync } from "node:fs";
      process.on("SIGTERM", () => undefined);
      process.send({ kind: "begun" }, () => {
        writeFileSync(${JSON.stringify(join(folder, "begun"))}, "");
        for (;;);
      });`;
    await writeFile(script, text);
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("is killed when it is still there after the time of its job", async () => {
    const run = makeRunAlone(script, logger, { settleMs: 50 });
    expect(await run({ ...job, timeoutMs: 50 }, never)).to.deep.equal({ kind: "crashed" });
  });

  it("is killed when it does not give its job back", async () => {
    const stopping = new AbortController();
    const run = makeRunAlone(script, logger, { stopTimeoutMs: 200 });
    const outcome = run({ ...job, timeoutMs: 600_000 }, stopping.signal);
    const hasBegun = () => existsSync(join(folder, "begun"));
    await pollUntil(hasBegun, { timeoutMs: 10_000, what: "a process that has begun" });
    stopping.abort();
    expect(await outcome, "which says nothing about the job").to.deep.equal({ kind: "not-begun" });
  });
});
