import { randomUUID } from "node:crypto";
import type { UpdateFilter } from "mongodb";
import type { GuardCount } from "../guards/rules.ts";
import type { ErrorView } from "../lib/errors.ts";
import type { JobProgress, JobRecord } from "../store/job-record.ts";
import type { HeldJob, JobStore } from "../store/job-store.ts";

/** How long a record is kept after its job has ended, in ms: 30 days. */
export const KEEP_ENDED_MS = 30 * 86_400_000;

/** Age in ms after which reconcile looks for a queued job in BullMQ. */
export const CHECK_QUEUED_AFTER_MS = 10_000;

/** Age in ms after which reconcile looks for a resumed job in BullMQ. */
const CHECK_RESUMED_AFTER_MS = 2_000;

/** Takes back what the claim counted, for a run that does not count as an attempt. */
const noAttempt = { attempts: -1 } as const;

/** The fields that a job's record gets when the job ends. */
export function endedNow() {
  const now = new Date();
  return { finishedAt: now, updatedAt: now, expireAt: new Date(now.getTime() + KEEP_ENDED_MS) };
}

/** Ways in which a run may end early. Its job counts as completed. */
const earlyEnds: readonly unknown[] = ["stopped", "rejected", "expired"];

/** How a run ended early, read from its job's result; undefined if it did not end early. */
export function earlyEndOf(result: unknown): string | undefined {
  const { status } = Object(result);
  return earlyEnds.includes(status) ? status : undefined;
}

/** The progress of a job that has completed. One whose run ended early says how, and how far it came. */
function endOf(progress: JobProgress, result: unknown): JobProgress {
  const stage = earlyEndOf(result);
  return stage === undefined ? { ...progress, stage: "completed", done: progress.total } : { ...progress, stage };
}

/** `found`: what guards have found in the job so far, which each change of its state writes down. */
export type Lease = { jobId: string; token: string; found?: GuardCount[] };
const running = (lease: Lease) => ({ jobId: lease.jobId, from: ["running"] as const, leaseToken: lease.token });
const guardOf = ({ found = [] }: Lease) => (found.length > 0 ? { guard: found } : {});
const openJobs = ["queued", "running", "awaiting"] as const;
type JobPlace = Pick<JobRecord, "_id" | "tenantId">;
export type EndedJob = JobPlace & Pick<JobRecord, "unsettledSince">;
type Change = Pick<UpdateFilter<JobRecord>, "$set" | "$unset">;
export type Claims = ReturnType<typeof makeClaims>;

/**
 * The compare-and-sets that decide who runs a job and what becomes of it. `leaseMs`: silence after which it is lost;
 * `notify`: called with a job that has changed for those who follow it; `ended`: with one that has ended. Only the holder of
 * the lease may change a job that runs: all changes resolve with what it does not know of the record, or null when another
 * holds it or the job has ended. Each change of the state is an event of its own.
 */
