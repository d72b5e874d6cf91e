import type { Pace } from "../src/isolation/pace.ts";
import type { Lease } from "../src/jobs/claim.ts";
import type { Work } from "../src/jobs/work.ts";
import { AppError } from "../src/lib/errors.ts";
import type { Platform } from "../src/platform.ts";
import type { JobProgress, JobRecord } from "../src/store/job-record.ts";
import type { HeldJob } from "../src/store/job-store.ts";
import type { RunAlone } from "./run-alone.ts";
import type { StopReason } from "./verdict.ts";

/** The longest time between two heartbeats, in ms: also the longest until a cancel is seen whose announcement was lost. */
const MAX_HEARTBEAT_MS = 1_500;
/** Progress is written at most once in this time, in ms; the stage's first and last always are. */
const PROGRESS_EVERY_MS = 250;
/** A job that still runs after this time, in ms, is announced to those who follow it. */
const ANNOUNCE_AFTER_MS = 150;

/** The reason of the signal that stops the work: a cancelled job is over, any other may continue elsewhere. */
const abortReasons: Record<StopReason, () => AppError> = {
  cancelled: () => new AppError("cancelled", "The job was cancelled."),
  fenced: () => new AppError("unavailable", "The job went to another worker.", { retryable: true }),
  shutdown: () => new AppError("unavailable", "The worker is shutting down.", { retryable: true }),
  timeout: () => new AppError("timeout", "The job ran longer than it may.", { retryable: true }),
};

/** The jobs that this process runs, and how to stop each. */
export type RunningJobs = Map<string, (reason: StopReason) => void>;

/** What the shell of every queue in a process shares. */
export type ShellDeps = {
  platform: Platform;
  works: readonly Work[];
  workerId: string;
  running: RunningJobs;
  leaseMs: number;
  pace: Pace;
  /** Aborts when the process is to take no more jobs. */
  closing: AbortController;
  /** How a job runs that is suspected to end its process; without it, such a job runs as any other. */
  runAlone?: RunAlone;
  /** Jobs that run so now. */
  alone: Set<string>;
  /** Called when a job is ours. */
  onClaimed?(): void;
};

/** Attempts whose worker reported nothing of them since, as when it died. */
export const lostAttempts = ({ attempts, failures, overtaken = 0 }: JobRecord) => attempts - 1 - failures - overtaken;

/** Keeps a job's lease alive while it runs, and aborts its signal when it must stop. */
export function holdLease(
  deps: ShellDeps,
  { record, lease, timeoutMs }: { record: JobRecord; lease: Lease; timeoutMs: number },
) {
  const { claims } = deps.platform.jobs;
  const controller = new AbortController();
  let reason: StopReason | undefined;
  const stop = (why: StopReason) => {
    reason ??= why;
    controller.abort(abortReasons[why]());
  };
  let { lastEventId } = record;
  const check = (current: HeldJob | null) => {
    if (!current) return stop("fenced");
    lastEventId = current.lastEventId;
    if (current.cancelRequestedAt) stop("cancelled");
  };
  let lastBeatAt = performance.now();
  const beat = async () => {
    const sentAt = performance.now();
    try {
      check(await claims.heartbeat(lease));
      lastBeatAt = Math.max(lastBeatAt, sentAt); // what it renews begins when it is sent, not when it is answered
    } catch (error) {
      deps.platform.logger.warn({ err: error, jobId: record._id }, "a heartbeat failed");
      // The store is unavailable: once the lease has ended for sure, another may hold the job.
      if (performance.now() - lastBeatAt > deps.leaseMs) stop("fenced");
    }
  };
  const heartbeat = setInterval(() => void beat(), Math.min(deps.leaseMs / 3, MAX_HEARTBEAT_MS));
  const timeout = setTimeout(() => stop("timeout"), timeoutMs);
  const announcement = setTimeout(() => claims.announce(record), ANNOUNCE_AFTER_MS);
  deps.running.set(record._id, stop);
  if (record.cancelRequestedAt) stop("cancelled");

  let written: { stage: string; at: number } = { stage: "", at: 0 };
  let last = record.progress;
  let lost = lostAttempts(record);
  const checked = async (change: Promise<HeldJob | null>): Promise<void> => {
    check(await change);
    controller.signal.throwIfAborted();
  };
  return {
    signal: controller.signal,
    stopReason: () => reason,
    async progress(progress: JobProgress): Promise<void> {
      controller.signal.throwIfAborted();
      last = progress;
      const now = performance.now();
      const isEdge = progress.stage !== written.stage || progress.done >= progress.total;
      if (!isEdge && now - written.at < PROGRESS_EVERY_MS) return;
      written = { stage: progress.stage, at: now };
      await checked(claims.progress(lease, progress));
    },
    async confirm(): Promise<void> {
      controller.signal.throwIfAborted();
      await checked(claims.heartbeat(lease));
    },
    async step(data: Record<string, unknown>, progress?: JobProgress): Promise<void> {
      controller.signal.throwIfAborted();
      last = progress ?? last;
      if (lost > 0 && last.done > record.progress.done) {
        const forgiven = lost;
        lost = 0; // now: steps may end side by side
        await checked(claims.forgive(lease, forgiven));
      }
      await checked(claims.step(lease, data, { lastEventId, progress }));
    },
    /** The latest progress that was reported, written or not. */
    lastProgress: () => last,
    release() {
      clearInterval(heartbeat);
      clearTimeout(timeout);
      clearTimeout(announcement);
      deps.running.delete(record._id);
    },
  };
}
