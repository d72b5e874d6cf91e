import { checkRoom, makeDefinitions, toVersionView } from "../definitions/definitions.ts";
import type { ToolNames } from "../definitions/tool-names.ts";
import type { Jobs } from "../jobs/jobs.ts";
import { defined } from "../lib/defined.ts";
import { invalidRequest } from "../lib/errors.ts";
import { jittered } from "../lib/jitter.ts";
import type { PageQuery } from "../store/page.ts";
import type { ScheduleChange, ScheduleRecord } from "../store/schedule-store.ts";
import type { Store } from "../store/store.ts";
import type { GuardPolicies } from "../tenancy/guard-policies.ts";
import type { Caller } from "../tenancy/roles.ts";
import { endedFiring, listFirings, toFiringView, toMaker } from "./firings.ts";
import type { FiringView, ScheduleBody, ScheduleSummary, ScheduleView } from "./schemas.ts";
import { readInput, readTarget, type Starter } from "./targets.ts";
import { checkTiming, nextSlot, nextSlots } from "./times.ts";

/** Times that a schedule shows. */
const SHOWN_TIMES = 5;

export type SchedulesDeps = {
  store: Pick<Store, "schedules" | "firings">;
  starter: Starter;
  guards: Pick<GuardPolicies, "take" | "requireClear">;
  jobs: Pick<Jobs, "find" | "statesOf">;
  toolNames: ToolNames;
};

type ScheduleReplacement = ScheduleBody & { version?: number | undefined };

/** What tenants have started at times. */
export function makeSchedules(deps: SchedulesDeps) {
  const { schedules, firings } = deps.store;
  const definitions = makeDefinitions({
    what: "schedule",
    store: schedules,
    toolNames: deps.toolNames,
    checkQuota: (tenantId) => checkRoom("schedules", { store: schedules, tenantId }),
    toChange: (caller, body: Omit<ScheduleReplacement, "version">, earlier: ScheduleChange | undefined) =>
      toChange(deps, caller, { body, earlier }),
    toView: toSummary,
    toSummary,
  });
  const { find } = definitions;
  return {
    /** @throws AppError `invalid_request`, `not_found` for its target, `quota_exceeded`, `compliance_blocked`. */
    create: definitions.create,
    list: definitions.list,
    /** @throws AppError `not_found`. */
    async get(tenantId: string, id: string): Promise<ScheduleView> {
      const schedule = await find(tenantId, id);
      return { ...toSummary(schedule), nextTimes: nextTimesOf(schedule) };
    },
    /** Its firings have the rights of who replaced it. @throws AppError as `create`; `insufficient_role`, `wrong_state`. */
    replace: definitions.replace,
    remove: definitions.remove,
    /** @throws AppError `not_found`. */
    async firings(tenantId: string, id: string, page: PageQuery) {
      await find(tenantId, id);
      return listFirings({ firings, jobs: deps.jobs }, { tenantId, ownerId: id, page });
    },
    /**
     * Starts its target now, with the caller's own rights, whatever else is under way; its times stay as they are.
     * @throws AppError `not_found`, and as the target does.
     */
    async run(caller: Caller, id: string, jobId: string): Promise<FiringView> {
      const { tenantId } = caller;
      const { target, input } = await find(tenantId, id);
      const started = await deps.starter.start({ caller, jobId, target: readTarget(target), input: readInput(input) });
      const of = { tenantId, ownerId: id, jobId, slotAt: new Date() };
      const firing = await firings.ensure({ ...endedFiring(of, { status: "started", ...started }), isManual: true });
      return toFiringView(firing, (await deps.jobs.find(tenantId, jobId))?.status);
    },
  };
}

/** What is stored of a body; its firings have the rights of the caller. Times that did not change keep the firing that comes next, also one that is overdue. */
async function toChange(
  { starter, guards }: SchedulesDeps,
  caller: Caller,
  given: { body: ScheduleBody; earlier: ScheduleChange | undefined },
): Promise<ScheduleChange> {
  const { earlier } = given;
  const { enabled: isEnabled, ...body } = given.body;
  const { name, cron, every, at, timezone, overlap, catchUp, jitterMs } = body;
  const times = Object.values({ cron, every, at }).filter((value) => value !== undefined);
  if (times.length !== 1) throw invalidRequest("cron", "cron: give exactly one of cron, every and at.");
  await starter.check(caller, body.target, body.input);
  const { target, input } = await guardStart(guards, caller, body);
  const now = new Date();
  const isSame = (field: "cron" | "every" | "at" | "timezone") =>
    earlier !== undefined && earlier[field] === body[field];
  const anchorAt = earlier !== undefined && isSame("every") ? earlier.anchorAt : now;
  const timing = { ...defined({ cron, every, at }), timezone, anchorAt };
  const isUnchanged = isSame("cron") && isSame("every") && isSame("at") && isSame("timezone");
  if (!isUnchanged) checkTiming(timing, now);
  const isKept = isUnchanged && earlier?.isEnabled === true;
  const next = isKept
    ? defined({ slotAt: earlier.slotAt, dueAt: earlier.dueAt })
    : toNext(nextSlot(timing, now), jitterMs);
  return {
    ...{ name, ...timing, target: JSON.stringify(target), overlap, catchUp, jitterMs, isEnabled },
    ...{ maker: toMaker(caller), ...defined({ input: input === undefined ? undefined : JSON.stringify(input) }) },
    ...(isEnabled ? next : {}),
  };
}

/** What is started, and with what, as it may be kept. @throws AppError `compliance_blocked`, `unavailable`. */
async function guardStart(
  guards: SchedulesDeps["guards"],
  { tenantId, keyId }: Caller,
  { target, input }: Pick<ScheduleBody, "target" | "input">,
) {
  const { agentId, workflowId, ingest } = target;
  if (ingest) await guards.requireClear({ tenantId, keyId }, "ingest", { "target.ingest": JSON.stringify(ingest) });
  return { target, ...(await guards.take({ tenantId, keyId, agentId, workflowId }, "input", { input })) };
}

/** The slot that comes next, and when it is taken. */
export const toNext = (slotAt: Date | undefined, jitterMs: number) =>
  slotAt === undefined
    ? {}
    : { slotAt, dueAt: new Date(slotAt.getTime() + jitterMs - jittered(jitterMs, { share: 1 })) };

function nextTimesOf(schedule: ScheduleRecord): string[] {
  const { slotAt } = schedule;
  if (slotAt === undefined) return [];
  const further = nextSlots(schedule, new Date(Math.max(Date.now(), slotAt.getTime())), SHOWN_TIMES);
  return [slotAt, ...further].slice(0, SHOWN_TIMES).map((time) => time.toISOString());
}

function toSummary(schedule: ScheduleRecord): ScheduleSummary {
  const { _id: scheduleId, name, cron, every, at, timezone, overlap, catchUp, jitterMs } = schedule;
  const { isEnabled: enabled, slotAt, disabledBecause } = schedule;
  return {
    ...{ scheduleId, name, ...defined({ cron, every, at }), timezone, target: readTarget(schedule.target) },
    ...defined({ input: readInput(schedule.input) }),
    ...{ overlap, catchUp, jitterMs, enabled },
    ...defined({ nextAt: slotAt?.toISOString(), disabledBecause }),
    ...toVersionView(schedule),
  };
}
