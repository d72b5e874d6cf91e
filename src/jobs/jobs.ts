import type { Config } from "../config/config.ts";
import { makePresence } from "../isolation/pace.ts";
import { makeShares } from "../isolation/shares.ts";
import { shareReads } from "../lib/share-reads.ts";
import { makeStaleWhileRevalidate } from "../lib/stale-while-revalidate.ts";
import type { Logger } from "../observe/logger.ts";
import type { JobMetrics, TryOutcome } from "../observe/metrics/job-metrics.ts";
import { inSpan } from "../observe/tracing.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { HeldJob, JobStore } from "../store/job-store.ts";
import type { RedisConnections } from "../store/redis/redis.ts";
import type { WebhookStore } from "../store/webhook-store.ts";
import { cancelJob } from "./cancel.ts";
import { type Claims, type EndedJob, type Lease, makeClaims } from "./claim.ts";
import { makeExternalJobs } from "./external-jobs.ts";
import { type FollowOptions, followJob, readJob, type WaitOptions, waitForJob, watchJob } from "./follow.ts";
import { makeFollowTenant } from "./follow-tenant.ts";
import { makeHeartbeats } from "./heartbeats.ts";
import { makeNotifications } from "./notify.ts";
import type { QueueClient } from "./queue-client.ts";
import { measureQueues } from "./queue-lag.ts";
import type { QueueDefinition } from "./queues.ts";
import { reconcileJobs, requeueJob } from "./reconcile.ts";
import { makeRejections } from "./reject.ts";
import { type Submission, submitJob } from "./submit.ts";

export type { JobEvent } from "./job-view.ts";

export type Jobs = ReturnType<typeof makeJobs>;

type OnEnd = (job: EndedJob) => Promise<void>;

/** The functions of this area, bound to store, Redis and queues. */
export function makeJobs(deps: {
  store: { jobs: JobStore; webhooks: Pick<WebhookStore, "ofFamily"> };
  redis: RedisConnections;
  queues: QueueClient;
  logger: Logger;
  metrics: JobMetrics;
  config: Config["jobs"];
}) {
  const { redis, queues, logger, metrics } = deps;
  const store = deps.store.jobs;
  const onError = (error: unknown) => logger.warn({ err: error }, "a side path of jobs failed");
  const notifications = makeNotifications(redis, onError);
  const rejections = makeRejections(store, onError);
  const countBefore = makeBacklog(store, onError);
  const { is: isAnnounced, forget } = makeAnnounced(deps.store.webhooks);
  const read = shareReads((tenantId, jobId) => store.find(tenantId, jobId));
  let onEnd: OnEnd = async () => undefined;
  const ended = (job: EndedJob) => {
    if (job.unsettledSince) void onEnd(job).catch(onError); // a sweep does it then
  };
  const claims = measureClaims(makeClaims(store, deps.config.leaseMs, notifications.changed, ended), metrics);
  const cancel = (tenantId: string, jobId: string) =>
    cancelJob({ store, queues, notifications, ended, onError }, tenantId, jobId);
  const heartbeats = makeHeartbeats(redis);
  return {
    /** The workers that are alive. */
    heartbeats,
    /** Accepts a job; see `submitJob`. @throws AppError `unavailable` when it could not be accepted. */
    async submit(queue: QueueDefinition, submission: Submission): Promise<JobRecord> {
      const attributes = { "messaging.system": "bullmq", "messaging.destination.name": queue.name };
      const record = await inSpan({ name: `${queue.name} publish`, kind: "PRODUCER", attributes }, () =>
        submitJob({ store, queues, rejections, countBefore, isAnnounced }, queue, submission),
      );
      metrics.submitted(queue.name);
      return record;
    },
    /** Runs what accepts or cancels a job; see `makeJobTurns`. */
    inTurn: makeJobTurns(),
    /** @throws AppError `not_found`. */
    get: (tenantId: string, jobId: string) => readJob(read, tenantId, jobId),
    /** As `get`, with null for a job that is not there. */
    find: store.find,
    adopt: store.adopt,
    /** The tenant's jobs, newest first. */
    list: store.list,
    /** State of each of these jobs of a tenant. Jobs that do not exist are left out. */
    statesOf: store.statesOf,
    /** Waits until a job has ended, and returns its record as it is then. @throws AppError `not_found`; the signal's reason. */
    wait: (tenantId: string, jobId: string, options: WaitOptions) =>
      waitForJob({ read, notifications }, tenantId, jobId, options),
    /** See `cancelJob`. @throws AppError `not_found`; `wrong_state` when the job has ended. */
    cancel,
    /** See `followJob`. */
    events: (tenantId: string, jobId: string, options: FollowOptions) =>
      followJob({ read, notifications }, tenantId, jobId, options),
    /** The changes of a tenant's jobs; see `makeFollowTenant`. */
    changes: makeFollowTenant({ store, notifications }),
    /** The changes of a job; see `watchJob`. */
    watch: (tenantId: string, jobId: string) => watchJob(notifications, tenantId, jobId),
    /** Lets a suspended job continue. Returns false if it is not suspended. */
    async resume(jobId: string): Promise<boolean> {
      const record = await claims.resume(jobId);
      if (!record) return false;
      try {
        await requeueJob(queues, record);
      } catch (error) {
        onError(error); // the record says that it is to be run: reconcile enqueues it
      }
      return true;
    },
    /** Jobs that no worker runs. */
    held: makeExternalJobs(store, { notifications, rejections, ended }),
    /** Notes of a job that it is about to have children. */
    expectChildren: store.kin.expectChildren,
    /** What repeats a job that has failed or was cancelled; see `makeKinStore`. */
    beginRepeat: store.kin.beginRepeat,
    repeated: store.kin.repeated,
    /** Sets what is done when a job with a parent or children has ended here; see `makeKin`. */
    onEnd(work: OnEnd): void {
      onEnd = work;
    },
    /** Learns at once that the webhooks of a tenant have changed. */
    webhooksChanged: forget,
    /** See `reconcileJobs`. */
    reconcile: () => reconcileJobs({ store, queues }),
    /** Depth, age and workers of every queue. */
    measure: () => measureQueues({ store, queues, heartbeats }),
    /** The functions that the shell of the workers needs. */
    claims,
    notifications,
    close: rejections.close,
  };
}

