import { defined } from "../lib/defined.ts";
import { isFinal } from "../store/job-state.ts";
import type { Store } from "../store/store.ts";
import type { WaitRecord } from "../store/wait-store.ts";
import { fits, keysOf, matchKeyOf } from "./event-match.ts";
import type { Jobs } from "./jobs.ts";
import { Suspended } from "./reschedule.ts";
import { sweepEach } from "./sweep-each.ts";

/** Waits that one read of a sweep, or of an event, finds; and reads of one sweep. */
const SWEPT = 200;
const MAX_ROUNDS = 20;
/** How long an end may stay without effect on its job until a sweep repeats it, in ms. */
const SETTLE_AGAIN_AFTER_MS = 5_000;
/** A wait that ends within this time is also ended by a timer of its process, in ms; and how many timers there are. */
const SOON_MS = 2_000;
const MAX_TIMERS = 2_000;
/** Longest data of an event that a wait keeps, in characters of JSON. */
const MAX_DATA = 64_000;

/** What a job is to wait for: an event by its name (`match`: fields that its data must have), or only until a time. */
export type WaitRequest = {
  tenantId: string;
  jobId: string;
  /** Derived from what waits, so that a repeated attempt waits for the same. */
  waitId: string;
  until: Date;
  event?: { name: string; match?: Record<string, unknown> | undefined };
};

/** An event that came. `at`: when it came first, where it is delivered again. */
export type WaitedEvent = { tenantId: string; name: string; data: unknown; eventId: string; at?: Date };

/** The job of something that has ended, and the lease under which a sweep saw it run. */
type Wakened = { tenantId: string; jobId: string; seenLease?: string };

export type Waits = ReturnType<typeof makeWaits>;

type WaitsDeps = { store: Pick<Store, "waits">; jobs: Pick<Jobs, "resume" | "find">; onError(error: unknown): void };

/**
 * What suspended jobs wait for. The work of a job calls `begin`, and throws what `suspend` returns while the wait is pending: then
 * neither a worker nor Redis holds anything for the job. Whoever ends the wait does so by one compare-and-set on its record,
 * and then wakes the job: the sweep when its time is over, and `deliverEvent({ tenantId, name, data, eventId })` when an event
 * has come. What dies between the two is made good by the sweep.
 */
export function makeWaits(deps: WaitsDeps) {
  const { waits } = deps.store;
  const { wake, end, settle, endInTime } = makeEnds(deps);
  const soon = makeTimers((wait: WaitRecord) => endInTime(wait).catch(deps.onError));
  return {
    /** Records what a job is about to wait for, unless that is there; answers how it stands. */
    async begin({ tenantId, jobId, waitId, until, event }: WaitRequest): Promise<WaitRecord> {
      const there = await waits.get(tenantId, waitId);
      if (there) return there;
      const { name, match } = event ?? {};
      const wait = await waits.ensure({
        _id: waitId,
        tenantId,
        jobId,
        status: "pending",
        createdAt: new Date(),
        expiresAt: until,
        ...defined({ event: name, match: match && JSON.stringify(match) }),
        ...(name === undefined ? {} : { matchKey: matchKeyOf(match) }),
      });
      soon.add(wait);
      return wait;
    },
    /** What the work of a job throws to wait for one of these. */
    suspend: (pending: readonly Pending[]) => new Suspended(isOver(waits, pending)),
    /** The same as a question, for what throws an error of its own. */
    isOver: (pending: readonly Pending[]) => isOver(waits, pending),
    wake,
    /** Ends a wait that another part brings about, as the end of a job. Safe to repeat; false when it has ended before. */
    async end(tenantId: string, waitId: string, data: unknown): Promise<boolean> {
      const wait = await waits.get(tenantId, waitId);
      return wait !== null && end(wait, { status: "over", data: toData(data) });
    },
    /**
     * Ends the waits of a tenant that an event fits and that began before it, and wakes their jobs; answers how many. Safe to
     * repeat, as when the process died before all of them were woken. @throws the first failure, after the others were tried.
     */
    async deliverEvent({ tenantId, name, data, eventId, at = new Date() }: WaitedEvent): Promise<number> {
      const how = { status: "over" as const, eventId, data: toData(data) };
      const query = { tenantId, event: name, at, ...defined({ keys: keysOf(data) }) };
      let woken = 0;
      for (let after = ""; ; ) {
        const page = await waits.forEvent(query, { after, limit: SWEPT });
        const fitting = page.filter(({ match }) => match === undefined || fits(JSON.parse(match), data));
        await sweepEach(fitting, async (wait) => {
          if (await end(wait, how)) woken += 1;
        });
        after = page.at(-1)?._id ?? "";
        if (page.length < SWEPT) return woken;
      }
    },
    /** Ends waits whose time is over, and wakes jobs that do not know of an end. Any number of processes may run it. */
    async sweep(): Promise<void> {
      for (let round = 0; round < MAX_ROUNDS; round += 1) {
        const overdue = await waits.overdue(new Date(), { limit: SWEPT });
        await sweepEach(overdue, endInTime);
        if (overdue.length < SWEPT) break;
      }
      for (const wait of await waits.overdue(new Date(Date.now() + SOON_MS), { limit: SWEPT })) soon.add(wait);
      await sweepEach(await waits.unsettled(new Date(Date.now() - SETTLE_AGAIN_AFTER_MS), SWEPT), settle);
    },
    /** Leaves what would end soon to other processes. */
    close: soon.close,
  };
}

