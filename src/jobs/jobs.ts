import type { Config } from "../config.ts";
import { notFound } from "../errors.ts";
import type { Logger } from "../logger.ts";
import type { JobMetrics } from "../metrics/job-metrics.ts";
import type { RedisConnections } from "../redis.ts";
import type { JobKind, JobRecord } from "../store/job-record.ts";
import type { JobState } from "../store/job-state.ts";
import type { JobStore, JobSummaryRecord } from "../store/job-store.ts";
import type { Page, PageQuery } from "../store/page.ts";
import { inSpan } from "../tracing.ts";
import { type Announcements, makeAnnouncements } from "./announce.ts";
import { makeBacklog } from "./backlog.ts";
import { cancelJob } from "./cancel.ts";
import { type Claims, makeClaims } from "./claim.ts";
import type { QueueDefinition } from "./define-queue.ts";
import { followJob, type WaitOptions, waitForJob } from "./follow.ts";
import { type HeldJobs, makeHeldJobs } from "./held-jobs.ts";
import type { JobEvent } from "./job-view.ts";
import { measureClaims } from "./measure-claims.ts";
import type { QueueClient } from "./queue-client.ts";
import { measureQueues, type QueueLag } from "./queue-lag.ts";
import { type Reconciled, reconcileJobs, requeueJob } from "./reconcile.ts";
import { makeRefusals } from "./refuse.ts";
import { type Submission, submitJob } from "./submit.ts";

export type { JobEvent } from "./job-view.ts";

export type JobQuery = PageQuery & { kind?: JobKind | undefined; status?: JobState | undefined };

/** The functions of this area, bound to store, Redis and queues. */
export type Jobs = {
  /** Accepts a job; see `submitJob`. @throws AppError `unavailable` when it could not be accepted. */
  submit<Q extends QueueDefinition>(queue: Q, submission: Submission<Q>): Promise<JobRecord>;
  /** @throws AppError `not_found`. */
  get(tenantId: string, jobId: string): Promise<JobRecord>;
  /** As `get`, with null for a job that is not there. */
  find(tenantId: string, jobId: string): Promise<JobRecord | null>;
  /** The tenant's jobs, newest first. */
  list(tenantId: string, query: JobQuery): Promise<Page<JobSummaryRecord>>;
  /** In which state each of these jobs of a tenant is; those that are not there are left out. */
  statesOf(tenantId: string, jobIds: readonly string[]): Promise<Map<string, JobState>>;
  /** Waits until a job has ended, and returns its record as it is then. @throws AppError `not_found`; the signal's reason. */
  wait(tenantId: string, jobId: string, options: WaitOptions): Promise<JobRecord>;
  cancel(tenantId: string, jobId: string): Promise<JobRecord>;
  events(tenantId: string, jobId: string, options: { afterId?: number; signal: AbortSignal }): AsyncIterable<JobEvent>;
  /** Lets a suspended job go on; false when it is not suspended. */
  resume(jobId: string): Promise<boolean>;
  /** Jobs that no worker runs. */
  held: HeldJobs;
  reconcile(): Promise<Reconciled>;
  /** How every queue is: depth, age, workers. */
  measure(): Promise<QueueLag[]>;
  /** What the shell of the workers works with. */
  claims: Claims;
  announcements: Announcements;
  close(): Promise<void>;
};

export function makeJobs(deps: {
  store: { jobs: JobStore };
  redis: RedisConnections;
  queues: QueueClient;
  logger: Logger;
  metrics: JobMetrics;
  config: Config["jobs"];
}): Jobs {
  const { redis, queues, logger, metrics } = deps;
  const store = deps.store.jobs;
  const onError = (error: unknown) => logger.warn({ err: error }, "a side path of jobs failed");
  const announcements = makeAnnouncements(redis, onError);
  const refusals = makeRefusals(store, onError);
  const countBefore = makeBacklog(store, onError);
  const claims = measureClaims(makeClaims(store, deps.config.leaseMs), metrics);
  const cancel = (tenantId: string, jobId: string) =>
    cancelJob({ store, queues, announcements, onError }, tenantId, jobId);
  return {
    async submit(queue, submission) {
      const attributes = { "messaging.system": "bullmq", "messaging.destination.name": queue.name };
      const record = await inSpan({ name: `${queue.name} publish`, kind: "PRODUCER", attributes }, () =>
        submitJob({ store, queues, refusals, countBefore }, queue, submission),
      );
      metrics.submitted(queue.name);
      return record;
    },
    async get(tenantId, jobId) {
      const record = await store.find(tenantId, jobId);
      if (!record) throw notFound("job");
      return record;
    },
    find: (tenantId, jobId) => store.find(tenantId, jobId),
    list: (tenantId, query) => store.list(tenantId, query),
    statesOf: (tenantId, jobIds) => store.statesOf(tenantId, jobIds),
    wait: (tenantId, jobId, options) => waitForJob({ store, announcements, cancel }, tenantId, jobId, options),
    cancel,
    events: (tenantId, jobId, options) => followJob({ store, announcements }, tenantId, jobId, options),
    async resume(jobId) {
      const record = await claims.resume(jobId);
      if (!record) return false;
      announcements.changed(jobId);
      try {
        await requeueJob(queues, record);
      } catch (error) {
        onError(error); // the record says that it is to be run: reconcile enqueues it
      }
      return true;
    },
    held: makeHeldJobs(store, { announcements, refusals }),
    reconcile: () => reconcileJobs({ store, queues }),
    measure: () => measureQueues({ store, queues }),
    claims,
    announcements,
    close: () => refusals.close(),
  };
}
