import { expect } from "chai";
import { MongoBulkWriteError, MongoNetworkError } from "mongodb";
import { AppError } from "../../src/lib/errors.ts";
import { type Failure, judge } from "../../workers/verdict.ts";

const base: Failure = {
  error: new AppError("provider_failed", "no", { retryable: true }),
  stopped: undefined,
  failures: 1,
  attempts: 3,
  backoffMs: 1_000,
  random: () => 0,
};

describe("the verdict on a failed attempt", () => {
  it("doubles the wait with each failure, up to a minute", () => {
    const waits = [1, 2, 3, 9].map((failures) => {
      const verdict = judge({ ...base, failures, attempts: 20 });
      return verdict.outcome === "retry" ? verdict.afterMs : verdict.outcome;
    });
    expect(waits).to.deep.equal([1_000, 2_000, 4_000, 60_000]);
  });

  it("shortens the wait by up to half at random", () => {
    expect(judge({ ...base, random: () => 1 })).to.include({ outcome: "retry", afterMs: 500 });
  });

  it("waits as long as the provider asks", () => {
    const error = new AppError("provider_rate_limited", "slow down", { retryable: true, retryAfterMs: 30_000 });
    expect(judge({ ...base, error })).to.include({ outcome: "retry", afterMs: 30_000 });
  });

  it("fails at the last attempt, and at once when a retry cannot help", () => {
    expect(judge({ ...base, failures: 3 }).outcome).to.equal("fail");
    expect(judge({ ...base, error: new AppError("source_unreadable", "no") }).outcome).to.equal("fail");
  });

  it("does not count an unavailable store as a failure of the job, also at its last attempt", () => {
    for (const error of [
      new MongoNetworkError("connect ECONNREFUSED"),
      new MongoBulkWriteError(new MongoNetworkError("connect ECONNREFUSED") as never, {} as never), // as the driver wraps it
    ]) {
      expect(judge({ ...base, error, failures: 3 })).to.deep.equal({ outcome: "release", afterMs: 1_000 });
      expect(judge({ ...base, error, random: () => 1 })).to.include({ afterMs: 500 });
    }
    const duplicate = new MongoBulkWriteError({ message: "E11000", code: 11_000, writeErrors: [] }, {} as never);
    expect(judge({ ...base, error: duplicate, failures: 3 }).outcome).to.equal("fail");
  });

  it("treats an error of unknown kind as transient", () => {
    expect(judge({ ...base, error: new TypeError("?") }).outcome).to.equal("retry");
  });

  it("is a cancel where the work noticed it before the announcement arrived, as with a deleted document", () => {
    expect(judge({ ...base, error: new AppError("cancelled", "The document was deleted.") }).outcome).to.equal(
      "cancel",
    );
  });

  it("follows the reason why an attempt was stopped, whatever it threw", () => {
    const outcomes = (["cancelled", "fenced", "shutdown", "timeout"] as const).map(
      (stopped) => judge({ ...base, stopped }).outcome,
    );
    expect(outcomes).to.deep.equal(["cancel", "drop", "release", "retry"]);
    expect(judge({ ...base, stopped: "shutdown" }), "others may have it at once").to.include({ afterMs: 0 });
  });

  it("carries the error as clients see it, also when the attempt took too long", () => {
    const view = { type: "upstream_error", code: "provider_failed", message: "no" };
    expect(judge(base)).to.have.property("error").that.includes(view);
    expect(judge({ ...base, failures: 3 }))
      .to.have.property("error")
      .that.includes(view);
    expect(judge({ ...base, stopped: "timeout" }))
      .to.have.property("error")
      .that.includes({ code: "timeout" });
  });
});
