import { sweepEach } from "../src/jobs/sweep-each.ts";
import { sweepWorks } from "../src/jobs/work.ts";
import { keepDoing } from "../src/lib/keep-doing.ts";
import type { Platform } from "../src/platform.ts";
import { REMOVED_AT_A_TIME } from "../src/store/retention-store.ts";
import { keptSince } from "../src/tenancy/call-texts.ts";

/** How often callbacks, waits and firings that are due are looked for, in ms, at most; more often where reconcile is. */
const DUE_EVERY_MS = 1_000;
/** How often records that are too old are looked for, in ms, and how many times in a pass they are at most. */
const RETENTION_EVERY_MS = 60_000;
const RETENTION_STEPS = 20;
const DAY_MS = 86_400_000;
/** Tenants with too many call logs that one pass looks at. */
const EXCESSIVE_TENANTS = 20;
/** Tenants whose kept texts one pass looks at. */
const TENANTS_A_PASS = 1_000;

/**
 * Keeps the queues in line with the records, and documents and runs (of agents, workflows, composite patterns) with their jobs,
 * and sends callbacks for jobs that have ended, while the process runs. These are timers instead of a queue, since they must
 * work when Redis has lost everything, its own schedule included; every worker process may do it at once.
 */
export function keepReconciled(platform: Platform) {
  const { jobs, waits, works, approvals, rag, vectorStores, batches, automation, callbacks, announcements } = platform;
  const { kin, config, logger, metrics } = platform;
  const sweeps = [
    async () => {
      const { requeued, expired } = await jobs.reconcile();
      if (requeued > 0) logger.info({ requeued, expired }, "jobs were enqueued again");
    },
    approvals.sweep,
    batches.chats.sweep,
    batches.files.sweep,
    rag.collections.sweep,
    rag.sweepRefreshes,
    rag.sweepStrayChunks,
    vectorStores.sweep,
    () => sweepWorks(jobs, works),
    kin.sweep,
  ];
  const reconcile = () => sweepEach<() => Promise<unknown>>(sweeps, (sweep) => sweep());
  const { reconcileEveryMs } = config.jobs;
  const start = (task: string, everyMs: number, work: (signal: AbortSignal) => Promise<unknown>) => {
    const pass = async (signal: AbortSignal) => {
      await work(signal);
      metrics.jobs.maintained(task, "completed");
    };
    const onError = (error: unknown) => {
      metrics.jobs.maintained(task, "failed");
      logger.warn({ err: error, what: task }, "a sweep could not run; the next pass will");
    };
    return keepDoing(pass, { everyMs, onError });
  };
  const removeTexts = makeTextRemoval(platform);
  const loops = [
    start("reconcile", reconcileEveryMs, reconcile),
    start("waits", Math.min(reconcileEveryMs, DUE_EVERY_MS), waits.sweep),
    // A loop of its own, so that slow receivers do not delay reconcile.
    start("callbacks", Math.min(reconcileEveryMs, DUE_EVERY_MS), callbacks.sweep),
    start("announcements", Math.min(reconcileEveryMs, DUE_EVERY_MS), announcements.sweep),
    start("firings", Math.min(reconcileEveryMs, DUE_EVERY_MS), automation.sweep),
    start("retention", RETENTION_EVERY_MS, async () => {
      await removeExpired(platform);
      await inSteps(() => platform.store.retention.removeUnownedSources(new Date()));
      await removeExcess(platform);
      await removeTexts();
    }),
  ];
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
      await Promise.all([callbacks.settled(), announcements.settled()]);
    },
  };
}

/** Removes the oldest call logs of tenants that keep too many bytes of them: a few in each step, and a bounded number in a pass. */
export async function removeExcess({ store, config, logger }: Pick<Platform, "store" | "config" | "logger">) {
  const { callLogsAbove, removeOldestCallLogs } = store.retention;
  const limit = config.quotas.callLogBytes;
  for (const { tenantId, bytes } of await callLogsAbove(limit, EXCESSIVE_TENANTS)) {
    let left = bytes - limit;
    for (let step = 0; step < RETENTION_STEPS && left > 0; step++) left -= await removeOldestCallLogs(tenantId, left);
    const removed = bytes - limit - left;
    logger.info(
      { tenantId, removed },
      "the oldest call logs of a tenant were removed: it keeps too many bytes of them",
    );
  }
}

/**
 * Removes the texts of calls that their tenants keep no longer. Each pass looks at a bounded number of tenants, after those
 * that the one before it has looked at, and removes a bounded number of texts of each.
 */
export function makeTextRemoval({ store, logger }: Pick<Platform, "store" | "logger">) {
  let last = "";
  return async (): Promise<void> => {
    const tenants = await store.tenants.callTextDaysAfter(last, TENANTS_A_PASS);
    for (const { tenantId, callTextDays } of tenants) {
      if (callTextDays === undefined) continue;
      const before = keptSince(callTextDays);
      const { removeCallTexts, removeAnswers } = store.retention;
      const removed =
        (await inSteps(() => removeCallTexts(tenantId, before))) +
        (await inSteps(() => removeAnswers(tenantId, before)));
      if (removed > 0)
        logger.info({ tenantId, removed }, "texts of calls were removed that the tenant keeps no longer");
    }
    last = tenants.length < TENANTS_A_PASS ? "" : (tenants.at(-1)?.tenantId ?? "");
  };
}

/** Removes a few records in each step, until there are no more, or as many as one pass may. Returns how many. */
async function inSteps(remove: () => Promise<number>): Promise<number> {
  let removed = 0;
  for (let step = 0; step < RETENTION_STEPS; step++) {
    const count = await remove();
    removed += count;
    if (count < REMOVED_AT_A_TIME) break;
  }
  return removed;
}

/** Removes call logs and runs that are older than the settings keep them: a few in each step, and a bounded number in a pass. */
export async function removeExpired({ store, config, logger }: Pick<Platform, "store" | "config" | "logger">) {
  const { callLogDays, workflowRunDays, agentRunDays } = config.retention;
  const { removeCallLogs, removeWorkflowRuns, removeAgentRuns } = store.retention;
  for (const [what, days, remove] of [
    ["call logs", callLogDays, removeCallLogs],
    ["workflow runs", workflowRunDays, removeWorkflowRuns],
    ["agent runs", agentRunDays, removeAgentRuns],
  ] as const) {
    if (days === 0) continue;
    const before = new Date(Date.now() - days * DAY_MS);
    const removed = await inSteps(() => remove(before));
    if (removed > 0) logger.info({ what, removed }, "records older than the settings keep them were removed");
  }
}
