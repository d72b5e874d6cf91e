import type { Config } from "../config/config.ts";
import { shareReads } from "../lib/share-reads.ts";
import type { Logger } from "../observe/logger.ts";
import type { JobMetrics } from "../observe/metrics/job-metrics.ts";
import { inSpan } from "../observe/tracing.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { JobStore } from "../store/job-store.ts";
import type { RedisConnections } from "../store/redis/redis.ts";
import { makeBacklog } from "./backlog.ts";
import { cancelJob } from "./cancel.ts";
import { makeClaims } from "./claim.ts";
import { makeExternalJobs } from "./external-jobs.ts";
import { type FollowOptions, followJob, readJob, type WaitOptions, waitForJob, watchJob } from "./follow.ts";
import { makeFollowTenant } from "./follow-tenant.ts";
import { makeHeartbeats } from "./heartbeats.ts";
import { makeJobTurns } from "./job-turns.ts";
import { measureClaims } from "./measure-claims.ts";
import { makeNotifications } from "./notify.ts";
import type { QueueClient } from "./queue-client.ts";
import { measureQueues } from "./queue-lag.ts";
import type { QueueDefinition } from "./queues.ts";
import { reconcileJobs, requeueJob } from "./reconcile.ts";
import { makeRejections } from "./reject.ts";
import { type Submission, submitJob } from "./submit.ts";

export type { JobEvent } from "./job-view.ts";

export type Jobs = ReturnType<typeof makeJobs>;

/** The functions of this area, bound to store, Redis and queues. */
export function makeJobs(deps: {
  store: { jobs: JobStore };
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
  const read = shareReads((tenantId, jobId) => store.find(tenantId, jobId));
  const claims = measureClaims(makeClaims(store, deps.config.leaseMs, notifications.changed), metrics);
  const cancel = (tenantId: string, jobId: string) =>
    cancelJob({ store, queues, notifications, onError }, tenantId, jobId);
  const heartbeats = makeHeartbeats(redis);
  return {
    /** Which workers are alive. */
    heartbeats,
    /** Accepts a job; see `submitJob`. @throws AppError `unavailable` when it could not be accepted. */
    async submit(queue: QueueDefinition, submission: Submission): Promise<JobRecord> {
      const attributes = { "messaging.system": "bullmq", "messaging.destination.name": queue.name };
      const record = await inSpan({ name: `${queue.name} publish`, kind: "PRODUCER", attributes }, () =>
        submitJob({ store, queues, rejections, countBefore }, queue, submission),
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
    /** The tenant's jobs, newest first. */
    list: store.list,
    /** In which state each of these jobs of a tenant is; those that are not there are left out. */
    statesOf: store.statesOf,
    /** Waits until a job has ended, and returns its record as it is then. @throws AppError `not_found`; the signal's reason. */
    wait: (tenantId: string, jobId: string, options: WaitOptions) =>
      waitForJob({ read, notifications, cancel }, tenantId, jobId, options),
    /** See `cancelJob`. @throws AppError `not_found`; `wrong_state` when the job has ended. */
    cancel,
    /** See `followJob`. */
    events: (tenantId: string, jobId: string, options: FollowOptions) =>
      followJob({ read, notifications }, tenantId, jobId, options),
    /** The changes of a tenant's jobs; see `makeFollowTenant`. */
    changes: makeFollowTenant({ store, notifications }),
    /** The changes of a job; see `watchJob`. */
    watch: (tenantId: string, jobId: string) => watchJob(notifications, tenantId, jobId),
    /** Lets a suspended job continue; false when it is not suspended. */
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
    held: makeExternalJobs(store, { notifications, rejections }),
    /** See `reconcileJobs`. */
    reconcile: () => reconcileJobs({ store, queues }),
    /** How every queue is: depth, age, workers. */
    measure: () => measureQueues({ store, queues, heartbeats }),
    /** What the shell of the workers works with. */
    claims,
    notifications,
    close: rejections.close,
  };
}
