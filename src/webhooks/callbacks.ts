import { LRUCache } from "lru-cache";
import { toApprovalMessage } from "../definitions/approvals.ts";
import { toAcceptedView } from "../jobs/job-outcome.ts";
import type { Jobs } from "../jobs/jobs.ts";
import { type Work, workOf } from "../jobs/work.ts";
import { defined } from "../lib/defined.ts";
import { AppError } from "../lib/errors.ts";
import { jittered } from "../lib/jitter.ts";
import type { Egress } from "../net/egress.ts";
import type { Logger } from "../observe/logger.ts";
import type { CallbackRecord } from "../store/callback-store.ts";
import type { JobRecord } from "../store/job-record.ts";
import { isFinal } from "../store/job-state.ts";
import type { Store } from "../store/store.ts";
import { type Caller, rootOf } from "../tenancy/roles.ts";
import type { Webhooks } from "./webhooks.ts";

/** Callbacks that one read of a sweep finds, how many of them it looks at in parallel, and reads of one sweep. */
const SWEPT = 200;
const PARALLEL = 8;
const MAX_READS = 20;
/** Messages under way at a time in a process, and of one owner: slow receivers of one leave places for the others. */
const PLACES = 64;
const PLACES_OF_OWNER = 8;
/** The longest wait for a receiver, in ms. */
const TIMEOUT_MS = 10_000;
/** Callbacks that an owner may have: of jobs that have not ended, and of messages that were not accepted yet. */
const MAX_OPEN = 2_000;
/** A message is given up at this age, in ms. */
const MAX_AGE_MS = 86_400_000;
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
  store: Pick<Store, "callbacks" | "approvals">;
  jobs: Pick<Jobs, "find">;
  webhooks: Pick<Webhooks, "deliver">;
  egress: Pick<Egress, "check">;
  /** Some report the end of their jobs in words of their own. */
  works: readonly Work[];
  logger: Logger;
};

/** What a callback is about: a job that has ended, or an approval. `at`: since when its message is due. */
type Subject = { at: Date; toBody(): Promise<object> };

/**
 * Reports the end of jobs, and what happens to approvals, to addresses, at least once each, whichever process dies. The message's id
 * is the record's: the job's, or the approval's with `:requested` or `:decided`.
 */
export function makeCallbacks(deps: CallbacksDeps) {
  const { egress } = deps;
  const store = deps.store.callbacks;
  const outbox = makeOutbox((callback: CallbackRecord, subject: Subject) => send(deps, pauses, callback, subject));
  const pauses = makePauses();
  const look = async (callback: CallbackRecord) => {
    const subject = await findSubject(deps, callback);
    if (subject) outbox.begin(callback, subject);
  };
  return {
    /**
     * Whether the end of one more job can be reported to this address.
     * @throws AppError `source_refused`, naming `callback.url`, for an address that is never called; `too_many_concurrent`.
     */
    async admit(caller: Owner, url: string): Promise<void> {
      egress.check(url, "callback.url");
      if ((await store.count(rootOf(caller), MAX_OPEN)) < MAX_OPEN) return;
      const message = `You have ${MAX_OPEN} callbacks that are not delivered yet; wait, or send no callback.`;
      throw new AppError("too_many_concurrent", message, {
        param: "callback",
        details: { limit: MAX_OPEN },
        retryable: true,
        retryAfterMs: LOOK_AT_MOST_MS,
      });
    },
    /** Records that the end of an accepted job is to be reported to an address. */
    async expect(caller: Owner, jobId: string, url: string): Promise<void> {
      const now = new Date();
      const nextAt = new Date(+now + LOOK_AFTER_MS);
      const { tenantId } = caller;
      await store.ensure({ _id: jobId, tenantId, owner: rootOf(caller), url, createdAt: now, nextAt });
    },
    /**
     * Begins to report the jobs that have ended since; returns how many callbacks it found. Run it on a schedule. It waits for no
     * receiver. Owners whose places are taken are passed over. Once the signal aborts, it begins no more messages.
     */
    async sweep(signal?: AbortSignal): Promise<number> {
      let found = 0;
      for (let read = 0; read < MAX_READS && !outbox.isFull(); read += 1) {
        const due = await store.due(new Date(), SWEPT, outbox.busyOwners());
        for (let at = 0; at < due.length; at += PARALLEL) {
          if (signal?.aborted) return found;
          await Promise.all(due.slice(at, at + PARALLEL).map(look));
        }
        found += due.length;
        if (due.length < SWEPT) break;
      }
      return found;
    },
    /** Resolves when no message is under way. */
    settled: outbox.settled,
  };
}

type Owner = Pick<Caller, "tenantId" | "rootTenantId">;

/** Messages under way: a bounded number, and of each owner. One that finds no place stays due. */
function makeOutbox(deliver: (callback: CallbackRecord, subject: Subject) => Promise<void>) {
  const running = new Map<Promise<void>, string>();
  const count = (owner: string) => [...running.values()].filter((one) => one === owner).length;
  const isFull = () => running.size >= PLACES;
  return {
    isFull,
    busyOwners: () => [...new Set(running.values())].filter((owner) => count(owner) >= PLACES_OF_OWNER),
    begin(callback: CallbackRecord, subject: Subject): void {
      const owner = callback.owner ?? callback.tenantId;
      if (isFull() || count(owner) >= PLACES_OF_OWNER) return;
      const delivery = deliver(callback, subject).finally(() => running.delete(delivery));
      running.set(delivery, owner);
    },
    settled: async () => void (await Promise.allSettled(running.keys())),
  };
}