/** Which tenants have webhooks that are told of the end of jobs or batches. */
function makeAnnounced(webhooks: Pick<WebhookStore, "ofFamily">) {
  const known = makeStaleWhileRevalidate(async (tenantId) => {
    const found = await Promise.all(["job", "batch"].map((family) => webhooks.ofFamily(tenantId, family, 1)));
    return { isTold: found.flat().length > 0 };
  });
  return { is: async (tenantId: string) => (await known.find(tenantId)).isTold, forget: known.forget };
}

/** How long a count from the store is used, in ms. This process adds its own submissions to it meanwhile. */
const REFRESH_MS = 1_000;
/** Counting stops at this number. Beyond it, all jobs of a tenant are equally late. */
const MAX_COUNTED = 2_000;
/** Maximum tenants that are remembered. */
const MAX_TENANTS = 10_000;

type Estimate = { count: number; refreshAt: number };

/** Estimates how many jobs of a tenant wait on a queue. It counts in the background once a second and adds own submissions. */
function makeBacklog(store: Pick<JobStore, "countQueued">, onError: (error: unknown) => void) {
  const estimates = new Map<string, Estimate>();
  const refresh = async (tenantId: string, queue: string, estimate: Estimate) => {
    try {
      estimate.count = await store.countQueued(tenantId, queue, MAX_COUNTED);
    } catch (error) {
      onError(error); // the old estimate is used: a wrong priority does no harm to the job
    }
  };
  /** Jobs of the tenant that wait before the one that is submitted now. */
  return function countBefore(tenantId: string, queue: string): number {
    const key = `${queue}\n${tenantId}`;
    if (estimates.size > MAX_TENANTS) estimates.clear();
    const estimate = estimates.get(key) ?? { count: 0, refreshAt: 0 };
    estimates.set(key, estimate);
    const now = performance.now();
    if (now >= estimate.refreshAt) {
      estimate.refreshAt = now + REFRESH_MS;
      void refresh(tenantId, queue, estimate);
    }
    estimate.count += 1;
    return estimate.count - 1;
  };
}

/** Concurrent calls of one tenant while other tenants work here too. */
const AT_ONCE = 2;
/** Longest wait for a turn, in ms; then a call runs without one, as while the store is unavailable. */
const MAX_WAIT_MS = 2_000;

/**
 * Makes turns for the calls that accept or cancel jobs. While several tenants do so in this process, one tenant's calls have
 * their turns two at a time: each is several writes, and those of a burst would all stand before the writes of others. A tenant
 * that is alone does not wait.
 */
export function makeJobTurns({ maxWaitMs = MAX_WAIT_MS } = {}) {
  const presence = makePresence();
  const turns = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: AT_ONCE });
  const enter = (tenantId: string) => turns.enter(tenantId, AbortSignal.timeout(maxWaitMs)).catch(() => undefined); // it waited long enough
  /** Runs one call's work in its tenant's turn. @throws what `work` throws. */
  return async function inTurn<T>(tenantId: string, work: () => Promise<T>): Promise<T> {
    presence.begins(tenantId);
    const leave = presence.hasOthers(tenantId) ? await enter(tenantId) : undefined;
    try {
      return await work();
    } finally {
      leave?.();
    }
  };
}

/** Counts how long jobs wait and run and what becomes of them, where it is decided: at the changes of their records. */
function measureClaims(claims: Claims, metrics: JobMetrics): Claims {
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
