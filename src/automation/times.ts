import { Cron } from "croner";
import { invalidRequest } from "../lib/errors.ts";
import type { ScheduleRecord } from "../store/schedule-store.ts";

/** When a schedule fires: what of its record says it. */
export type Timing = Pick<ScheduleRecord, "cron" | "every" | "at" | "timezone" | "anchorAt">;

/** Longest cron pattern, in characters. */
export const MAX_PATTERN = 200;
/** Slots that are counted when many have passed; beyond it the number is a lower bound. */
export const MAX_COUNTED = 1_000;

/** A date and time with its offset from UTC. */
const hasOffset = /(Z|[+-]\d\d:?\d\d)$/i;

/** `?` would stand for the time of the reading, and a date is `at`. */
const isPattern = (pattern: string) => /^[A-Za-z0-9*,/#@+ -]+$/.test(pattern);

/**
 * The first slot after a time; undefined when there is none. Over daylight saving, a cron pattern of times of day (no `*`, no step)
 * fires once for each: at the end of the gap if its time falls into it. Other patterns follow the hours as they pass.
 */
export function nextSlot(timing: Timing, after: Date): Date | undefined {
  const { cron, every, at, timezone, anchorAt } = timing;
  if (cron !== undefined) return toCron(cron, timezone).nextRun(after) ?? undefined;
  if (every !== undefined) {
    const passed = Math.floor((after.getTime() - anchorAt.getTime()) / every);
    return new Date(anchorAt.getTime() + Math.max(1, passed + 1) * every);
  }
  if (at === undefined) return undefined;
  const slot = hasOffset.test(at) ? new Date(at) : toCron(at, timezone).nextRun(after);
  return slot !== null && slot > after ? slot : undefined;
}

/** The next slots after a time, at most `limit`. */
export function nextSlots(timing: Timing, after: Date, limit: number): Date[] {
  const slots: Date[] = [];
  for (let at = nextSlot(timing, after); at !== undefined && slots.length < limit; at = nextSlot(timing, at))
    slots.push(at);
  return slots;
}

/** How many slots there are after `from`, up to `to`; counts no further than `MAX_COUNTED`. */
export function countSlots(timing: Timing, from: Date, to: Date): number {
  if (timing.every !== undefined) {
    const count = Math.floor((to.getTime() - from.getTime()) / timing.every);
    return Math.min(Math.max(0, count), MAX_COUNTED);
  }
  let count = 0;
  for (let at = nextSlot(timing, from); at !== undefined && at <= to && count < MAX_COUNTED; at = nextSlot(timing, at))
    count += 1;
  return count;
}

/** @throws AppError `invalid_request` for times that cannot be read, or that never come after `now`. */
export function checkTiming(timing: Timing, now: Date): void {
  const { cron, at, timezone } = timing;
  if (!isTimezone(timezone))
    throw invalidRequest("timezone", "timezone: is no zone of the IANA database, as Europe/Berlin or UTC.");
  if (cron !== undefined && !isPattern(cron))
    throw invalidRequest("cron", "cron: has five fields, or six with seconds first, as `0 9 * * 1-5`.");
  try {
    if (cron !== undefined) toCron(cron, timezone);
  } catch (error) {
    throw invalidRequest("cron", `cron: ${readable(error)}`);
  }
  const field = cron !== undefined ? "cron" : at !== undefined ? "at" : "every";
  if (nextSlot(timing, now) === undefined)
    throw invalidRequest(field, field === "at" ? "at: must be in the future." : `${field}: this time never comes.`);
}

const toCron = (pattern: string, timezone: string) =>
  new Cron(pattern, { timezone, paused: true, mode: "5-or-6-parts", fixedTimeRule: "no-wildcard" });

function isTimezone(timezone: string): boolean {
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone: timezone }) !== undefined;
  } catch {
    return false;
  }
}

/** The library's message, without its own names. */
function readable(error: unknown): string {
  const text = error instanceof Error ? error.message.replace(/^Cron\w*:\s*/, "") : "cannot be read";
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
