import { randomUUID } from "node:crypto";
import type { ErrorView } from "../errors.ts";
import type { JobProgress, JobRecord } from "../store/job-record.ts";
import type { JobStore } from "../store/job-store.ts";

/** How long a record is kept after its job has ended, in ms: 30 days. */
export const KEEP_ENDED_MS = 30 * 86_400_000;

/** A queued job that reconcile finds this old is looked for in BullMQ, in ms. */
export const CHECK_QUEUED_AFTER_MS = 10_000;

/** A resumed job that reconcile finds this old is looked for in BullMQ, in ms. */
const CHECK_RESUMED_AFTER_MS = 2_000;

export type Lease = { jobId: string; token: string };
/** A change that only the holder of the lease may make: its record, or null when another holds it or the job has ended. */
type Fenced = Promise<JobRecord | null>;

export type Claims = {
  /** Takes a job that waits, or whose holder has gone silent. Null: it is not there to be taken. */
  claim(jobId: string, workerId: string): Promise<{ record: JobRecord; lease: Lease } | null>;
  heartbeat(lease: Lease): Fenced;
  progress(lease: Lease, progress: JobProgress): Fenced;
  /** Adds a step for those who follow the job; `data` is small and holds no contents. */
  step(lease: Lease, data: Record<string, unknown>): Fenced;
  complete(lease: Lease, result: unknown, progress: JobProgress): Fenced;
  fail(lease: Lease, error: ErrorView): Fenced;
  cancelled(lease: Lease): Fenced;
  /** Gives the job back after a failed try, to be tried again not before `notBefore`. */
  retry(lease: Lease, notBefore: Date, error: ErrorView): Fenced;
  /** Gives the job back to be run again from `notBefore` on; the run is no attempt. */
  postpone(lease: Lease, notBefore: Date): Fenced;
  /** Gives the job back until somebody resumes it; the run is no attempt. */
  suspend(lease: Lease): Fenced;
  /** Makes a suspended job one that waits for a worker; null when it is not suspended. */
  resume(jobId: string): Fenced;
  /** Notes that a holder was alive although another one took its job: the job did not end its process. */
  overtaken(jobId: string): Fenced;
  /** Gives the job back unharmed, as at shutdown. */
  release(lease: Lease): Fenced;
};

/** The compare-and-sets that decide who runs a job and what becomes of it. `leaseMs`: silence after which it is lost. */
export function makeClaims(store: JobStore, leaseMs: number): Claims {
  const running = (lease: Lease) => ({ jobId: lease.jobId, from: ["running"] as const, leaseToken: lease.token });
  const leaseEnd = () => new Date(Date.now() + leaseMs);
  const end = (lease: Lease, fields: Pick<JobRecord, "status"> & Partial<JobRecord>) => {
    const now = new Date();
    return store.change(running(lease), {
      $set: { ...fields, finishedAt: now, updatedAt: now, expireAt: new Date(now.getTime() + KEEP_ENDED_MS) },
      $unset: { lease: "", checkAt: "", notBefore: "", ...(fields.error ? {} : { error: "" }) },
      $inc: { lastEventId: 1 },
    });
  };
  const giveBack = (lease: Lease, { $set, $unset }: Pick<Parameters<JobStore["change"]>[1], "$set" | "$unset">) =>
    store.change(running(lease), {
      $set: { ...$set, updatedAt: new Date() },
      $inc: { attempts: -1 },
      $unset: { ...$unset, lease: "" },
    });
  return {
    async claim(jobId, workerId) {
      const now = new Date();
      const [token, expiresAt] = [randomUUID(), leaseEnd()];
      const record = await store.take(jobId, now, {
        $set: { status: "running", lease: { workerId, token, expiresAt }, updatedAt: now, checkAt: expiresAt },
        $min: { startedAt: now },
        $inc: { attempts: 1 },
        $unset: { notBefore: "" },
      });
      return record && { record, lease: { jobId, token } };
    },
    heartbeat(lease) {
      const expiresAt = leaseEnd();
      return store.change(running(lease), { $set: { "lease.expiresAt": expiresAt, checkAt: expiresAt } });
    },
    progress: (lease, progress) =>
      store.change(running(lease), { $set: { progress, updatedAt: new Date() }, $inc: { lastEventId: 1 } }),
    step: (lease, data) => store.addStep(running(lease), data),
    complete: (lease, result, progress) =>
      end(lease, { status: "completed", result, progress: { ...progress, stage: "completed", done: progress.total } }),
    fail: (lease, error) => end(lease, { status: "failed", error }),
    cancelled: (lease) => end(lease, { status: "cancelled" }),
    retry: (lease, notBefore, error) =>
      store.change(running(lease), {
        $set: {
          status: "queued",
          notBefore,
          error,
          updatedAt: new Date(),
          checkAt: new Date(notBefore.getTime() + CHECK_QUEUED_AFTER_MS),
        },
        $inc: { failures: 1 },
        $unset: { lease: "" },
      }),
    postpone: (lease, notBefore) => {
      const checkAt = new Date(notBefore.getTime() + CHECK_QUEUED_AFTER_MS);
      return giveBack(lease, { $set: { status: "awaiting", notBefore, checkAt } });
    },
    suspend: (lease) => giveBack(lease, { $set: { status: "awaiting" }, $unset: { checkAt: "", notBefore: "" } }),
    resume: (jobId) =>
      store.change(
        { jobId, from: ["awaiting"] },
        {
          $set: { status: "queued", updatedAt: new Date(), checkAt: new Date(Date.now() + CHECK_RESUMED_AFTER_MS) },
          $unset: { notBefore: "" },
        },
      ),
    overtaken: (jobId) => store.change({ jobId, from: ["queued", "running", "awaiting"] }, { $inc: { overtaken: 1 } }),
    release: (lease) => giveBack(lease, { $set: { status: "queued", checkAt: new Date() } }),
  };
}
