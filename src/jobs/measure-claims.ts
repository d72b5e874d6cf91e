import type { JobMetrics, TryOutcome } from "../observe/metrics/job-metrics.ts";
import type { HeldJob } from "../store/job-store.ts";
import type { Claims, Lease } from "./claim.ts";

/** Counts how long jobs wait and run and what becomes of them, where it is decided: at the changes of their records. */
export function measureClaims(claims: Claims, metrics: JobMetrics): Claims {
  const begun = new WeakMap<Lease, { queue: string; at: number }>();
  const ending =
    <A extends unknown[]>(outcome: TryOutcome, change: (lease: Lease, ...args: A) => Promise<HeldJob | null>) =>
    async (lease: Lease, ...args: A) => {
      const record = await change(lease, ...args);
      const start = begun.get(lease);
      begun.delete(lease);
      if (start) {
        const seconds = (performance.now() - start.at) / 1_000;
        metrics.ended({ queue: start.queue, outcome: record === null ? "lost" : outcome, seconds });
      }
      return record;
    };
  return {
    ...claims,
    async claim(jobId, workerId) {
      const claimed = await claims.claim(jobId, workerId);
      if (claimed === null) return null;
      const { record, lease } = claimed;
      begun.set(lease, { queue: record.queue, at: performance.now() });
      const isFirst = record.startedAt?.getTime() === record.updatedAt.getTime();
      if (isFirst) metrics.began(record.queue, (record.updatedAt.getTime() - record.createdAt.getTime()) / 1_000);
      return claimed;
    },
    complete: ending("completed", claims.complete),
    fail: ending("failed", claims.fail),
    cancelled: ending("cancelled", claims.cancelled),
    retry: ending("retried", claims.retry),
    reschedule: ending("rescheduled", claims.reschedule),
    suspend: ending("rescheduled", claims.suspend),
    release: ending("released", claims.release),
  };
}
