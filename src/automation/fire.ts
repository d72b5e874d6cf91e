import { slotJobId } from "../jobs/slots.ts";
import { defined } from "../lib/defined.ts";
import { AppError, toErrorView } from "../lib/errors.ts";
import { forEachConcurrent } from "../lib/for-each-concurrent.ts";
import { jittered } from "../lib/jitter.ts";
import type { Logger } from "../observe/logger.ts";
import type { FiringEnd, FiringRecord } from "../store/firing-store.ts";
import { isFinal } from "../store/job-state.ts";
import type { ScheduleRecord } from "../store/schedule-store.ts";
import { isStoreUnavailable } from "../store/store-errors.ts";
import type { Tenancy } from "../tenancy/tenancy.ts";
import { callerOf, isForGood, newFiring } from "./firings.ts";
import { type SchedulesDeps, toNext } from "./schedules.ts";
import { readInput, readTarget } from "./targets.ts";
import { countSlots, nextSlot } from "./times.ts";

/** Due ones that one read finds, those of a tenant that one sweep takes, how many at a time, and reads of one sweep. */
const SWEPT = 200;
const SWEPT_OF_TENANT = 200;
const PARALLEL = 8;
/** Slots of one schedule that one look takes: after a pause it catches up. */
const SLOTS_OF_SCHEDULE = 20;
const MAX_READS = 20;
/** A slot that nobody could take for this long was missed, in ms. */
const MISSED_AFTER_MS = 60_000;
/** A firing whose process says nothing for this long is taken by another one, in ms. */
const LEASE_MS = 30_000;
/** Firings of a schedule that wait for the one before them. */
const MAX_WAITING = 1_000;
/** How long such a one waits until it looks again, in ms: a tenth of the age of the job before it, within these. */
const LOOK_AFTER_MS = 500;
const LOOK_AT_MOST_MS = 60_000;
/** The same while the one before it waits too: that wakes it once it has ended. */
const NOT_NEXT_MS = 30_000;
/** Attempts to start a firing, and the wait after the first, in ms, which doubles: about nine minutes in all. */
const MAX_ATTEMPTS = 10;
const BACKOFF_MS = 1_000;

type FireDeps = SchedulesDeps & { tenancy: Pick<Tenancy, "isUsableKey">; logger: Logger };

/**
 * Takes what is due: any number of processes may sweep. A slot is taken by the insertion of its firing, whose id is made of
 * schedule and slot, and then the schedule is put forward by compare-and-set. What the firing starts has a job id of its own,
 * so that whoever continues it, after a process that died or was frozen, starts it once.
 */
export function makeSweep(deps: FireDeps) {
  const { schedules, firings } = deps.store;
  return async (signal: AbortSignal): Promise<void> => {
    await sweepFairly(deps, signal, { due: schedules.due, work: takeSlots });
    await sweepFairly(deps, signal, { due: firings.due, work: continueFiring });
  };
}

type Swept<T> = {
  due(now: Date, limit: number, exceptTenants: readonly string[]): Promise<T[]>;
  work(deps: FireDeps, item: T): Promise<unknown>;
};

/** Reads and works page by page; a tenant with many leaves turns to the others. */
async function sweepFairly<T extends { _id: string; tenantId: string }>(
  deps: FireDeps,
  signal: AbortSignal,
  { due, work }: Swept<T>,
): Promise<void> {
  const taken = new Map<string, number>();
  let full: string[] = [];
  for (let read = 0; read < MAX_READS && !signal.aborted; read += 1) {
    const found = await due(new Date(), SWEPT, full);
    if (found.length === 0) return;
    for (const { tenantId } of found) taken.set(tenantId, (taken.get(tenantId) ?? 0) + 1);
    full = [...taken].filter(([, count]) => count >= SWEPT_OF_TENANT).map(([tenantId]) => tenantId);
    // In an order of its own: processes that sweep at the same time begin at different ones.
    const shuffled = found.map((item) => ({ item, at: Math.random() })).sort((a, b) => a.at - b.at);
    await forEachConcurrent(shuffled, PARALLEL, async ({ item }) => {
      if (signal.aborted) return;
      try {
        await work(deps, item);
      } catch (error) {
        if (isStoreUnavailable(error)) throw error;
        deps.logger.warn({ err: error, id: item._id }, "a firing could not be taken; a later sweep will");
      }
    });
    if (found.length < SWEPT) return;
  }
}

/** Takes the slots of a schedule that have come, one after the other. */
async function takeSlots(deps: FireDeps, due: ScheduleRecord): Promise<void> {
  let schedule: ScheduleRecord | undefined = due;
  for (
    let slots = 0;
    slots < SLOTS_OF_SCHEDULE && schedule?.dueAt && schedule.dueAt.getTime() <= Date.now();
    slots += 1
  )
    schedule = await takeSlot(deps, schedule);
}

/** Records the firing of the next slot, puts the schedule forward, and starts what is to be started. Returns the schedule then. */
async function takeSlot(deps: FireDeps, schedule: ScheduleRecord): Promise<ScheduleRecord | undefined> {
  const { slotAt, dueAt: _due, ...rest } = schedule;
  if (slotAt === undefined) return undefined;
  const planned = await planFiring(deps, schedule, slotAt);
  const firing = await deps.store.firings.ensure(planned);
  const isStarted = firing.status === "starting" || firing.status === "waiting" || firing.status === "started";
  const last = isStarted ? { firingId: firing._id, jobId: firing.jobId } : schedule.last;
  const next = { ...toNext(firing.nextSlotAt, schedule.jitterMs), ...defined({ last }) };
  const isOurs = await deps.store.schedules.advance(schedule, next);
  if (firing === planned && firing.status === "starting") await start(deps, firing, schedule);
  return isOurs ? { ...rest, ...next } : undefined;
}

