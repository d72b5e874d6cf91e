import { toAcceptedView } from "../jobs/job-outcome.ts";
import { batchQueue } from "../jobs/queues.ts";
import { sweepEach } from "../jobs/sweep-each.ts";
import type { Work } from "../jobs/work.ts";
import { defined } from "../lib/defined.ts";
import { AppError, toErrorView } from "../lib/errors.ts";
import { derivedId } from "../lib/ids.ts";
import type { Logger } from "../observe/logger.ts";
import type { ApprovalRecord } from "../store/approval-store.ts";
import type { DeliveryAttempt, DeliveryRecord } from "../store/delivery-store.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { Store } from "../store/store.ts";
import type { WebhookRecord } from "../store/webhook-store.ts";
import { toApprovalMessage } from "./callbacks.ts";
import { makeOutbox, type Pauses, sendMessage } from "./outbox.ts";
import type { WebhookEvent } from "./subscription-schemas.ts";
import { familyOf, MAX_WEBHOOKS } from "./subscriptions.ts";
import type { Webhooks } from "./webhooks.ts";

/** What one read of a sweep finds, and reads of one sweep. */
const SWEPT = 200;
const MAX_READS = 20;
/** Messages of a webhook that wait to be sent; further ones fail at once. */
const MAX_PENDING = 10_000;
/** How long a message is kept, with its attempts, in ms: 30 days. */
const KEPT_MS = 30 * 86_400_000;
/** How often budgets are looked at, in ms, and the shares of them that are told. */
const BUDGETS_EVERY_MS = 10_000;
const NEARLY = 0.8;
const EXHAUSTED = 0.999;

/** The budget of a month, as its view has it. */
type Budget = { month: string; limitUsd: number; leftUsd: number };

type AnnouncementsDeps = {
  store: Pick<Store, "jobs" | "approvals" | "webhooks" | "deliveries">;
  webhooks: Pick<Webhooks, "deliver">;
  budgetOf(tenantId: string): Promise<Budget | null>;
  pauses: Pauses;
  works: readonly Work[];
  logger: Logger;
};

/** Something that webhooks are told of. `about` with its type makes the id of its messages. */
type Announcement = {
  tenantId: string;
  type: WebhookEvent;
  about: string;
  at: Date;
  data: object;
  /** Makes the id in the place of `at`, where that is when it was seen. */
  of?: Date;
};

/**
 * Tells webhooks what happened: by marks on the records of jobs and approvals, which are set together with the change that is told.
 * A message is a record, and is sent until the receiver takes it. Any number of processes may sweep.
 */
export function makeAnnouncements(deps: AnnouncementsDeps) {
  const { store } = deps;
  const outbox = makeOutbox();
  const lookAtBudgets = makeBudgetLooks(deps);
  const drain = async <T>(find: (limit: number) => Promise<T[]>, tell: (record: T) => Promise<unknown>) => {
    for (let read = 0; read < MAX_READS; read += 1) {
      const found = await find(SWEPT);
      await sweepEach(found, tell);
      if (found.length < SWEPT) return;
    }
  };
  const send = async (signal: AbortSignal) => {
    for (let read = 0; read < MAX_READS && !outbox.isFull(); read += 1) {
      const due = await store.deliveries.due(new Date(), SWEPT, outbox.busyOwners());
      if (signal.aborted) return;
      for (const delivery of due) outbox.begin(delivery, () => sendDelivery(deps, delivery));
      if (due.length < SWEPT) return;
    }
  };
  return {
    /** Makes messages of what has happened, and begins to send those that are due. It waits for no receiver. */
    async sweep(signal: AbortSignal): Promise<void> {
      await drain(store.jobs.announced, async (job) => {
        await announce(deps, toJobAnnouncement(job));
        await store.jobs.told(job._id);
      });
      await drain(store.approvals.untold, async (approval) => {
        for (const announcement of toApprovalAnnouncements(approval)) await announce(deps, announcement);
        await store.approvals.told(approval);
      });
      await lookAtBudgets();
      await send(signal);
    },
    /** Resolves when no message is under way. */
    settled: outbox.settled,
  };
}

