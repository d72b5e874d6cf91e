import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";
import timers from "node:timers/promises";
import { expect } from "chai";
import { makeRejections } from "../../src/jobs/reject.ts";
import { AppError, unavailable } from "../../src/lib/errors.ts";
import type { JobRecord } from "../../src/store/job-record.ts";
import { makeJob } from "../support/make-job.ts";
import { pollUntil } from "../support/poll-until.ts";

describe("the refusal of a job that the queue did not accept", () => {
  /** A store whose next answers are these; it does not answer once they are used up. */
  const open = (answers: boolean[] = [], onError?: (error: unknown) => void) => {
    const written: { record: Omit<JobRecord, "checkAt">; from: string }[] = [];
    const errors: unknown[] = [];
    let answered = 0;
    let isAway = answers.length === 0;
    const rejections = makeRejections(
      {
        async reject(record, from) {
          written.push({ record, from });
          const answer = answers.shift() ?? (isAway ? undefined : true);
          await new Promise(setImmediate); // as a store, it never answers at once
          answered += 1;
          if (answer === undefined) throw unavailable("The store");
          return answer;
        },
      },
      onError ?? ((error) => errors.push(error)),
    );
    return { rejections, written, errors, answered: () => answered, comeBack: () => (isAway = false) };
  };
  const reason = new AppError("unavailable", "The queue does not answer.");

  it("ends the record as failed, with the reason, out of its tenant's sight, and is kept for a day", async () => {
    const { rejections, written } = open([true]);
    const record = makeJob();
    expect(await rejections.reject(record, reason)).to.equal(true);
    const [write] = written;
    expect(write).to.deep.include({ from: "queued" });
    expect(write?.record).to.deep.include({ _id: record._id, status: "failed", tenantId: "" });
    expect(write?.record.error).to.include({ code: "unavailable", message: "The queue does not answer." });
    const { finishedAt, expireAt } = write?.record ?? {};
    expect(Number(expireAt) - Number(finishedAt)).to.be.within(86_400_000 - 1_000, 86_400_000);
    await rejections.close();
  });

  it("reports that a worker has the job after all", async () => {
    const { rejections } = open([false]);
    expect(await rejections.reject(makeJob(), reason)).to.equal(false);
    await rejections.close();
  });

  it("is recorded once the store answers; the caller has the error already", async () => {
    const { rejections, written, errors, comeBack } = open();
    const record = makeJob();
    expect(await rejections.reject(record, reason)).to.equal(true);
    await pollUntil(() => written.length >= 3, { what: "more attempts" });
    comeBack();
    const attempts = written.length + 1;
    await pollUntil(() => written.length === attempts, { what: "the attempt that the store answers" });
    await rejections.close();
    expect(new Set(written.map((each) => each.record._id))).to.deep.equal(new Set([record._id]));
    expect([written.length, errors]).to.deep.equal([attempts, []]);
  });

  describe("while time passes as the test says", () => {
    let waits: number[];
    let wait: (signal?: AbortSignal) => Promise<void>;
    beforeEach(() => {
      waits = [];
      let now = 0;
      mock.method(performance, "now", () => now);
      mock.method(Math, "random", () => 0);
      mock.method(timers, "setTimeout", (ms: number, _: undefined, { signal }: { signal?: AbortSignal }) => {
        waits.push(ms);
        now += ms;
        return wait(signal);
      });
      syncBuiltinESMExports();
    });
    afterEach(() => {
      mock.restoreAll();
      syncBuiltinESMExports();
    });

    it("is attempted less and less often, and given up after five minutes", async () => {
      const given = Promise.withResolvers<unknown>();
      wait = async () => {
        if (waits.length < 500) return;
        given.resolve("after no number of attempts");
        await new Promise(() => undefined);
      };
      const { rejections, written } = open([], given.resolve);
      rejections.rejectLater(makeJob(), reason);
      expect(await given.promise).to.include({ code: "unavailable" });
      expect(written).to.have.lengthOf(waits.length);
      expect(waits.slice(0, 7)).to.deep.equal([100, 200, 400, 800, 1_600, 2_000, 2_000]);
      expect(waits.reduce((sum, ms) => sum + ms)).to.be.within(300_000, 302_000);
      await rejections.close();
    });

    it("is given up at once when the process ends", async () => {
      wait = (signal) => new Promise((_, reject) => signal?.addEventListener("abort", reject));
      const { rejections, written } = open();
      rejections.rejectLater(makeJob(), reason);
      await rejections.close();
      expect([waits.length, written]).to.deep.equal([1, []]);
    });

    it("is written to its end when the process ends during that", async () => {
      wait = async () => undefined;
      const { rejections, written, answered } = open([true]);
      rejections.rejectLater(makeJob(), reason);
      while (written.length === 0) await Promise.resolve();
      await rejections.close();
      expect(answered()).to.equal(1);
    });

    it("waits with 10,000 others at most", async () => {
      const { promise: turn, resolve: goOn } = Promise.withResolvers<void>();
      wait = () => turn;
      const { rejections, written, errors } = open(Array.from({ length: 10_001 }, () => true));
      for (let n = 0; n < 10_000; n += 1) rejections.rejectLater(makeJob(), reason);
      expect(errors).to.deep.equal([]);
      rejections.rejectLater(makeJob(), reason);
      expect(errors).to.deep.equal([reason]);
      goOn();
      for (let turns = 0; turns < 10; turns += 1) await new Promise(setImmediate);
      expect(written).to.have.lengthOf(10_000);
      rejections.rejectLater(makeJob(), reason); // there is room again
      expect(errors).to.have.lengthOf(1);
      await rejections.close();
    });
  });
});