type Pending = Pick<WaitRecord, "_id" | "tenantId">;

/** Asks whether one of these has ended. */
function isOver(waits: Store["waits"], pending: readonly Pending[]): () => Promise<boolean> {
  return async () => {
    const now = await Promise.all(pending.map(({ tenantId, _id }) => waits.get(tenantId, _id)));
    return now.some((wait) => wait?.status !== "pending");
  };
}

/** How waits end, each once. */
function makeEnds({ store: { waits }, jobs }: WaitsDeps) {
  /**
   * Lets the job of something that has ended go on. True when the job knows of it: it was resumed, is about to be taken, was taken
   * since a sweep saw it under another lease, or is over. Else that lease, for the sweep that asks again.
   */
  const wake = async ({ tenantId, jobId, seenLease }: Wakened): Promise<true | { lease: string | undefined }> => {
    if (await jobs.resume(jobId)) return true;
    const job = await jobs.find(tenantId, jobId);
    if (!job || isFinal(job.status) || job.status === "queued") return true;
    const lease = job.lease?.token;
    return (seenLease !== undefined && lease !== undefined && lease !== seenLease) || { lease };
  };
  const settle = async (wait: WaitRecord) => {
    const woken = await wake(wait);
    await (woken === true ? waits.settle(wait.tenantId, wait._id) : waits.putOff(wait, woken.lease));
  };
  const end = async (wait: WaitRecord, how: Parameters<typeof waits.end>[1]): Promise<boolean> => {
    const ended = await waits.end(wait, how);
    if (ended) await settle(ended);
    return ended !== null;
  };
  const endInTime = (wait: WaitRecord) => end(wait, { status: wait.event === undefined ? "over" : "expired" });
  return { wake, settle, end, endInTime };
}

/** Ends waits at their time, to the millisecond. Those of a process that dies before are left to the sweep. */
function makeTimers(onTime: (wait: WaitRecord) => unknown) {
  const timers = new Map<string, NodeJS.Timeout>();
  return {
    /** Only for a wait that ends soon. */
    add(wait: WaitRecord): void {
      const leftMs = wait.expiresAt.getTime() - Date.now();
      if (leftMs > SOON_MS || timers.size >= MAX_TIMERS || timers.has(wait._id)) return;
      const fire = () => {
        timers.delete(wait._id);
        onTime(wait);
      };
      timers.set(wait._id, setTimeout(fire, Math.max(0, leftMs)).unref());
    },
    close(): void {
      for (const timer of timers.values()) clearTimeout(timer);
      timers.clear();
    },
  };
}

/** An event's data as a wait keeps it. What is too long is left out, and says so. */
function toData(data: unknown): string {
  const text = (JSON.stringify(data) ?? "null").toWellFormed();
  return text.length <= MAX_DATA ? text : JSON.stringify({ tooLong: text.length });
}
