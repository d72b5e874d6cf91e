import { z } from "zod";
import { replacementOf, versionFields } from "../definitions/definitions.ts";
import { errorViewSchema } from "../jobs/job-view.ts";
import { idSchema } from "../lib/ids.ts";
import { firingStates } from "../store/firing-store.ts";
import { jobStates } from "../store/job-state.ts";
import { targetSchema } from "./targets.ts";
import { MAX_PATTERN } from "./times.ts";

/** The shortest interval, and the longest: 400 days, in ms. */
const MIN_EVERY_MS = 1_000;
const MAX_EVERY_MS = 400 * 86_400_000;
const MAX_JITTER_MS = 3_600_000;

/** The body of `POST /schedules`. */
export const scheduleBodySchema = z.strictObject({
  name: z.string().trim().min(1).max(200),
  cron: z
    .string()
    .trim()
    .max(MAX_PATTERN)
    .optional()
    .describe("Five fields, or six with seconds first, as `0 9 * * 1-5`; this, `every` or `at`"),
  every: z.int().min(MIN_EVERY_MS).max(MAX_EVERY_MS).optional().describe("An interval in ms"),
  at: z.iso
    .datetime({ offset: true, local: true })
    .optional()
    .describe("Once; a date and time of the zone, unless it names its offset"),
  timezone: z.string().min(1).max(64).default("UTC").describe("A zone of the IANA database, as `Europe/Berlin`"),
  target: targetSchema,
  input: z.unknown().optional().describe("What the target gets: a text, or any JSON for a workflow"),
  overlap: z
    .enum(["skip", "queue"])
    .default("skip")
    .describe("When the job before has not ended: leave a firing out, or let it wait; 1,000 wait at most"),
  catchUp: z
    .enum(["none", "one"])
    .default("one")
    .describe("When firings could not be taken for a minute: leave them out, or make one for all of them"),
  jitterMs: z.int().min(0).max(MAX_JITTER_MS).default(0).describe("Each firing is up to so many ms late, at random"),
  enabled: z.boolean().default(true),
});
export type ScheduleBody = z.output<typeof scheduleBodySchema>;
export const scheduleReplacementSchema = replacementOf("schedule", scheduleBodySchema);

/** A schedule in a list. */
export const scheduleSummarySchema = z.object({
  scheduleId: idSchema("schedule"),
  ...scheduleBodySchema.shape,
  target: z.record(z.string(), z.unknown()),
  nextAt: z.iso.datetime().optional().describe("Absent when there is no further firing"),
  disabledBecause: z.string().optional().describe("Why it was disabled, if nobody did it"),
  ...versionFields,
});
export type ScheduleSummary = z.output<typeof scheduleSummarySchema>;

/** A schedule, as it is read back. */
export const scheduleViewSchema = scheduleSummarySchema.extend({
  nextTimes: z.array(z.iso.datetime()).describe("The next five"),
});
export type ScheduleView = z.output<typeof scheduleViewSchema>;

/** A firing of a schedule or a trigger. */
export const firingViewSchema = z.object({
  firingId: idSchema("firing"),
  slotAt: z.iso.datetime().describe("The time that it is for; of a trigger, when the event arrived"),
  status: z.enum(firingStates),
  job: z
    .object({ jobId: idSchema("job"), status: z.enum(jobStates), statusUrl: z.string() })
    .optional()
    .describe("The job that it started; records of jobs are kept for 30 days"),
  documents: z.int().min(0).optional().describe("Documents that are read again, each by a job of its own"),
  missed: z.int().min(0).optional().describe("Further firings that it stands for; 1,000 may be more"),
  manual: z.literal(true).optional().describe("Somebody asked for it"),
  eventId: idSchema("event").optional(),
  reason: z.string().optional(),
  error: errorViewSchema.optional(),
  createdAt: z.iso.datetime(),
  startedAt: z.iso.datetime().optional().describe("When it was started, or ended otherwise"),
});
export type FiringView = z.output<typeof firingViewSchema>;