/** What a callback is about, if its message is due; else the callback is looked at later, or removed. */
async function findSubject(deps: CallbacksDeps, callback: CallbackRecord): Promise<Subject | undefined> {
  const { jobs } = deps;
  const { callbacks: store, approvals } = deps.store;
  const { tenantId, _id, createdAt, about } = callback;
  const ageMs = Date.now() - createdAt.getTime();
  const putOff = async (waitMs: number) => {
    await store.putOff(callback, { nextAt: new Date(Date.now() + Math.min(waitMs, LOOK_AT_MOST_MS)) });
  };
  if (about) {
    const approval = await approvals.get(tenantId, about.approvalId);
    if (approval) return { at: createdAt, toBody: async () => toApprovalMessage(approval, about.moment) };
    await (ageMs > NEVER_ACCEPTED_MS ? store.remove(tenantId, _id) : putOff(LOOK_AFTER_MS));
    return undefined;
  }
  const job = await jobs.find(tenantId, _id);
  if (job && isFinal(job.status)) return { at: job.finishedAt ?? createdAt, toBody: () => toMessage(deps, job) };
  await (!job && ageMs > NEVER_ACCEPTED_MS ? store.remove(tenantId, _id) : putOff(Math.max(ageMs / 10, LOOK_AFTER_MS)));
  return undefined;
}

async function toMessage({ works }: CallbacksDeps, job: JobRecord): Promise<object> {
  return (
    (await workOf(works, job)?.report?.(job)) ?? {
      type: `job.${job.status}`,
      timestamp: (job.finishedAt ?? job.updatedAt).toISOString(),
      data: { ...toAcceptedView(job), ...defined({ error: job.error }) },
    }
  );
}

/** Sends the message once. The record is rescheduled first, so that other sweeps skip it meanwhile. It never rejects. */
async function send(deps: CallbacksDeps, pauses: Pauses, callback: CallbackRecord, subject: Subject): Promise<void> {
  const until = pauses.until(receiverOf(callback));
  try {
    if (until !== undefined) return void (await deps.store.callbacks.putOff(callback, { nextAt: new Date(until) }));
    await attempt(deps, pauses, callback, subject);
  } catch (error) {
    deps.logger.warn({ err: error, callbackId: callback._id }, "a callback could not be handled; a later sweep will");
  }
}

async function attempt(
  { store: { callbacks: store }, webhooks, logger }: CallbacksDeps,
  pauses: Pauses,
  callback: CallbackRecord,
  subject: Subject,
): Promise<void> {
  const { tenantId, _id: id, url } = callback;
  const receiver = receiverOf(callback);
  const attempts = (callback.attempts ?? 0) + 1;
  const leased = { nextAt: new Date(Date.now() + LEASE_MS), attempts };
  if (!(await store.putOff(callback, leased))) return;
  try {
    const body = await subject.toBody();
    const { signal } = new AbortController(); // a webhook has its own time-out
    await webhooks.deliver(tenantId, { id, url, method: "POST", body, signal, timeoutMs: TIMEOUT_MS });
    pauses.succeeded(receiver);
    await store.remove(tenantId, id);
  } catch (error) {
    const { code, retryable = true, retryAfterMs = 0 } = error instanceof AppError ? error : {};
    if (code === "source_unreachable") pauses.failed(receiver);
    const isOld = Date.now() - subject.at.getTime() > MAX_AGE_MS;
    if (retryable && attempts < MAX_ATTEMPTS && !isOld) {
      const backoffMs = jittered(BACKOFF_MS * 3 ** (attempts - 1));
      const nextAt = new Date(Date.now() + Math.max(backoffMs, retryAfterMs));
      await store.putOff({ ...callback, ...leased }, { nextAt });
      return;
    }
    logger.warn({ err: error, tenantId, callbackId: id, attempts }, "a callback was given up");
    await store.remove(tenantId, id);
  }
}

/** Whom a pause is for: the origin, as one owner knows it, so that nobody pauses the messages of another. */
const receiverOf = ({ owner, tenantId, url }: CallbackRecord) => `${owner ?? tenantId}\n${new URL(url).origin}`;

/** Messages in a row that got no answer until their receiver is left alone, and for how long, in ms: twice as long each time. */
const FAILURES_TO_PAUSE = 5;
const FIRST_PAUSE_MS = 30_000;
const MAX_PAUSE_MS = 600_000;
const MAX_RECEIVERS = 10_000;

type Pauses = ReturnType<typeof makePauses>;

/** Which receivers are left alone for a while, since nothing there answers. After a pause one failure is enough for the next. */
export function makePauses(now: () => number = Date.now) {
  const receivers = new LRUCache<string, { failures: number; until: number }>({ max: MAX_RECEIVERS });
  return {
    /** When a receiver may be called again, in ms since the epoch; undefined: now. */
    until(receiver: string): number | undefined {
      const until = receivers.get(receiver)?.until ?? 0;
      return until > now() ? until : undefined;
    },
    failed(receiver: string): void {
      const failures = (receivers.get(receiver)?.failures ?? 0) + 1;
      const pauses = failures - FAILURES_TO_PAUSE;
      const pauseMs = pauses < 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** pauses, MAX_PAUSE_MS);
      receivers.set(receiver, { failures, until: pauseMs === 0 ? 0 : now() + jittered(pauseMs) });
    },
    succeeded: (receiver: string) => void receivers.delete(receiver),
  };
}
