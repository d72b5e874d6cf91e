import { createHash } from "node:crypto";
import { toAcceptedView } from "../jobs/job-outcome.ts";
import type { Jobs } from "../jobs/jobs.ts";
import { eventsQueue } from "../jobs/queues.ts";
import type { Waits } from "../jobs/waits.ts";
import { defineWork, recordsOf, submitWork, type Work, type WorkContext } from "../jobs/work.ts";
import { toWellFormed } from "../lib/bounded-json.ts";
import { defined } from "../lib/defined.ts";
import { newId } from "../lib/ids.ts";
import { inOwnPart } from "../net/call-scope.ts";
import type { EventRecord, OpenEvent } from "../store/event-store.ts";
import type { Store } from "../store/store.ts";
import type { TriggerRecord } from "../store/trigger-store.ts";
import type { GuardPolicies } from "../tenancy/guard-policies.ts";
import type { Quotas } from "../tenancy/quotas.ts";
import type { AcceptedEvent } from "./event-schemas.ts";
import { startTrigger, type TriggerStartDeps } from "./start-trigger.ts";

/** How long the id of an event is taken, in ms. */
const TAKEN_MS = 86_400_000;
/** Triggers that one read finds. */
const TRIGGERS = 100;

/** An event that came. `senderId`: by which it is taken once; `source`: whose ids these are. */
type NewEvent = {
  tenantId: string;
  name: string;
  data: unknown;
  senderId?: string | undefined;
  type?: string | undefined;
  sourceId?: string | undefined;
  jobId?: string;
  startedBy: string;
  keyId?: string;
};

type EventsDeps = TriggerStartDeps & {
  store: Pick<Store, "events" | "triggers" | "firings">;
  jobs: Pick<Jobs, "submit" | "find" | "inTurn">;
  quotas: Pick<Quotas, "check">;
  waits: Pick<Waits, "deliverEvent">;
  guards: Pick<GuardPolicies, "take" | "requireClear">;
};

/** Events: each is durable work, which hands it to all that it is for. */
export function makeEvents(deps: EventsDeps) {
  const { events } = deps.store;
  const work = makeEventWork(deps);
  return {
    work,
    /** Takes an event, once by its sender's id. @throws AppError `too_many_concurrent`, `unavailable`. */
    async accept({
      data: given,
      senderId,
      jobId = newId("job"),
      startedBy,
      keyId,
      ...event
    }: NewEvent): Promise<AcceptedEvent> {
      const { tenantId, name, sourceId } = event;
      await deps.guards.requireClear({ tenantId, keyId }, "input", { id: senderId, name });
      const data = toWellFormed(await deps.guards.take({ tenantId, keyId }, "input", given));
      return deps.jobs.inTurn(tenantId, async () => {
        const now = new Date();
        const _id = newId("event");
        const record: EventRecord = {
          ...{ _id, tenantId, jobId, name, ...defined({ senderId, sourceId, type: event.type }) },
          ...{ key: keyOf(sourceId ?? name, senderId ?? jobId), data: JSON.stringify(data ?? null) },
          ...{ isOpen: true, createdAt: now, updatedAt: now, expireAt: new Date(now.getTime() + TAKEN_MS) },
        };
        await deps.quotas.check(tenantId, "openJobs");
        const taken = await events.take(record);
        const about = { title: name, startedBy, ...defined({ keyId }), subject: { name } };
        const known = taken === record ? null : await deps.jobs.find(tenantId, taken.jobId);
        // A repeat whose first attempt died before its job was there submits that.
        const job = known ?? (await submitWork(deps.jobs, work, { record: taken, isInteractive: false, ...about }));
        const { status, statusUrl } = toAcceptedView(job);
        const view = { eventId: taken._id, name, jobId: job._id, kind: "event" as const, status, statusUrl };
        return taken === record ? view : { ...view, duplicate: true };
      });
    },
  };
}

const keyOf = (of: string, senderId: string) => createHash("sha256").update(`${of}\n${senderId}`).digest("base64url");

/** Events as durable work. */
function makeEventWork(deps: EventsDeps): Work {
  const { events } = deps.store;
  return defineWork<OpenEvent>({
    queue: eventsQueue,
    idField: "eventId",
    run: (context) => handOut(deps, context),
    ...recordsOf<OpenEvent>(events),
    async closeOrphan({ tenantId, _id }, job) {
      await (job ? events.finish(tenantId, _id) : events.remove(tenantId, _id));
    },
  });
}

/** Wakes what waits for an event, and starts what it triggers. Safe to run twice. */
async function handOut(deps: EventsDeps, context: WorkContext) {
  const { tenantId, recordId: eventId, isLastAttempt } = context;
  const event = await deps.store.events.begin(tenantId, eventId);
  if (!event) return { eventId };
  const { name, createdAt: at, data: text } = event;
  const data: unknown = text === undefined ? null : JSON.parse(text);
  const woken = await deps.waits.deliverEvent({ tenantId, name, data, eventId, at });
  let started = 0;
  const failures: unknown[] = [];
  for await (const trigger of triggersOf(deps, event)) {
    await context.progress({ stage: "starting", done: started, total: 0 });
    try {
      const start = { trigger, event, data, isLastAttempt, signal: context.signal };
      if (await inOwnPart(() => startTrigger(deps, start))) started += 1;
    } catch (error) {
      context.signal.throwIfAborted();
      failures.push(error); // it may pass: the others are started first
    }
  }
  if (failures.length > 0) throw failures[0];
  await deps.store.events.finish(tenantId, eventId);
  return { eventId, name, woken, started };
}

/** The triggers of an event that were made before it came. */
async function* triggersOf(
  { store: { triggers } }: EventsDeps,
  { tenantId, name, createdAt }: EventRecord,
): AsyncGenerator<TriggerRecord> {
  for (let after = ""; ; ) {
    const page = await triggers.ofEvent(tenantId, name, { after, limit: TRIGGERS });
    yield* page.filter((trigger) => trigger.createdAt <= createdAt);
    after = page.at(-1)?._id ?? "";
    if (page.length < TRIGGERS) return;
  }
}
