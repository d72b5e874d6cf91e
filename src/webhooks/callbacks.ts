import { defined } from "../defined.ts";
import { AppError } from "../errors.ts";
import { jittered } from "../jitter.ts";
import { toAcceptedView } from "../jobs/job-outcome.ts";
import type { Jobs } from "../jobs/jobs.ts";
import { type Work, workOf } from "../jobs/work.ts";
import type { Logger } from "../logger.ts";
import type { Egress } from "../net/egress.ts";
import type { CallbackRecord, CallbackStore } from "../store/callback-store.ts";
import type { JobRecord } from "../store/job-record.ts";
import { isFinal } from "../store/job-state.ts";
import type { Webhooks } from "./webhooks.ts";

/** Callbacks of one sweep, and how many of them it handles in parallel. */
const SWEPT = 200;
const PARALLEL = 8;
/** A job that does not exist after this time was never accepted, in ms. */
const NEVER_ACCEPTED_MS = 60_000;
/** Shortest and longest time until an unfinished job is checked again, in ms: in between, a tenth of its age. */
const LOOK_AFTER_MS = 500;
const LOOK_AT_MOST_MS = 60_000;
/** A message without an outcome after this time is lost, in ms; longer than a webhook may take. */
const LEASE_MS = 60_000;
/** Attempts at a message, and the wait after the first, in ms: it triples with each, less up to half at random; 90 minutes in all. */
const MAX_ATTEMPTS = 8;
const BACKOFF_MS = 5_000;

type CallbacksDeps = {
  store: CallbackStore;
  jobs: Pick<Jobs, "find">;
  webhooks: Pick<Webhooks, "deliver">;
  egress: Pick<Egress, "check">;
  /** Some report the end of their jobs in words of their own. */
  works: readonly Work[];
  logger: Logger;
};

/** Reports the end of jobs to addresses, at least once each, whichever process dies. The message's id is the job's. */
export function makeCallbacks(deps: CallbacksDeps) {
  const { store, egress } = deps;
  return {
    /** @throws AppError `source_refused`, naming `callback.url`, for an address that is never called. */
    check: (url: string) => void egress.check(url, "callback.url"),
    /** Records that the end of an accepted job is to be reported to an address. */
    async expect(tenantId: string, jobId: string, url: string): Promise<void> {
      const now = new Date();
      const nextAt = new Date(+now + LOOK_AFTER_MS);
      await store.ensure({ _id: jobId, tenantId, url, createdAt: now, nextAt });
    },
    /**
     * Reports the jobs that have ended since; returns how many callbacks it found. Run it on a schedule. Once the signal
     * aborts, it begins no more of them: slow receivers can hold a whole sweep for minutes.
     */
    async sweep(signal?: AbortSignal): Promise<number> {
      const due = await store.due(new Date(), SWEPT);
      for (let at = 0; at < due.length && !signal?.aborted; at += PARALLEL) {
        await Promise.all(due.slice(at, at + PARALLEL).map((callback) => check(deps, callback)));
      }
      return due.length;
    },
  };
}

async function check(deps: CallbacksDeps, callback: CallbackRecord): Promise<void> {
  const { store, jobs } = deps;
  const { tenantId, _id: jobId, createdAt } = callback;
  const ageMs = Date.now() - createdAt.getTime();
  const job = await jobs.find(tenantId, jobId);
  if (job && isFinal(job.status)) return send(deps, callback, job);
  if (!job && ageMs > NEVER_ACCEPTED_MS) return void (await store.remove(tenantId, jobId));
  const waitMs = Math.min(Math.max(ageMs / 10, LOOK_AFTER_MS), LOOK_AT_MOST_MS);
  await store.putOff(callback, { nextAt: new Date(Date.now() + waitMs) });
}

/** Sends the message once. The record is rescheduled first, so that other sweeps skip it meanwhile. */
async function send(
  { store, webhooks, works, logger }: CallbacksDeps,
  callback: CallbackRecord,
  job: JobRecord,
): Promise<void> {
  const { tenantId, _id: jobId, url } = callback;
  const attempts = (callback.attempts ?? 0) + 1;
  const leased = { nextAt: new Date(Date.now() + LEASE_MS), attempts };
  if (!(await store.putOff(callback, leased))) return;
  try {
    const body = (await workOf(works, job)?.report?.(job)) ?? {
      type: `job.${job.status}`,
      timestamp: (job.finishedAt ?? job.updatedAt).toISOString(),
      data: { ...toAcceptedView(job), ...defined({ error: job.error }) },
    };
    const { signal } = new AbortController(); // a webhook has its own time-out
    await webhooks.deliver(tenantId, { id: jobId, url, method: "POST", body, signal });
    await store.remove(tenantId, jobId);
  } catch (error) {
    const { retryable = true, retryAfterMs = 0 } = error instanceof AppError ? error : {};
    if (retryable && attempts < MAX_ATTEMPTS) {
      const backoffMs = jittered(BACKOFF_MS * 3 ** (attempts - 1));
      const nextAt = new Date(Date.now() + Math.max(backoffMs, retryAfterMs));
      await store.putOff({ ...callback, ...leased }, { nextAt });
      return;
    }
    logger.warn({ err: error, tenantId, jobId, attempts }, "a callback was given up");
    await store.remove(tenantId, jobId);
  }
}
