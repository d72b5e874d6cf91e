import type { Registry } from "prom-client";
import { instrumentsOf } from "./instruments.ts";

/** How one attempt of a job ended. `lost`: another worker had claimed it meanwhile. */
export type TryOutcome = "completed" | "failed" | "cancelled" | "retried" | "rescheduled" | "released" | "lost";

export type JobMetrics = ReturnType<typeof makeJobMetrics>;

export function makeJobMetrics(registry: Registry) {
  const { counter, histogram } = instrumentsOf(registry);
  const submitted = counter("switchyard_jobs_submitted_total", {
    help: "Jobs that this process accepted",
    labels: ["queue"],
  });
  const wait = histogram("switchyard_job_wait_seconds", {
    help: "Time from a job's acceptance until a worker first claimed it",
    labels: ["queue"],
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600],
  });
  const duration = histogram("switchyard_job_duration_seconds", {
    help: "Time of one attempt of a job, by how it ended",
    labels: ["queue", "outcome"],
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900],
  });
  const passes = counter("switchyard_maintenance_passes_total", {
    help: "Passes of what a worker does on a schedule, by how they ended",
    labels: ["task", "outcome"],
  });
  return {
    maintained: (task: string, outcome: "completed" | "failed"): void => passes.inc({ task, outcome }),
    submitted: (queue: string): void => submitted.inc({ queue }),
    /** A job was claimed for the first time, this many seconds after it was accepted. */
    began: (queue: string, waitedSeconds: number): void => wait.observe({ queue }, Math.max(0, waitedSeconds)),
    ended: ({ queue, outcome, seconds }: { queue: string; outcome: TryOutcome; seconds: number }): void =>
      duration.observe({ queue, outcome }, seconds),
  };
}
