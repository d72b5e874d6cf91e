import { AsyncLocalStorage } from "node:async_hooks";
import { expect } from "chai";
import { Rescheduled } from "../../src/jobs/reschedule.ts";
import { type FakeBatches, startFakeBatches } from "../support/fake-provider/batch-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { workContext } from "../support/work-context.ts";

/** Whether a worker freezes before its `next` call of the store, when it has made those others `since` it last froze. */
type Stop = (next: string, since: readonly string[]) => boolean;
type Stage = { reached: PromiseWithResolvers<void>; go: PromiseWithResolvers<void> };

const tomorrow = () => new Date(Date.now() + 86_400_000);

/** No worker of the queue runs: the test runs the work of a batch by hand, twice at once, and freezes it between two calls. */
describe("a batch that two workers run at once", () => {
  const freezing = new AsyncLocalStorage<(call: string) => Promise<void>>();
  let upstream: FakeBatches;
  let test: TestPlatform;
  let member: ApiClient;
  before(async () => {
    upstream = await startFakeBatches();
    upstream.setDuration(0);
    const env = {
      OPENAI_API_KEY: "sk-platform-0123456789abcdef",
      OPENAI_BASE_URL: upstream.url,
      BATCH_COLLECT_MS: "60000", // no timer closes a batch: the worker that runs it does
    };
    test = await startPlatform({ workers: false, env });
    member = makeClient({ url: test.url, key: test.keys.member });
    const { batches } = test.platform.store;
    const frozen = Object.entries<(...given: never[]) => unknown>(batches).map(([name, call]) => [
      name,
      async (...given: never[]) => {
        await freezing.getStore()?.(name);
        return call(...given);
      },
    ]);
    Object.assign(batches, Object.fromEntries(frozen));
  });
  after(async () => {
    await test.close();
    await upstream.close();
  });

  /** A worker that runs a batch once, and freezes at each of these stops, in turn. */
  const startWorker = (batchId: string, stops: readonly Stop[] = []) => {
    const stages = stops.map((): Stage => ({ reached: Promise.withResolvers(), go: Promise.withResolvers() }));
    let at = 0;
    let since: string[] = [];
    const freeze = async (next: string) => {
      while (stops[at]?.(next, since)) {
        const stage = stages[at];
        at += 1;
        since = [];
        stage?.reached.resolve();
        await stage?.go.promise;
      }
      since.push(next);
    };
    const { work } = test.platform.batches.chats;
    const context = workContext(test, { tenantId: "", recordId: batchId, jobId: "" });
    const ended = freezing
      .run(freeze, () => work.run(context))
      .catch((error: unknown) => {
        if (!(error instanceof Rescheduled)) throw error;
      });
    return {
      ended,
      /** It is frozen for the nth time, or has ended. */
      frozen: (nth: number) => Promise.race([stages[nth]?.reached.promise, ended]),
      goOn: (nth: number) => stages[nth]?.go.resolve(),
      isFrozen: (nth: number) => at > nth,
    };
  };
  const ask = async () => {
    const messages = [{ role: "user", content: "What is a lease?" }];
    const accepted = await member.post("/ai/chat", { model: "gpt-5.4-nano", prefer_async: true, messages });
    expect(accepted.status).to.equal(202);
    return accepted.string("jobId");
  };
  const open = () => test.platform.store.batches.overdue(["collecting", "closed", "submitted"], tomorrow(), 10);
  const runAllBut = async (batchId: string) => {
    for (const { _id } of await open()) if (_id !== batchId) await startWorker(_id).ended;
  };
  /** A batch whose only item was cancelled before a worker took it. */
  const emptyBatch = async () => {
    const jobId = await ask();
    expect((await member.post(`/jobs/${jobId}/cancel`)).status).to.equal(200);
    const [batch] = await open();
    return batch?._id ?? expect.fail("there is no batch");
  };

  /**
   * One worker finds no items in a batch; the other one finds the item that came since. The first goes on for this many calls of
   * the store, then the second submits what it has, then the first goes on to its end, then the second; any other batch is run
   * in between. False: the first had ended by then.
   */
  const race = async (calls: number): Promise<boolean> => {
    const batchId = await emptyBatch();
    const first = startWorker(batchId, [
      (_next, since) => since.filter((call) => call === "items").length === 2, // for cancelled ones, and for those left
      (_next, since) => since.length === calls,
    ]);
    await first.frozen(0);
    const jobId = await ask();
    const second = startWorker(batchId, [(next) => next === "markSubmitting", (next) => next === "changeBatch"]);
    await second.frozen(0);
    expect(second.isFrozen(0), "that the second worker has the item").to.equal(true);
    first.goOn(0);
    await first.frozen(1);
    const isFrozen = first.isFrozen(1);
    await runAllBut(batchId);
    second.goOn(0);
    await second.frozen(1);
    first.goOn(1);
    await first.ended;
    await runAllBut(batchId);
    second.goOn(1);
    await second.ended;
    await pollUntil(
      async () => {
        await runAllBut("");
        return (await member.get(`/jobs/${jobId}`)).at("status") === "completed";
      },
      { what: "the answer" },
    );
    expect(upstream.submitted.get(jobId), `submitted, with ${calls} calls of the store`).to.equal(1);
    return isFrozen;
  };

  it("submits an item once, wherever the one that found none is frozen", async () => {
    let calls = 0;
    while (await race(calls)) calls += 1;
    expect(calls, "its calls of the store from then on").to.be.at.least(3);
  });
});
