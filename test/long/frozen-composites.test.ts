import { expect } from "chai";
import type { CompositeResult } from "../../src/composite/schemas.ts";
import type { Platform } from "../../src/platform.ts";
import type { ExecutionStep } from "../../src/store/execution-store.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { outcomeOf, raceWorkers } from "../support/race-workers.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const later = { headers: { prefer: "respond-async" } };
/** Two models one after the other; and three in parallel, in two rounds, and a judge. */
const patterns = [
  { pattern: "critique", models: ["gpt-5.4-mini", "gpt-5.4-nano"], calls: 3 },
  { pattern: "debate", models: ["gpt-5.4-mini", "gpt-5.4-nano", "gpt-5.4"], calls: 7 },
];
/** Where the other worker is frozen too; undefined: nowhere. */
const others: [string, ((nth: number) => number) | undefined][] = [
  ["wherever one of them is frozen", undefined],
  ["when each of them is frozen in turn", (nth) => nth],
  ["when the other is frozen at its begin while the first goes on", () => 2],
];

/** No worker of the queue runs: the test runs the work of an execution by hand, twice at once. */
describe("a composite execution that two workers run at once", () => {
  let upstream: ScriptedUpstream;
  let test: TestPlatform;
  let owner: ApiClient;
  let tenantId: string;
  /** Answers of the upstream. */
  let given = 0;
  /** The executions of all rounds. */
  let executions = 0;
  const platforms = new Set<Platform>();
  before(async () => {
    upstream = await startScriptedUpstream();
    const env = { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: upstream.url, PROVIDER_MAX_ATTEMPTS: "1" };
    test = await startPlatform({ workers: false, env });
    owner = makeClient({ url: test.url, key: test.keys.owner });
    tenantId = await tenantOf(test);
    // Each answer has a number, and names the answers that it was given: no two are the same, and no vote decides.
    upstream.play(({ user }) => {
      given += 1;
      const read = [...user.matchAll(/Number (\d+),/g)].map(([, number]) => number);
      return `Number ${given}, there is much to say for either of the two, says who has read (${read.join(" ")}).`;
    });
  });
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const numberOf = (output = "") => /^Number (\d+),/.exec(output)?.[1] ?? "none";
  const readBy = (output = "") => /\(([\d ]+)\)/.exec(output)?.[1]?.split(" ") ?? [];

  /** The record has each call once, what was said after an answer is about a recorded one, and the result is of them. */
  const expectWhole = async (executionId: string, calls: number, where: string) => {
    const trace = await owner.get(`/composite/executions/${executionId}`);
    const steps = trace.at("steps") as ExecutionStep[]; // the client has checked the schema
    const result = trace.at("result") as CompositeResult;
    expect(trace.at("error"), where).to.equal(undefined);
    expect(new Set(steps.map(({ step }) => step)).size, where).to.equal(calls);
    expect(steps, where).to.have.lengthOf(calls);
    const recorded = steps.map(({ output }) => numberOf(output));
    for (const { step, output } of steps) expect(recorded, `${step}, ${where}`).to.include.members(readBy(output));
    expect(recorded, where).to.include(numberOf(result.output));
    const { stepsExecuted, tokensUsed, costUsd } = result;
    expect({ stepsExecuted, tokensUsed }, where).to.deep.equal({ stepsExecuted: calls, tokensUsed: 15 * calls });
    expect(costUsd, where).to.be.closeTo(
      steps.reduce((sum, step) => sum + step.costUsd, 0),
      1e-9,
    );
    return result;
  };
  /** The ledger has each answer of the upstream once, and each execution counts once. */
  const expectCharged = async (where: string) => {
    for (const { gateway } of platforms) await gateway.flush();
    const usage = await owner.get("/usage");
    const total = { requests: given, errors: 0, inputTokens: 10 * given, outputTokens: 5 * given };
    expect(usage.at("total"), where).to.include(total);
    expect(usage.at("quotas.runs.used"), where).to.equal(executions);
  };

  for (const { pattern, models, calls } of patterns) {
    for (const [when, otherAt] of others) {
      it(`has one record and one result, ${when}: ${pattern}`, async () => {
        const commands = await raceWorkers({
          test,
          ...(otherAt ? { otherAt } : {}),
          begin: async () => {
            executions += 1;
            const body = { pattern, profile: "coding", input: "Redis or Memcached?", models };
            const accepted = await owner.post("/composite/execute", body, later);
            expect(accepted.status, accepted.text).to.equal(202);
            const ids = { recordId: accepted.string("executionId"), jobId: accepted.string("jobId") };
            return { tenantId, ...ids, isLastAttempt: true };
          },
          work: (platform) => {
            platforms.add(platform);
            return platform.composite.work;
          },
          check: async ({ recordId }, ends, at) => {
            const where = `frozen at ${at}, the other at ${otherAt?.(at) ?? "none"}`;
            const result = await expectWhole(recordId, calls, where);
            // The one that holds the job reports what is on the record, or gives the job back unharmed.
            for (const end of Object.values(ends)) {
              if (end instanceof Error) expect(outcomeOf(end), where).to.equal("release");
              else if (end !== undefined) expect(end, where).to.deep.equal(result);
            }
            expect(ends.last ?? ends.other ?? ends.frozen, where).to.deep.equal(result);
            await expectCharged(where);
          },
        });
        expect(commands).to.be.at.least(calls);
      });
    }
  }
});
