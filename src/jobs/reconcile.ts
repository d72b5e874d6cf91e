import { defined } from "../lib/defined.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { JobStore } from "../store/job-store.ts";
import { CHECK_QUEUED_AFTER_MS } from "./claim.ts";
import type { QueueClient } from "./queue-client.ts";

/** Records that are looked at together. */
const BATCH = 500;
/** Batches of records in one run: usually the smaller number, and up to the larger one while lost jobs are found. */
const USUAL_BATCHES = 4;
const MAX_BATCHES = 100;

export type Reconciled = {
  /** Jobs whose BullMQ job was gone and was made again. */
  requeued: number;
  /** Jobs that were taken back from a holder that has gone silent. */
  expired: number;
};

type ReconcileDeps = {
  store: Pick<JobStore, "findDue" | "change" | "rescheduleCheck">;
  queues: Pick<QueueClient, "findLive" | "remove" | "add">;
};

/**
 * Brings the queues back in line with the records: a job that waits and whose BullMQ job has vanished (a crash between the
 * two writes, Redis lost) is enqueued again; a job whose lease has ended goes back to waiting. Safe to run anywhere, any
 * time, at once: each step is a compare-and-set, and a BullMQ job that is there is not made twice.
 */
export async function reconcileJobs(deps: ReconcileDeps): Promise<Reconciled> {
  const total: Reconciled = { requeued: 0, expired: 0 };
  for (let batch = 1; batch <= MAX_BATCHES; batch += 1) {
    const due = await deps.store.findDue(new Date(), BATCH);
    const byQueue = Map.groupBy(due, (record) => record.queue);
    for (const [queue, records] of byQueue) await reconcileQueue(deps, { queue, records, total });
    if (due.length < BATCH || (batch >= USUAL_BATCHES && total.requeued === 0)) break;
  }
  return total;
}

async function reconcileQueue(
  { store, queues }: ReconcileDeps,
  { queue, records, total }: { queue: string; records: readonly JobRecord[]; total: Reconciled },
): Promise<void> {
  const jobIds = records.map(({ _id }) => _id);
  const live = await queues.findLive(queue, jobIds);
  for (const record of records) {
    // A BullMQ job that still exists runs again by itself, when it is due or through BullMQ's own check for stalled jobs.
    if (live.has(record._id)) continue;
    if (record.lease) {
      if (!(await takeBack(store, record._id, record.lease.token))) continue;
      total.expired += 1;
    }
    await requeueJob(queues, record);
    total.requeued += 1;
  }
  await store.rescheduleCheck(jobIds, new Date(Date.now() + CHECK_QUEUED_AFTER_MS));
}

async function takeBack(store: ReconcileDeps["store"], jobId: string, leaseToken: string): Promise<boolean> {
  const guard = { jobId, from: ["running"] as const, leaseToken };
  const taken = await store.change(guard, { $set: { status: "queued", updatedAt: new Date() }, $unset: { lease: "" } });
  return taken !== null;
}

/** Creates a record's BullMQ job again. @throws AppError `unavailable` if Redis does not accept it. */
export async function requeueJob(queues: Pick<QueueClient, "remove" | "add">, record: JobRecord): Promise<void> {
  const { _id: jobId, queue, payload, priority, notBefore } = record;
  await queues.remove(queue, jobId); // an ended BullMQ job of the same id would hide the new one
  await queues.add(queue, { jobId, payload, priority, ...defined({ notBefore }) });
}
