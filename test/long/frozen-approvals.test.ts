import { expect } from "chai";
import { Suspended } from "../../src/jobs/reschedule.ts";
import { AppError } from "../../src/lib/errors.ts";
import type { Platform } from "../../src/platform.ts";
import { outcomeOf, raceWorkers } from "../support/race-workers.ts";
import { stepsOf } from "../support/workflow-harness.ts";
import { type BegunRun, openWorkflowRace, type WorkflowRace } from "../support/workflow-race.ts";

describe("a run of a workflow that waits for a person, by two workers at once", () => {
  let race: WorkflowRace;
  before(async () => {
    race = await openWorkflowRace();
  });
  after(() => race?.harness.close());

  const sign = { type: "human_approval", id: "sign", assigneeRole: "admin" };
  let latest: BegunRun;
  const starter = async (steps: object[]) => {
    const start = await race.starter(steps);
    return async () => {
      latest = await start();
      return latest;
    };
  };
  /** The other worker of a race, which is not frozen, does this. */
  const otherDoes = (run: (begun: BegunRun, platform: Platform) => Promise<unknown>) => (platform: Platform) => {
    const work = race.work(platform);
    return platform === race.harness.test.platform ? work : { ...work, run: () => run(latest, platform) };
  };
  /** The job of a run waits for a person, as after a worker that had it. */
  const suspend = async ({ jobId }: BegunRun) => {
    const { claims } = race.harness.test.platform.jobs;
    const claimed = (await claims.claim(jobId, "test")) ?? expect.fail("the job cannot be claimed");
    expect(await claims.suspend(claimed.lease)).not.to.equal(null);
  };
  const decide = async ({ recordId, path }: BegunRun, body: { decision: string; comment: string }) => {
    const approvalId = (await race.harness.admin.get(path)).string("awaiting.approvalId");
    const decided = await race.harness.admin.post(`/workflows/approvals/${approvalId}/decide`, body);
    expect([decided.status, decided.at("runId")], decided.text).to.deep.equal([200, recordId]);
  };
  const approvalsOf = async ({ recordId }: BegunRun, status: string) => {
    const { body } = await race.harness.admin.get(`/workflows/approvals?status=${status}`);
    return (Object(body).data as { runId: string }[]).filter(({ runId }) => runId === recordId);
  };
  /** Runs a run until it waits for a person, who decides, and then further. */
  const decideAndGoOn = (decision: "approved" | "rejected") => async (begun: BegunRun, platform: Platform) => {
    expect(await race.takeTurn(begun, platform)).to.be.instanceOf(Suspended);
    await suspend(begun);
    await decide(begun, { decision, comment: "Read" });
    return race.takeTurn(begun, platform);
  };
  /** Its first step is recorded, and one person is asked at the second. */
  const expectWaiting = async (begun: BegunRun, at: number) => {
    const run = await race.harness.member.get(begun.path);
    expect(run.at("status"), `frozen at ${at}`).to.equal("awaiting_approval");
    const found = stepsOf(run).map(({ path, status, attempts }) => `${path} ${status} ${attempts}`);
    expect(found, `frozen at ${at}`).to.deep.equal(["0 completed 1", "1 awaiting_approval 1"]);
    expect(await approvalsOf(begun, "pending")).to.have.lengthOf(1);
  };

  it("asks one person once, and goes on by the decision, wherever one is frozen before that", async () => {
    const begin = await starter([
      race.ask("draft", "Draft {{ input.word }}"),
      sign,
      race.call("/effect", "steps.sign.output.comment"),
    ]);
    const commands = await raceWorkers<BegunRun>({
      ...{ test: race.harness.test, begin, work: race.work },
      check: async (begun, ends, at) => {
        await suspend(begun);
        await expectWaiting(begun, at);
        race.expectPeace(ends, at);
        await decide(begun, { decision: "approved", comment: `Round ${race.round()}` });
        expect(await race.goOn(begun)).to.include({ runId: begun.recordId, status: "completed" });
        const run = await race.harness.member.get(begun.path);
        expect(run.at("status")).to.equal("completed");
        race.expectOnce(run, ["0", "1", "2"], at);
        expect(race.deliveriesOf(begun).map(({ body }) => JSON.parse(body).said)).to.deep.equal([
          `Round ${race.round()}`,
        ]);
        expect(await approvalsOf(begun, "approved")).to.have.lengthOf(1);
        await race.expectCharged();
      },
    });
    expect(commands).to.be.above(4);
  });

  it("goes on once after a decision, wherever one is frozen then", async () => {
    const start = await starter([
      race.ask("draft", "Draft {{ input.word }}"),
      sign,
      race.ask("final", "{{ steps.sign.output.comment }}"),
    ]);
    const begin = async () => {
      const begun = await start();
      expect(await race.takeTurn(begun)).to.be.instanceOf(Suspended);
      await suspend(begun);
      await decide(begun, { decision: "approved", comment: `Fine in round ${race.round()}` });
      return begun;
    };
    const commands = await raceWorkers<BegunRun>({
      ...{ test: race.harness.test, begin, work: race.work },
      check: async (begun, ends, at) => {
        const run = await race.harness.member.get(begun.path);
        expect(run.at("status"), `frozen at ${at}`).to.equal("completed");
        race.expectOnce(run, ["0", "1", "2"], at);
        expect(run.at("steps[1].output")).to.include({
          decision: "approved",
          comment: `Fine in round ${race.round()}`,
        });
        expect(run.at("output")).to.match(new RegExp(`^Fine in round ${race.round()}, answer`));
        expect(run.body).not.to.have.property("awaiting");
        expect(await approvalsOf(begun, "approved")).to.have.lengthOf(1);
        expect(await approvalsOf(begun, "pending")).to.have.lengthOf(0);
        race.expectPeace(ends, at);
        await race.expectCharged();
      },
    });
    expect(commands).to.be.above(4);
  });

  for (const decision of ["approved", "rejected"] as const) {
    it(`is ${decision} for one that was frozen before the person was asked, too`, async () => {
      const begin = await starter([
        race.ask("draft", "Draft {{ input.word }}"),
        sign,
        race.call("/effect", "steps.sign.output.comment"),
      ]);
      const isApproved = decision === "approved";
      const commands = await raceWorkers<BegunRun>({
        ...{ test: race.harness.test, begin, work: otherDoes(decideAndGoOn(decision)) },
        check: async (begun, ends, at) => {
          if (ends.other === undefined) return; // it was not frozen at all
          race.expectPeace(ends, at);
          const run = await race.harness.member.get(begun.path);
          expect(run.at("status"), `frozen at ${at}`).to.equal(isApproved ? "completed" : "rejected");
          race.expectOnce(run, isApproved ? ["0", "1", "2"] : ["0", "1"], at);
          expect(run.at("steps[1].output")).to.include({ decision, comment: "Read" });
          expect(await race.goOn(begun)).to.include({ status: run.at("status") });
          expect(await approvalsOf(begun, decision)).to.have.lengthOf(1);
          expect(await approvalsOf(begun, "pending")).to.have.lengthOf(0);
          await race.expectCharged();
        },
      });
      expect(commands).to.be.above(4);
    });
  }

  it("waits for the person, and is cancelled with that, wherever one is frozen that then learns of its loss", async () => {
    const begin = await starter([race.ask("draft", "Draft {{ input.word }}"), sign]);
    let lost = new AbortController();
    const commands = await raceWorkers<BegunRun>({
      ...{ test: race.harness.test, begin },
      work: (platform) => {
        const own = race.work(platform);
        if (platform !== race.harness.test.platform) {
          const loss = new AppError("unavailable", "The job went to another worker.", { retryable: true });
          return { ...own, run: (context) => own.run(context).finally(() => lost.abort(loss)) };
        }
        lost = new AbortController();
        return { ...own, run: (context) => own.run({ ...context, signal: lost.signal }) };
      },
      check: async (begun, _ends, at) => {
        await suspend(begun);
        await expectWaiting(begun, at);
        expect((await race.harness.member.post(`${begun.path}/cancel`)).at("status")).to.equal("cancelled");
        expect(await approvalsOf(begun, "pending"), `frozen at ${at}`).to.have.lengthOf(0);
        await race.expectCharged();
      },
    });
    expect(commands).to.be.above(4);
  });

  it("goes on after the decision, also where one that was frozen says late that it waits", async () => {
    const begin = await starter([sign, race.call(race.failing(4), "steps.sign.output.comment")]);
    const { claims } = race.harness.test.platform.jobs;
    const commands = await raceWorkers<BegunRun>({
      ...{ test: race.harness.test, begin, work: otherDoes(decideAndGoOn("approved")) },
      check: async (begun, ends, at) => {
        if (ends.other === undefined) return; // it was not frozen at all
        race.expectPeace(ends, at);
        expect(outcomeOf(await race.takeTurn(begun))).to.equal("release");
        const claimed = (await claims.claim(begun.jobId, "test")) ?? expect.fail("the job cannot be claimed");
        expect(await claims.reschedule(claimed.lease, new Date(), "queued")).not.to.equal(null);
        const run = await race.harness.member.get(begun.path);
        expect(run.at("status"), `frozen at ${at}`).to.equal("running");
        const found = stepsOf(run).map(({ path, status }) => `${path} ${status}`);
        expect(found, `frozen at ${at}`).to.deep.equal(["0 completed", "1 retrying"]);
        expect(await race.goOn(begun)).to.include({ status: "completed" });
      },
    });
    expect(commands).to.be.above(4);
  });
});