/** What becomes of a slot, as its firing says it; whoever records it first decides. */
async function planFiring(deps: FireDeps, schedule: ScheduleRecord, slotAt: Date): Promise<FiringRecord> {
  const { _id: ownerId, tenantId, dueAt = slotAt, catchUp } = schedule;
  const now = new Date();
  const isLate = now.getTime() - dueAt.getTime() > MISSED_AFTER_MS;
  const missed = isLate ? countSlots(schedule, slotAt, now) : 0;
  const nextSlotAt = nextSlot(schedule, isLate ? now : slotAt);
  const jobId = slotJobId(ownerId, slotAt);
  const intervalMs = nextSlotAt && nextSlotAt.getTime() - slotAt.getTime();
  const base = {
    ...newFiring({ tenantId, ownerId, jobId, slotAt }, { now, intervalMs }),
    ...{ ...defined({ nextSlotAt }), ...(missed > 0 ? { missed } : {}) },
  };
  if (isLate && catchUp === "none")
    return { ...base, status: "missed", startedAt: now, reason: "No worker could take it in time." };
  const { last, overlap } = schedule;
  const waitMs = last && (await waitFor(deps, tenantId, last));
  if (waitMs === undefined) return { ...base, status: "starting", nextAt: new Date(now.getTime() + LEASE_MS) };
  const skipped = (reason: string): FiringRecord => ({ ...base, status: "skipped", startedAt: now, reason });
  if (overlap === "skip") return skipped("The job before it has not ended.");
  if ((await deps.store.firings.countWaiting(tenantId, ownerId, MAX_WAITING)) >= MAX_WAITING)
    return skipped(`${MAX_WAITING.toLocaleString("en-US")} firings wait for their turn already.`);
  return { ...base, status: "waiting", ...defined({ after: last }), nextAt: new Date(now.getTime() + waitMs) };
}

/** When to look again at what a firing has started, in ms; undefined when that is over. */
async function waitFor(
  { store, jobs }: FireDeps,
  tenantId: string,
  { firingId, jobId }: { firingId: string; jobId: string },
): Promise<number | undefined> {
  const job = await jobs.find(tenantId, jobId);
  if (job && isFinal(job.status)) return undefined;
  if (job) return Math.min(Math.max((Date.now() - job.createdAt.getTime()) / 10, LOOK_AFTER_MS), LOOK_AT_MOST_MS);
  const firing = await store.firings.get(tenantId, firingId);
  return firing?.status === "starting" || firing?.status === "waiting" ? NOT_NEXT_MS : undefined;
}

/** Looks at an open firing: at one that waits for its turn, and at one whose process has said nothing for too long. */
async function continueFiring(deps: FireDeps, firing: FiringRecord): Promise<void> {
  const { firings, schedules } = deps.store;
  const { tenantId, ownerId, after } = firing;
  const schedule = await schedules.get(tenantId, ownerId);
  if (!schedule) {
    await firings.end(firing, { status: "skipped", reason: "The schedule was deleted." });
    return;
  }
  const now = Date.now();
  const waitMs = firing.status === "waiting" && after ? await waitFor(deps, tenantId, after) : undefined;
  if (waitMs !== undefined) {
    await firings.putOff(firing, { status: "waiting", attempts: 1, nextAt: new Date(now + waitMs) });
    return;
  }
  const attempts = firing.status === "waiting" ? 1 : firing.attempts + 1;
  const leased = { status: "starting" as const, attempts, nextAt: new Date(now + LEASE_MS) };
  if (await firings.putOff(firing, leased)) await start(deps, { ...firing, ...leased }, schedule);
}

/** Starts what a firing is for. A failure that may pass is tried again; any other one stays on the firing. */
async function start(deps: FireDeps, firing: FiringRecord, schedule: ScheduleRecord): Promise<void> {
  const { firings } = deps.store;
  const { tenantId, jobId, attempts } = firing;
  const end = async (how: FiringEnd) => {
    await firings.end(firing, how);
    if (schedule.overlap === "queue") await firings.wakeNext(firing, new Date(Date.now() + LOOK_AFTER_MS));
  };
  try {
    const caller = await callerOf(deps.tenancy, tenantId, schedule.maker);
    const target = readTarget(schedule.target);
    const started = await deps.starter.start({ caller, jobId, target, input: readInput(schedule.input) });
    await end({ status: "started", ...started });
  } catch (error) {
    if (isStoreUnavailable(error)) throw error; // it stays open, and is continued when its lease has ended
    const { retryable = true, retryAfterMs = 0 } = error instanceof AppError ? error : {};
    if (retryable && attempts < MAX_ATTEMPTS) {
      const waitMs = Math.max(jittered(BACKOFF_MS * 2 ** (attempts - 1)), retryAfterMs);
      await firings.putOff(firing, { status: "starting", attempts, nextAt: new Date(Date.now() + waitMs) });
      return;
    }
    deps.logger.warn({ err: error, tenantId, scheduleId: schedule._id, jobId }, "a firing could not be started");
    await end({ status: "failed", error: toErrorView(error) });
    if (isForGood(error)) await deps.store.schedules.disable(schedule, toErrorView(error).message);
  }
}
