import { slotJobId } from "../jobs/slots.ts";
import { defined } from "../lib/defined.ts";
import { AppError, toErrorView } from "../lib/errors.ts";
import type { EventRecord } from "../store/event-store.ts";
import type { FiringEnd } from "../store/firing-store.ts";
import type { Store } from "../store/store.ts";
import { isStoreFailure } from "../store/store-errors.ts";
import type { TriggerRecord } from "../store/trigger-store.ts";
import type { Tenancy } from "../tenancy/tenancy.ts";
import type { Evaluator } from "../workflows/evaluator.ts";
import { callerOf, endedFiring, firingIdOf, isForGood } from "./firings.ts";
import { readTarget, type Starter, type Target } from "./targets.ts";

export type TriggerStartDeps = {
  store: Pick<Store, "triggers" | "firings">;
  starter: Starter;
  evaluator: Pick<Evaluator, "holds" | "valueOf">;
  tenancy: Pick<Tenancy, "isUsableKey">;
};

type TriggerStart = {
  trigger: TriggerRecord;
  event: EventRecord;
  data: unknown;
  isLastAttempt: boolean;
  signal: AbortSignal;
};

/**
 * Starts what an event triggers, once: the job's id is made of trigger and event. What comes of it is on a firing. Answers
 * whether it was started, now or before. @throws what may pass, unless it is the last attempt.
 */
export async function startTrigger(deps: TriggerStartDeps, start: TriggerStart): Promise<boolean> {
  const { trigger, event, isLastAttempt } = start;
  const { tenantId, _id: ownerId } = trigger;
  const { createdAt: slotAt, _id: eventId } = event;
  const jobId = slotJobId(`${ownerId}\n${eventId}`, slotAt);
  const known = await deps.store.firings.get(tenantId, firingIdOf(jobId));
  if (known) return known.status === "started";
  const keep = (end: FiringEnd) =>
    deps.store.firings.ensure({ ...endedFiring({ tenantId, ownerId, jobId, slotAt }, end), eventId });
  try {
    const found = await toStart(deps, start);
    if (!found) return false;
    await keep({ status: "started", ...(await deps.starter.start({ ...found, jobId })) });
    return true;
  } catch (error) {
    start.signal.throwIfAborted();
    if (isStoreFailure(error)) throw error; // it may be started, and the job does not end by that
    const isFinal = error instanceof AppError && !error.retryable;
    if (!isFinal && !isLastAttempt) throw error;
    await keep({ status: "failed", error: toErrorView(error) });
    if (isForGood(error)) await deps.store.triggers.disable(trigger, toErrorView(error).message);
    return false;
  }
}

/** For whom what is started with which input; null when the trigger's condition is not true of the event. */
async function toStart({ evaluator, tenancy }: TriggerStartDeps, { trigger, event, data, signal }: TriggerStart) {
  const { tenantId, _id, version, when, inputFrom, maker } = trigger;
  const asker = { tenantId, key: `${_id}:${version}`, signal };
  const { name, senderId, _id: eventId, type, sourceId, createdAt } = event;
  const about = defined({ type, sourceId });
  const values = { event: { name, id: senderId ?? eventId, data, receivedAt: createdAt.toISOString(), ...about } };
  if (when !== undefined && !(await evaluator.holds(asker, { field: "trigger", rule: when, values }))) return null;
  const target = readTarget(trigger.target);
  const value =
    inputFrom === undefined ? data : await evaluator.valueOf(asker, { at: "inputFrom", expression: inputFrom, values });
  return { caller: await callerOf(tenancy, tenantId, maker), target, input: toInput(target, value, inputFrom) };
}

/** What a target gets of a value: agents and patterns a text, and agents an object that is the body of a run as that. */
function toInput({ agentId, composite, workflowId }: Target, value: unknown, inputFrom: string | undefined): unknown {
  if (workflowId !== undefined) return value;
  if (agentId === undefined && composite === undefined) return undefined;
  const isBody = agentId !== undefined && inputFrom !== undefined && typeof Object(value).input === "string";
  return isBody || typeof value === "string" ? value : JSON.stringify(value);
}
