import { expect } from "chai";
import { raceWorkers } from "../support/race-workers.ts";
import { condition, stepsOf } from "../support/workflow-harness.ts";
import { type BegunRun, openWorkflowRace, type WorkflowRace } from "../support/workflow-race.ts";

describe("a run of a workflow that two workers run at once", () => {
  let race: WorkflowRace;
  before(async () => {
    race = await openWorkflowRace();
  });
  after(() => race?.harness.close());

  const bytesOfRuns = async () => Number((await race.harness.owner.get("/usage")).at("quotas.runBytes.used"));
  const expectSameIds = (begun: BegunRun) => {
    const ids = race.deliveriesOf(begun).flatMap(({ headers }) => [headers["webhook-id"], headers["idempotency-key"]]);
    expect([...new Set(ids)]).to.deep.equal([`${begun.recordId}:1/then/0`]);
  };

  it("records each step once, wherever one is frozen", async () => {
    const begin = await race.starter([
      race.ask("draft", "Draft {{ input.word }}"),
      condition(
        "steps.draft.status == 'completed'",
        [race.call("/effect", "steps.draft.output")],
        [race.ask("none", "None")],
      ),
      race.ask("final", "Review {{ steps.draft.output }}"),
    ]);
    let kept = await bytesOfRuns();
    const commands = await raceWorkers<BegunRun>({
      ...{ test: race.harness.test, begin, work: race.work },
      check: async (begun, ends, at) => {
        const run = await race.harness.member.get(begun.path);
        expect(run.at("status"), `frozen at ${at}`).to.equal("completed");
        race.expectOnce(run, ["0", "1", "1/then/0", "2"], at);
        const [draft, , , final] = stepsOf(run);
        expect(final?.output).to.match(/^Review .*, answer \d+-+$/);
        expect(final?.output).to.contain(draft?.output);
        expect(run.at("output")).to.equal(final?.output);
        for (const { body } of race.deliveriesOf(begun))
          expect(JSON.parse(body).said).to.match(/^Draft word \d+, answer/);
        expectSameIds(begun);
        race.expectPeace(ends, at);
        await race.expectCharged();
        const record = await race.harness.test.platform.store.workflowRuns.get(race.tenantId, begun.recordId);
        kept += record?.bytes ?? 0;
        expect(await bytesOfRuns(), `frozen at ${at}`).to.equal(kept);
      },
    });
    expect(commands).to.be.above(8);
  });

  it("tries a step again, whichever worker notes that, with the same id for its receiver", async () => {
    const begin = await race.starter([
      race.ask("draft", "Draft {{ input.word }}"),
      condition("true", [race.call(race.failing(2), "steps.draft.output")]),
    ]);
    const commands = await raceWorkers<BegunRun>({
      ...{ test: race.harness.test, begin, work: race.work },
      check: async (begun, ends, at) => {
        race.expectPeace(ends, at);
        expect(await race.goOn(begun)).to.include({ runId: begun.recordId, status: "completed" });
        const run = await race.harness.member.get(begun.path);
        const found = stepsOf(run).map(({ path, status }) => `${path} ${status}`);
        expect(found, `frozen at ${at}`).to.deep.equal(["0 completed", "1 completed", "1/then/0 completed"]);
        const [attempts, sent] = [stepsOf(run)[2]?.attempts, race.deliveriesOf(begun).length];
        expect(attempts, `frozen at ${at}`).to.be.within(2, sent);
        expectSameIds(begun);
        await race.expectCharged();
      },
    });
    expect(commands).to.be.above(4);
  });
});
