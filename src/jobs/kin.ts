import { defined } from "../lib/defined.ts";
import { isFinal } from "../store/job-state.ts";
import type { JobStore } from "../store/job-store.ts";
import { sweepEach } from "./sweep-each.ts";
import type { Waits } from "./waits.ts";
import { unlessOver } from "./work.ts";

/** Jobs that one read finds, of a sweep or among the children of one job. */
const READ_AT_ONCE = 200;
/** How long an end may stay without effect on others until a sweep repeats it, in ms. */
const SETTLE_AGAIN_AFTER_MS = 5_000;

type Place = { _id: string; tenantId: string };

type KinDeps = {
  store: Pick<JobStore, "find" | "kin">;
  wake: Waits["wake"];
  /** Cancels a job, and closes its record. Throws when it has ended. */
  cancel(place: { tenantId: string; jobId: string }): Promise<unknown>;
};

/**
 * What the end of a job means for the jobs around it: its parent, which is suspended until then, goes on; children that are
 * still open are cancelled, and theirs with them. What dies in between is made good by the sweep.
 */
export function makeKin({ store, wake, cancel }: KinDeps) {
  const cancelChildren = async (job: Place) => {
    for (let after = ""; ; ) {
      const ids = await store.kin.openChildren(job, { after, limit: READ_AT_ONCE });
      await sweepEach(ids, (jobId) => unlessOver(cancel({ tenantId: job.tenantId, jobId })));
      after = ids.at(-1) ?? "";
      if (ids.length < READ_AT_ONCE) return;
    }
  };
  /** Safe to repeat. */
  const settle = async (place: Place): Promise<void> => {
    const job = await store.find(place.tenantId, place._id);
    if (!job?.unsettledSince || !isFinal(job.status)) return;
    await cancelChildren(job);
    const { tenantId, parentJobId, seenLease } = job;
    const parent = parentJobId === undefined ? undefined : { tenantId, jobId: parentJobId };
    const woken = parent === undefined ? true : await wake({ ...parent, ...defined({ seenLease }) });
    await (woken === true ? store.kin.settle(job) : store.kin.putOff(job, woken.lease));
  };
  return {
    settle,
    /** Any number of processes may run it. */
    sweep: async (): Promise<void> =>
      sweepEach(await store.kin.unsettled(new Date(Date.now() - SETTLE_AGAIN_AFTER_MS), READ_AT_ONCE), settle),
  };
}
