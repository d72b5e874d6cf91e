import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect } from "chai";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";
import { makeApprovalRuns } from "../support/approval-run.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";

/** Waits of one run, and runs that wait; the issue's own numbers are 1,000 and 10,000. */
const waits = Number(process.env.WAITS_OF_A_RUN ?? 200);
const waitingRuns = Number(process.env.WAITING_RUNS ?? 500);
/** Runs that are begun at once. */
const AT_ONCE = 16;
const HOUR_MS = 3_600_000;

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
const MB = 1 << 20;
type Megabytes = { had: number; kept: number; left: number };
const toText = (before: Megabytes, after: Megabytes) =>
  `worker ${before.had} to ${after.had} MB; without garbage ${before.left} to ${after.left} MB, in use ${before.kept} to ${after.kept} MB\n`;

const readProc = ({ child }: HostProcess, file: string) =>
  process.platform === "linux" ? readFileSync(`/proc/${child.pid}/${file}`, "utf8") : "";
/** 0 where the system does not say. */
const residentMb = (host: HostProcess) =>
  Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(readProc(host, "status"))?.[1] ?? 0) / 1_024);

/** How long a process has had the processor, in ms, to a hundredth of a second; 0 where the system does not say. */
function cpuMs(host: HostProcess): number {
  const [, fields = ""] = readProc(host, "stat").split(") ");
  const [user = 0, system = 0] = fields.split(" ").slice(11, 13).map(Number);
  return (user + system) * 10;
}

/** What a worker that waits for much may hold more than one that waits for little, without its garbage, in MB. */
const MAX_MORE_MB = 40;
/** What a worker may have of the system, garbage included, in MB. */
const MAX_RSS_MB = 450;

describe("waits in large numbers", function () {
  this.timeout(860_000);
  let harness: AgentHarness;
  let runs: ReturnType<typeof makeApprovalRuns>;
  let worker: HostProcess;
  /** What the worker alone, a process of its own, has of the system, and what of it is no garbage. */
  const megabytes = async () => {
    const had = residentMb(worker);
    const said = once(worker.child, "message");
    worker.child.send({});
    const [{ heapUsed, external, rss }] = (await said) as [NodeJS.MemoryUsage];
    const kept = Math.round((heapUsed + external) / MB);
    return { had, kept, left: Math.round(rss / MB) };
  };
  before(async () => {
    harness = await openAgentHarness({ MAX_OPEN_JOBS: "100000", MAX_RUNS: "1000000" }, { workers: false });
    runs = makeApprovalRuns(harness);
    worker = await startProcess("test/support/measured-worker.ts", harness.env);
  });
  after(async () => {
    await worker?.kill();
    await harness?.close();
  });

  it("of one run take as long at its end as at its start", async () => {
    harness.upstream.play(() => ({ text: "Ready." }));
    await runs.reach((await runs.start(await runs.createAgent([]))).path, "completed"); // loads what agents need
    const steps: number[] = [];
    const cpu: number[] = [];
    let lastAt = 0;
    let waited = 0;
    let asked = 0;
    harness.upstream.play(({ turn }) => {
      const now = performance.now();
      asked += 1;
      harness.upstream.calls.splice(0); // each holds the conversation so far
      if (turn > 1) steps.push(now - lastAt - waited);
      cpu.push(cpuMs(worker));
      lastAt = now;
      if (turn > waits) return { text: "Done." };
      waited = 1 + ((turn * 37) % (turn % 10 === 0 ? 1_000 : 100));
      return { calls: [{ name: "wait", arguments: { ms: waited } }] };
    });
    const agentId = await runs.createAgent([{ type: "wait" }], { maxIterations: waits + 1 });
    const before = await megabytes();
    const { path, jobId } = await runs.start(agentId, { budget: { timeoutMs: HOUR_MS } });
    await pollUntil(async () => (await harness.platform.store.jobs.findById(jobId))?.status === "completed", {
      timeoutMs: 840_000,
      everyMs: 500,
      what: "the end of the waits",
    });
    const run = await harness.member.get(path);
    expect([run.at("status"), run.at("integrity.verified")]).to.deep.equal(["completed", true]);
    expect(asked).to.equal(waits + 1);
    const tenth = Math.ceil(steps.length / 10);
    const [first, last] = [median(steps.slice(0, tenth)), median(steps.slice(-tenth))];
    const ofWorker = (from: number, to: number) => ((cpu.at(to) ?? 0) - (cpu.at(from) ?? 0)) / tenth;
    const [firstCpu, lastCpu] = [ofWorker(0, tenth), ofWorker(-1 - tenth, -1)];
    process.stdout.write(
      `      ${waits} waits: ${first.toFixed(1)} ms a step at first, ${last.toFixed(1)} ms at last, ` +
        `${firstCpu.toFixed(1)} and ${lastCpu.toFixed(1)} ms of the processor, `,
    );
    const after = await megabytes();
    process.stdout.write(toText(before, after));
    expect(after.kept - before.kept, "MB more").to.be.at.most(MAX_MORE_MB);
    expect(after.had, "MB in all").to.be.at.most(MAX_RSS_MB);
    // Of the processor: on a busy machine the time of a step is that of others.
    expect(lastCpu, `${firstCpu} ms at first`).to.be.at.most(firstCpu * 2 + 60);
  });

  it("hold nothing for the runs that wait, so that others take as long as before", async () => {
    harness.upstream.play(({ turn, input }) => {
      harness.upstream.calls.splice(0);
      if (input === "now" || turn > 1) return { text: "Done." };
      return { calls: [{ name: "wait", arguments: { ms: HOUR_MS } }] };
    });
    const agentId = await runs.createAgent([{ type: "wait" }]);
    const quick = async () => {
      const times: number[] = [];
      for (let n = 0; n < 20; n += 1) {
        const began = performance.now();
        expect((await harness.member.post(`/agents/${agentId}/run`, { input: "now" })).status).to.equal(200);
        times.push(performance.now() - began);
      }
      return median(times);
    };
    await quick();
    const [before, beforeMb] = [await quick(), await megabytes()];
    const caller = (await harness.platform.tenancy.authenticate(harness.key)) ?? expect.fail("an unknown key");
    const jobIds: string[] = [];
    const began = performance.now();
    let left = waitingRuns;
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (left > 0) {
          left -= 1;
          const asked = { caller, agentId, body: { input: "wait" }, isInteractive: false };
          jobIds.push((await harness.platform.agents.accept(asked)).job._id);
        }
      }),
    );
    const { jobs } = harness.platform.store;
    await pollUntil(async () => (await jobs.findAwaiting(jobIds)).size === waitingRuns, {
      timeoutMs: 840_000,
      everyMs: 2_000,
      what: "runs that wait",
    });
    const seconds = Math.round((performance.now() - began) / 1_000);
    const live = await harness.platform.queues.findLive("agent-runs", jobIds.slice(0, 100));
    expect(live.size, "jobs of BullMQ").to.equal(0);
    const [after, afterMb] = [await quick(), await megabytes()];
    process.stdout.write(
      `      ${waitingRuns} runs wait after ${seconds} s: ${before.toFixed(1)} to ${after.toFixed(1)} ms a run, `,
    );
    process.stdout.write(toText(beforeMb, afterMb));
    expect(afterMb.kept - beforeMb.kept, "MB more").to.be.at.most(MAX_MORE_MB);
    expect(afterMb.had, "MB in all").to.be.at.most(MAX_RSS_MB);
    expect(after, `${before} ms before`).to.be.at.most(before * 2 + 20);
  });
});