export function makeClaims(
  store: JobStore,
  leaseMs: number,
  notify: (job: JobPlace) => void = () => undefined,
  ended: (job: EndedJob) => void = () => undefined,
) {
  const leaseEnd = () => new Date(Date.now() + leaseMs);
  const announced = async <J extends HeldJob>(change: Promise<J | null>) => {
    const job = await change;
    if (job !== null) notify(job);
    return job;
  };
  const end = async (lease: Lease, fields: Pick<JobRecord, "status"> & Partial<JobRecord>) => {
    const change = {
      $set: { ...fields, ...guardOf(lease), ...endedNow() },
      $unset: { lease: "" as const, checkAt: "" as const, ...(fields.error ? {} : { error: "" as const }) },
      $inc: { lastEventId: 1 },
    };
    const job = await announced(store.changeHeld(running(lease), change));
    if (job) ended(job);
    return job;
  };
  const giveBack = (lease: Lease, { $set, $unset }: Change, counter: { attempts: -1 } | { failures: 1 }) =>
    store.changeHeld(running(lease), {
      $set: { ...$set, ...guardOf(lease), updatedAt: new Date() },
      $inc: { ...counter, lastEventId: 1 },
      $unset: { ...$unset, lease: "" },
    });
  return {
    /** Claims a job that waits, or whose holder has gone silent. Returns null if the job cannot be claimed. */
    async claim(jobId: string, workerId: string): Promise<{ record: JobRecord; lease: Lease } | null> {
      const [now, token, expiresAt] = [new Date(), randomUUID(), leaseEnd()];
      const record = await store.take(jobId, now, {
        $set: { status: "running", lease: { workerId, token, expiresAt }, updatedAt: now, checkAt: expiresAt },
        $min: { startedAt: now },
        $inc: { attempts: 1, lastEventId: 1 },
        $unset: { notBefore: "" },
      });
      return record && { record, lease: { jobId, token, found: [...(record.guard ?? [])] } };
    },
    /** Notifies followers of a running job. A claim notifies nobody, since most jobs end before a follower could read it. */
    announce: notify,
    heartbeat(lease: Lease) {
      const expiresAt = leaseEnd();
      return store.changeHeld(running(lease), { $set: { "lease.expiresAt": expiresAt, checkAt: expiresAt } });
    },
    progress: (lease: Lease, progress: JobProgress) =>
      announced(
        store.changeHeld(running(lease), { $set: { progress, updatedAt: new Date() }, $inc: { lastEventId: 1 } }),
      ),
    /** Adds a step for those who follow the job; `data` is small and holds no contents. */
    step: (lease: Lease, data: Record<string, unknown>, about?: Parameters<JobStore["addStep"]>[2]) =>
      announced(store.addStep(running(lease), data, about)),
    complete: (lease: Lease, result: unknown, progress: JobProgress) =>
      end(lease, { status: "completed", result, progress: endOf(progress, result) }),
    fail: (lease: Lease, error: ErrorView) => end(lease, { status: "failed", error }),
    cancelled: (lease: Lease) => end(lease, { status: "cancelled" }),
    /** Returns the job to its queue after a failed attempt. It does not run again before `notBefore`. */
    retry(lease: Lease, notBefore: Date, error: ErrorView) {
      const checkAt = new Date(notBefore.getTime() + CHECK_QUEUED_AFTER_MS);
      const $set = { status: "queued" as const, notBefore, error, checkAt };
      return announced(giveBack(lease, { $set }, { failures: 1 }));
    },
    /** Returns the job to its queue, to run again from `notBefore` on. The run does not count as an attempt. */
    reschedule(lease: Lease, notBefore: Date, status: "queued" | "awaiting") {
      const checkAt = new Date(notBefore.getTime() + CHECK_QUEUED_AFTER_MS);
      return giveBack(lease, { $set: { status, notBefore, checkAt } }, noAttempt);
    },
    /** Suspends the job until it is resumed. The run does not count as an attempt. */
    suspend: (lease: Lease) =>
      announced(giveBack(lease, { $set: { status: "awaiting" }, $unset: { checkAt: "" } }, noAttempt)),
    /** Queues a suspended job again. Returns null if it is not suspended. */
    resume(jobId: string) {
      const checkAt = new Date(Date.now() + CHECK_RESUMED_AFTER_MS);
      const $set = { status: "queued" as const, updatedAt: new Date(), checkAt };
      const change = { $set, $inc: { lastEventId: 1 }, $unset: { notBefore: "" as const } };
      return announced(store.change({ jobId, from: ["awaiting"] }, change));
    },
    /** Notes that a former holder is still alive, so that the job did not crash its process. */
    overtaken: ({ _id: jobId, updatedAt: unforgivenSince }: Pick<JobRecord, "_id" | "updatedAt">) =>
      store.change({ jobId, from: openJobs, unforgivenSince }, { $inc: { overtaken: 1 } }),
    /** Takes back attempts that were lost with their workers: the job has come further since, so it was not the cause. */
    forgive: (lease: Lease, lost: number) =>
      store.changeHeld(running(lease), { $inc: { attempts: -lost }, $set: { forgivenAt: new Date() } }),
    /** Returns the job to its queue without counting the attempt, as at shutdown. */
    release: (lease: Lease) => giveBack(lease, { $set: { status: "queued", checkAt: new Date() } }, noAttempt),
  };
}
