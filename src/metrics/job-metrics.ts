import { Counter, Histogram, type Registry } from "prom-client";

/** What became of one try of a job. `lost`: another worker had taken it meanwhile. */
export type TryOutcome = "completed" | "failed" | "cancelled" | "retried" | "postponed" | "released" | "lost";

export type JobMetrics = {
  submitted(queue: string): void;
  /** A job was taken for the first time, so long after it was accepted. */
  began(queue: string, waitedSeconds: number): void;
  ended(end: { queue: string; outcome: TryOutcome; seconds: number }): void;
};

export function makeJobMetrics(registry: Registry): JobMetrics {
  const registers = [registry];
  const submitted = new Counter({
    name: "switchyard_jobs_submitted_total",
    help: "Jobs that were accepted by this process",
    labelNames: ["queue"],
    registers,
  });
  const wait = new Histogram({
    name: "switchyard_job_wait_seconds",
    help: "Time from a job's acceptance until a worker took it first",
    labelNames: ["queue"],
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600],
    registers,
  });
  const duration = new Histogram({
    name: "switchyard_job_duration_seconds",
    help: "Time that one try of a job ran, by what became of it",
    labelNames: ["queue", "outcome"],
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900],
    registers,
  });
  return {
    submitted: (queue) => submitted.inc({ queue }),
    began: (queue, waitedSeconds) => wait.observe({ queue }, Math.max(0, waitedSeconds)),
    ended: ({ queue, outcome, seconds }) => duration.observe({ queue, outcome }, seconds),
  };
}
