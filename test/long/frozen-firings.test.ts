import { expect } from "chai";
import { slotJobId } from "../../src/jobs/slots.ts";
import type { Work } from "../../src/jobs/work.ts";
import type { Platform } from "../../src/platform.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { raceWorkers } from "../support/race-workers.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const never = new AbortController().signal;

/** No worker runs: the test lets two processes take the same slot, of which one is frozen before each of its commands in turn. */
describe("a slot that two processes take at once", function () {
  this.timeout(240_000);
  let test: TestPlatform;
  let client: ApiClient;
  let tenantId: string;

  before(async () => {
    test = await startPlatform({ workers: false });
    client = makeClient({ url: test.url, key: test.keys.owner });
    tenantId = await tenantOf(test);
  });
  after(() => test.close());

  const targets: [string, () => Promise<object>][] = [
    [
      "a workflow",
      async () => {
        // biome-ignore lint/suspicious/noThenProperty: a condition's branch
        const steps = [{ type: "condition", expression: "true", then: [] }];
        return {
          target: { workflowId: (await client.post("/workflows", { name: "Raced", steps })).string("workflowId") },
        };
      },
    ],
    [
      "an agent",
      async () => {
        const agent = await client.post("/agents", { name: "Raced", model: "meta-llm", systemPrompt: "You answer." });
        return { target: { agentId: agent.string("agentId") }, input: "Hi" };
      },
    ],
    [
      "a pattern",
      async () => ({ target: { composite: { pattern: "chain-of-thought", profile: "coding" } }, input: "Why?" }),
    ],
  ];

  /** A sweep; then one that finds the firing whose process has said nothing for long. */
  const takeTwice = async ({ automation, store }: Platform, scheduleId: string) => {
    await automation.sweep(never);
    const { data } = await store.firings.list(tenantId, scheduleId, { limit: 10 });
    for (const firing of data) {
      if (firing.status === "starting")
        await store.firings.putOff(firing, { status: "starting", attempts: 1, nextAt: new Date() });
    }
    await automation.sweep(never);
  };

  for (const [what, toBody] of targets) {
    it(`starts ${what} once, wherever one of them is frozen`, async () => {
      const more = await toBody();
      const rounds = await raceWorkers({
        test,
        async begin() {
          const body = { name: "Raced", cron: "0 9 * * *", ...more };
          const recordId = (await client.post("/schedules", body)).string("scheduleId");
          const schedule = await test.platform.store.schedules.get(tenantId, recordId);
          const slotAt = new Date(Date.now() - 1_000);
          if (schedule) await test.platform.store.schedules.advance(schedule, { slotAt, dueAt: slotAt });
          return { tenantId, recordId, jobId: slotJobId(recordId, slotAt) };
        },
        work: (platform): Work => ({
          ...platform.composite.work,
          run: ({ recordId }) => takeTwice(platform, recordId),
        }),
        async check({ recordId, jobId }, ends, nth) {
          const where = `frozen before its command ${nth}`;
          for (const end of [ends.frozen, ends.other])
            expect(end instanceof Error ? end : undefined, where).to.equal(undefined);
          const { data } = await test.platform.store.firings.list(tenantId, recordId, { limit: 10 });
          expect(
            data.map(({ status, jobId: started }) => [status, started]),
            where,
          ).to.deep.equal([["started", jobId]]);
          const job = await test.platform.jobs.get(tenantId, jobId);
          expect(job.status, where).to.equal("queued");
          const next = (await client.get(`/schedules/${recordId}`)).string("nextAt");
          expect(Date.parse(next), where).to.be.greaterThan(Date.now());
        },
      });
      expect(rounds).to.be.greaterThan(8);
      const jobs = await test.platform.store.jobs.countOpen(tenantId, 10_000);
      const { schedules } = test.platform.store;
      expect(jobs, "a job for each schedule").to.equal(await schedules.count(tenantId, 10_000));
    });
  }
});
