import type { Jobs } from "../jobs/jobs.ts";
import { defined, toView } from "../lib/defined.ts";
import { AppError } from "../lib/errors.ts";
import type { FiringEnd, FiringRecord, FiringStore } from "../store/firing-store.ts";
import type { JobState } from "../store/job-state.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import type { StoredMaker } from "../store/schedule-store.ts";
import { type Caller, fromStoredCaller, toStoredCaller } from "../tenancy/roles.ts";
import type { Tenancy } from "../tenancy/tenancy.ts";
import type { FiringView } from "./schemas.ts";

/** How long a firing is kept, in ms: as long as a thousand of its schedule's intervals, within these. */
const KEPT_INTERVALS = 1_000;
const KEPT_AT_LEAST_MS = 3_600_000;
const KEPT_AT_MOST_MS = 30 * 86_400_000;

/** The id of the firing that starts a job. */
export const firingIdOf = (jobId: string) => jobId.replace(/^job_/, "fir_");

type NewFiring = Pick<FiringRecord, "tenantId" | "ownerId" | "jobId" | "slotAt">;

/** A firing at its first attempt, but for its state. `intervalMs`: until the next one. */
export function newFiring(
  of: NewFiring,
  { now, intervalMs = KEPT_AT_MOST_MS }: { now: Date; intervalMs?: number | undefined },
) {
  const keptMs = Math.min(Math.max(intervalMs * KEPT_INTERVALS, KEPT_AT_LEAST_MS), KEPT_AT_MOST_MS);
  const expireAt = new Date(now.getTime() + keptMs);
  return { _id: firingIdOf(of.jobId), ...of, attempts: 1, createdAt: now, expireAt };
}

/** A firing that has ended at once: what came of it is known. */
export function endedFiring<E extends FiringEnd>(of: NewFiring, end: E) {
  const now = new Date();
  return { ...newFiring(of, { now }), startedAt: now, ...end };
}

/** The firings of a schedule or a trigger, newest first, each with the state of its job. */
export async function listFirings(
  deps: { firings: FiringStore; jobs: Pick<Jobs, "statesOf"> },
  { tenantId, ownerId, page }: { tenantId: string; ownerId: string; page: PageQuery },
): Promise<Page<FiringView>> {
  const found = await deps.firings.list(tenantId, ownerId, page);
  const states = await deps.jobs.statesOf(
    tenantId,
    found.data.map(({ jobId }) => jobId),
  );
  return mapPage(found, (firing) => toFiringView(firing, states.get(firing.jobId)));
}

export function toFiringView(firing: FiringRecord, state: JobState | undefined): FiringView {
  const { _id: firingId, slotAt, status, jobId, documents, missed, isManual: manual, eventId } = firing;
  const { reason, error, createdAt, startedAt } = firing;
  const job = state && { jobId, status: state, statusUrl: `/jobs/${jobId}` };
  const about = { documents, missed, manual, eventId, reason, error, createdAt, startedAt };
  return toView({ firingId, slotAt, status, job, ...about });
}

/** What the record of a schedule or a trigger keeps of who made it. */
export const toMaker = (caller: Caller): StoredMaker => ({
  ...toStoredCaller(caller),
  ...defined({ endsAt: caller.expiresAt }),
});

/**
 * The caller for whom something is started that they made: what a key makes ends with it.
 * @throws AppError `insufficient_scope` once its key, or its access token, is revoked or has expired.
 */
export async function callerOf(
  tenancy: Pick<Tenancy, "isUsableKey">,
  tenantId: string,
  { endsAt, ...stored }: StoredMaker,
): Promise<Caller> {
  const isOver = endsAt !== undefined && endsAt.getTime() <= Date.now();
  // An access token has no record; it always has an end.
  const isUsable = !isOver && ((await tenancy.isUsableKey(tenantId, stored.keyId)) ?? endsAt !== undefined);
  if (isUsable) return { ...fromStoredCaller(tenantId, stored), ...defined({ expiresAt: endsAt }) };
  throw new AppError(
    "insufficient_scope",
    "The key that made this was revoked or has expired; replace it by another key.",
  );
}

/** Whether no later firing can do better: what it starts is gone, or the key that made it. */
export const isForGood = (error: unknown) =>
  error instanceof AppError && (error.code === "not_found" || error.code === "insufficient_scope");
