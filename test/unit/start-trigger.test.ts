import { expect } from "chai";
import { MongoNetworkError } from "mongodb";
import { startTrigger } from "../../src/automation/start-trigger.ts";
import { newId } from "../../src/lib/ids.ts";
import type { FiringRecord } from "../../src/store/firing-store.ts";

describe("startTrigger", () => {
  it("keeps of one that it has started no failure, when the store does not answer at its last attempt", async () => {
    const kept: string[] = [];
    let starts = 0;
    let isAway = true;
    const firings = {
      get: async () => null,
      async ensure(firing: FiringRecord) {
        if (isAway) {
          isAway = false;
          throw new MongoNetworkError("the answer is lost");
        }
        kept.push(firing.status);
        return firing;
      },
    };
    const deps = {
      store: { firings, triggers: {} },
      starter: {
        async start() {
          starts += 1;
          return {};
        },
      },
      tenancy: { isUsableKey: async () => true },
      evaluator: {},
    };
    const tenantId = newId("tenant");
    const maker = { keyId: newId("apiKey"), subject: "ana", role: "owner" };
    const target = JSON.stringify({ workflowId: newId("workflow") });
    const trigger = { _id: newId("trigger"), tenantId, version: 1, target, maker };
    const event = { _id: newId("event"), tenantId, name: "posted", createdAt: new Date() };
    const given = { trigger, event, data: null, isLastAttempt: true, signal: new AbortController().signal };
    const start = () => startTrigger(deps as never, given as never);
    const failure = await start().then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(failure).to.be.instanceOf(MongoNetworkError);
    expect(kept).to.deep.equal([]);
    expect([await start(), kept, starts]).to.deep.equal([true, ["started"], 2]); // the start is once for its job
  });
});