/** Makes a message for each webhook of the tenant that gets this type; repeated, it makes none twice. */
export async function announce(
  { store }: { store: Pick<Store, "webhooks" | "deliveries"> },
  { tenantId, type, about, at, data, of = at }: Announcement,
): Promise<void> {
  const found = await store.webhooks.ofFamily(tenantId, familyOf(type), MAX_WEBHOOKS);
  const now = new Date();
  const isTold = ({ events, createdAt, endsAt }: WebhookRecord) =>
    events.includes(type) && createdAt <= at && (endsAt === undefined || endsAt > now);
  const body = JSON.stringify({ type, timestamp: at.toISOString(), data });
  for (const { _id: webhookId, owner, url } of found.filter(isTold)) {
    const isOver = (await store.deliveries.countPending(tenantId, webhookId, MAX_PENDING)) >= MAX_PENDING;
    const ends: Partial<DeliveryRecord> = isOver ? { status: "failed", log: [refusedFor(now)] } : { nextAt: now };
    await store.deliveries.ensure({
      ...{
        _id: derivedId("delivery", { at: of, from: `${webhookId}\n${type}\n${about}` }),
        tenantId,
        webhookId,
        owner,
      },
      ...{ url, type, body, status: "pending", attempts: 0, log: [], createdAt: now, since: now },
      ...{ expireAt: new Date(now.getTime() + KEPT_MS), ...ends },
    });
  }
}

const refusedFor = (at: Date): DeliveryAttempt => ({
  at,
  error: toErrorView(new AppError("too_many_concurrent", `${MAX_PENDING} messages to this webhook are not delivered.`)),
});

function toJobAnnouncement(job: JobRecord): Announcement {
  const isBatch = job.queue === batchQueue.name && job.payload.fileBatchId !== undefined;
  const type = `${isBatch ? "batch" : "job"}.${job.status}` as WebhookEvent; // of a job that has ended
  const { _id, tenantId, error, finishedAt: at = job.updatedAt } = job;
  return { tenantId, type, about: _id, at, data: { ...toAcceptedView(job), ...defined({ error }) } };
}

/** An approval that was asked for, and its decision; one that ended with its run was not decided. */
function toApprovalAnnouncements(approval: ApprovalRecord): Announcement[] {
  const { tenantId, _id: about, decidedAt, status } = approval;
  const isDecided = decidedAt !== undefined && status !== "cancelled";
  return (isDecided ? (["requested", "decided"] as const) : (["requested"] as const)).map((moment) => {
    const { type, timestamp, data } = toApprovalMessage(approval, moment);
    return { tenantId, type, about, at: new Date(timestamp), data };
  });
}

/** Looks at the budgets of tenants whose webhooks are told of them, now and then. */
function makeBudgetLooks(deps: AnnouncementsDeps) {
  let next = 0;
  return async (): Promise<void> => {
    if (Date.now() < next) return;
    next = Date.now() + BUDGETS_EVERY_MS;
    for (let after = "", isLast = false; !isLast; ) {
      const tenants = await deps.store.webhooks.tenantsOf("budget", { after, limit: SWEPT });
      await sweepEach(new Set(tenants), (tenantId) => lookAtBudget(deps, tenantId));
      after = tenants.at(-1) ?? "";
      isLast = tenants.length < SWEPT;
    }
  };
}

async function lookAtBudget(deps: AnnouncementsDeps, tenantId: string): Promise<void> {
  const budget = await deps.budgetOf(tenantId);
  if (!budget) return;
  const { month, limitUsd, leftUsd } = budget;
  const share = limitUsd === 0 ? 1 : (limitUsd - leftUsd) / limitUsd;
  const reached = [
    ...(share >= NEARLY ? (["budget.nearly_exhausted"] as const) : []),
    ...(share >= EXHAUSTED ? (["budget.exhausted"] as const) : []),
  ];
  // Once for each month and limit: an earlier message of the same has the same id.
  const of = new Date(`${month}-01T00:00:00Z`);
  const data = { month, limitUsd, leftUsd };
  for (const type of reached)
    await announce(deps, { tenantId, type, about: `${month}\n${limitUsd}`, at: new Date(), of, data });
}

/** Sends a message once, and notes what came of it. */
async function sendDelivery(deps: AnnouncementsDeps, delivery: DeliveryRecord): Promise<void> {
  const { deliveries, webhooks } = deps.store;
  const webhook = await webhooks.get(delivery.tenantId, delivery.webhookId);
  if (!webhook?.isEnabled) {
    const error = toErrorView(new AppError("wrong_state", "The webhook was deleted or disabled."));
    return deliveries.end(delivery, "failed", { at: new Date(), error });
  }
  const failed = (error: unknown): DeliveryAttempt => {
    const { status } = Object(error instanceof AppError ? error.details : undefined);
    return { at: new Date(), error: toErrorView(error), ...(typeof status === "number" ? { status } : {}) };
  };
  return sendMessage(deps, {
    message: delivery,
    since: delivery.since,
    body: async () => JSON.parse(delivery.body),
    putOff: (message, next, error) => deliveries.putOff(message, next, error === undefined ? undefined : failed(error)),
    delivered: (status) => deliveries.end(delivery, "delivered", { at: new Date(), status }),
    givenUp: (error) => deliveries.end(delivery, "failed", failed(error)),
  });
}
