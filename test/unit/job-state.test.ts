import { expect } from "chai";
import { fairPriority } from "../../src/jobs/fair-priority.ts";
import { isFinal, jobStates, jobTransitions, openStates, statesBefore } from "../../src/store/job-state.ts";

describe("the states of a job", () => {
  it("has three final states, and a way from every other to each of them", () => {
    expect(jobStates.filter(isFinal)).to.deep.equal(["completed", "failed", "cancelled"]);
    expect(openStates).to.deep.equal(["queued", "running", "awaiting"]);
    for (const state of jobStates) {
      if (!isFinal(state)) expect(jobTransitions[state], state).to.include("failed");
    }
  });

  it("cannot leave a final state", () => {
    for (const to of jobStates)
      for (const final of jobStates.filter(isFinal)) expect(statesBefore(to)).to.not.include(final);
  });
});

describe("fair priorities", () => {
  it("puts a tenant's first job before another's hundredth", () => {
    const bulk = fairPriority({ backlog: 100, isInteractive: false });
    expect(fairPriority({ backlog: 0, isInteractive: false })).to.be.lessThan(bulk);
  });

  it("puts interactive jobs before all bulk, and stays within BullMQ's range", () => {
    expect(fairPriority({ backlog: 1e9, isInteractive: true })).to.be.lessThan(
      fairPriority({ backlog: 0, isInteractive: false }),
    );
    expect(fairPriority({ backlog: 1e9, isInteractive: false })).to.be.lessThan(2 ** 21);
    expect(fairPriority({ backlog: 0, isInteractive: true })).to.be.greaterThan(0); // 0 would be no priority: before all
  });
});
