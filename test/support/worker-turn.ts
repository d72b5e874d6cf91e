import { randomUUID } from "node:crypto";
import { DelayedError, UnrecoverableError } from "bullmq";
import { makePace } from "../../src/isolation/pace.ts";
import type { QueueDefinition } from "../../src/jobs/queues.ts";
import type { Platform } from "../../src/platform.ts";
import type { ShellDeps } from "../../workers/hold-lease.ts";
import { makeProcessor } from "../../workers/run-job.ts";

/** What BullMQ is left with: a job that has ended, one with a reason for its failure, or when to look at it again, in ms. */
export type Turn = { end: "done" } | { end: "failed"; reason: string } | { end: "later"; at: number };

/**
 * Hands a job to a worker's shell once, as BullMQ does. For tests in which no worker runs: a job goes on when the test says.
 * @throws what the shell throws besides.
 */
export async function takeTurn(
  platform: Platform,
  { queue, jobId, data }: { queue: QueueDefinition; jobId: string; data?: unknown },
  shell: Partial<ShellDeps> = {},
): Promise<Turn> {
  const { works, config } = platform;
  const deps = {
    platform,
    works,
    workerId: "test",
    running: new Map(),
    leaseMs: config.jobs.leaseMs,
    alone: new Set<string>(),
    pace: makePace(),
    closing: new AbortController(),
  };
  const bullToken = randomUUID();
  let at: number | undefined;
  const job = {
    id: jobId,
    data: data ?? (await platform.store.jobs.findById(jobId))?.payload,
    async moveToDelayed(to: number, token?: string) {
      if (token !== bullToken) throw new Error("BullMQ would refuse this token");
      at = to;
    },
  };
  try {
    const result = await makeProcessor({ ...deps, ...shell }, queue)(job, bullToken);
    if (result !== undefined || at !== undefined) throw new Error("neither ended nor delayed, for BullMQ");
    return { end: "done" };
  } catch (error) {
    if (error instanceof UnrecoverableError) return { end: "failed", reason: error.message };
    if (error instanceof DelayedError && at !== undefined) return { end: "later", at };
    throw error;
  }
}
