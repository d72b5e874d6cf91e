import { AppError } from "../errors.ts";
import { jittered } from "../jitter.ts";
import { toAcceptedView } from "../jobs/job-outcome.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { isFinal } from "../jobs/job-state.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { Logger } from "../logger.ts";
import type { GuardedRequest } from "../net/guarded-request.ts";
import type { CallbackRecord, CallbackStore } from "../store/callback-store.ts";
import type { Webhooks } from "./webhooks.ts";

/** Callbacks that one sweep looks at, and messages that it has under way at once. */
const SWEPT = 200;
const AT_ONCE = 8;
/** A job that is not there after this time was never accepted, in ms. */
const NEVER_ACCEPTED_MS = 60_000;
/** Least and longest time until a job that goes on is looked at again, in ms: in between, a tenth of its age. */
const LOOK_AFTER_MS = 500;
const LOOK_AT_MOST_MS = 60_000;
/** A message that is under way for so long is lost, in ms; longer than a webhook may take. */
const LEASE_MS = 60_000;
/** Tries of a message, and the wait after the first; it triples with each, less up to half at random: an hour and a half in all. */
const MAX_TRIES = 8;
const BACKOFF_MS = 5_000;

export type Callbacks = {
  /**
   * Notes that an address is to be told of a job's end; call it before the job is accepted.
   * @throws AppError `source_refused`, naming `callback.url`.
   */
  expect(tenantId: string, jobId: string, url: string): Promise<void>;
  /** Tells of the jobs that have ended since; answers how many callbacks it looked at. Run it on a schedule. */
  sweep(): Promise<number>;
};

export type CallbacksDeps = {
  store: CallbackStore;
  jobs: Pick<Jobs, "find">;
  webhooks: Pick<Webhooks, "deliver">;
  outside: Pick<GuardedRequest, "check">;
  logger: Logger;
};

/** Tells addresses of the end of jobs, at least once each, whatever process dies. The message's id is the job's. */
export function makeCallbacks(deps: CallbacksDeps): Callbacks {
  const { store, outside } = deps;
  return {
    async expect(tenantId, jobId, url) {
      outside.check(url, "callback.url");
      const now = new Date();
      await store.ensure({
        _id: jobId,
        tenantId,
        url,
        tries: 0,
        createdAt: now,
        nextAt: new Date(+now + LOOK_AFTER_MS),
      });
    },
    async sweep() {
      const due = await store.due(new Date(), SWEPT);
      for (let at = 0; at < due.length; at += AT_ONCE) {
        await Promise.all(due.slice(at, at + AT_ONCE).map((callback) => lookAt(deps, callback)));
      }
      return due.length;
    },
  };
}

async function lookAt(deps: CallbacksDeps, callback: CallbackRecord): Promise<void> {
  const { store, jobs } = deps;
  const { tenantId, _id: jobId, tries, createdAt } = callback;
  const ageMs = Date.now() - createdAt.getTime();
  const job = await jobs.find(tenantId, jobId);
  if (job && isFinal(job.status)) return tell(deps, callback, job);
  if (!job && ageMs > NEVER_ACCEPTED_MS) return store.remove(tenantId, jobId);
  const waitMs = Math.min(Math.max(ageMs / 10, LOOK_AFTER_MS), LOOK_AT_MOST_MS);
  await store.putOff(callback, { nextAt: new Date(Date.now() + waitMs), tries });
}

/** Sends the message once. The record is put off before: whoever else looks at it meanwhile leaves it alone. */
async function tell(
  { store, webhooks, logger }: CallbacksDeps,
  callback: CallbackRecord,
  job: JobRecord,
): Promise<void> {
  const { tenantId, _id: jobId, url } = callback;
  const taken = { nextAt: new Date(Date.now() + LEASE_MS), tries: callback.tries + 1 };
  if (!(await store.putOff(callback, taken))) return;
  const body = {
    type: `job.${job.status}`,
    timestamp: (job.finishedAt ?? job.updatedAt).toISOString(),
    data: { ...toAcceptedView(job), ...(job.error ? { error: job.error } : {}) },
  };
  try {
    const { signal } = new AbortController(); // a webhook has its own time-out
    await webhooks.deliver(tenantId, { id: jobId, url, method: "POST", body, signal });
    await store.remove(tenantId, jobId);
  } catch (error) {
    const canHelp = !(error instanceof AppError) || error.retryable;
    if (canHelp && taken.tries < MAX_TRIES) {
      const backoffMs = jittered(BACKOFF_MS * 3 ** (taken.tries - 1));
      const askedMs = error instanceof AppError ? (error.retryAfterMs ?? 0) : 0;
      const nextAt = new Date(Date.now() + Math.max(backoffMs, askedMs));
      await store.putOff({ ...callback, ...taken }, { nextAt, tries: taken.tries });
      return;
    }
    logger.warn({ err: error, tenantId, jobId, tries: taken.tries }, "a callback was given up");
    await store.remove(tenantId, jobId);
  }
}
