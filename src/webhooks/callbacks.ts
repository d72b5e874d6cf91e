import { toAcceptedView } from "../jobs/job-outcome.ts";
import type { Jobs } from "../jobs/jobs.ts";
import { type Work, workOf } from "../jobs/work.ts";
import { defined } from "../lib/defined.ts";
import { AppError } from "../lib/errors.ts";
import type { Egress } from "../net/egress.ts";
import type { Logger } from "../observe/logger.ts";
import type { ApprovalRecord } from "../store/approval-store.ts";
import type { CallbackRecord } from "../store/callback-store.ts";
import type { JobRecord } from "../store/job-record.ts";
import { isFinal } from "../store/job-state.ts";
import type { Store } from "../store/store.ts";
import type { GuardPolicies } from "../tenancy/guard-policies.ts";
import { type Caller, rootOf } from "../tenancy/roles.ts";
import { makeOutbox, type Pauses, sendMessage } from "./outbox.ts";
import type { Webhooks } from "./webhooks.ts";

/** Callbacks that one read of a sweep finds, how many of them it looks at in parallel, and reads of one sweep. */
const SWEPT = 200;
const PARALLEL = 8;
const MAX_READS = 20;
/** Callbacks that an owner may have: of jobs that have not ended, and of messages that were not accepted yet. */
const MAX_OPEN = 2_000;
/** A job that does not exist after this time was never accepted, in ms. */
const NEVER_ACCEPTED_MS = 60_000;
/** Shortest and longest time until an unfinished job is checked again, in ms: in between, a tenth of its age. */
const LOOK_AFTER_MS = 500;
const LOOK_AT_MOST_MS = 60_000;
type CallbacksDeps = {
  store: Pick<Store, "callbacks" | "approvals">;
  jobs: Pick<Jobs, "find">;
  webhooks: Pick<Webhooks, "deliver">;
  pauses: Pauses;
  egress: Pick<Egress, "check">;
  guards: Pick<GuardPolicies, "requireClear">;
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
  const outbox = makeOutbox();
  const look = async (callback: CallbackRecord) => {
    const subject = await findSubject(deps, callback);
    if (subject) outbox.begin(callback, () => send(deps, callback, subject));
  };
  return {
    /**
     * Whether the end of one more job can be reported to this address.
     * @throws AppError `source_refused`, naming `callback.url`, for an address that is never called; `compliance_blocked`;
     * `too_many_concurrent`.
     */
    async admit(caller: Owner, url: string): Promise<void> {
      egress.check(url, "callback.url");
      await deps.guards.requireClear(caller, "input", { "callback.url": url });
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

type Owner = Pick<Caller, "tenantId" | "rootTenantId"> & Partial<Pick<Caller, "keyId">>;

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
  if (job && isFinal(job.status))
    return { at: job.finishedAt ?? createdAt, toBody: () => toJobMessage(deps.works, job) };
  await (!job && ageMs > NEVER_ACCEPTED_MS ? store.remove(tenantId, _id) : putOff(Math.max(ageMs / 10, LOOK_AFTER_MS)));
  return undefined;
}

/** Sends the message once. */
function send(deps: CallbacksDeps, callback: CallbackRecord, subject: Subject): Promise<void> {
  const { logger } = deps;
  const store = deps.store.callbacks;
  const { tenantId, _id: callbackId } = callback;
  return sendMessage(deps, {
    message: callback,
    since: subject.at,
    body: subject.toBody,
    putOff: store.putOff,
    delivered: () => store.remove(tenantId, callbackId),
    async givenUp(error, attempts) {
      logger.warn({ err: error, tenantId, callbackId, attempts }, "a callback was given up");
      await store.remove(tenantId, callbackId);
    },
  });
}

/** What a receiver is told of a job that has ended. */
async function toJobMessage(works: readonly Work[], job: JobRecord): Promise<object> {
  return (
    (await workOf(works, job)?.report?.(job)) ?? {
      type: `job.${job.status}`,
      timestamp: (job.finishedAt ?? job.updatedAt).toISOString(),
      data: { ...toAcceptedView(job), ...defined({ error: job.error }) },
    }
  );
}

/**
 * The message about an approval, as it is now, for callbacks and webhooks. It holds no arguments and no texts of the run: whoever
 * may decide reads those.
 */
export function toApprovalMessage(approval: ApprovalRecord, moment: "requested" | "decided") {
  const {
    _id: approvalId,
    runId,
    status,
    assigneeRole,
    createdAt,
    expiresAt,
    decidedBy,
    decidedAt,
    comment,
  } = approval;
  const of =
    approval.kind === "agent"
      ? { kind: approval.kind, agentId: approval.agentId, toolName: approval.toolName, jobId: approval.jobId }
      : { kind: "workflow", workflowId: approval.workflowId, stepId: approval.stepId };
  const about = { approvalId, ...of, runId, assigneeRole, expiresAt: expiresAt.toISOString() };
  if (moment === "requested") {
    const data = { ...about, status: "pending" };
    return { type: "approval.requested", timestamp: createdAt.toISOString(), data } as const;
  }
  const timestamp = (decidedAt ?? createdAt).toISOString();
  const decision = defined({ decidedBy, decidedAt: decidedAt?.toISOString(), comment });
  return { type: "approval.decided", timestamp, data: { ...about, status, ...decision } } as const;
}
