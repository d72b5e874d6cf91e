import { z } from "zod";
import { replacementOf, versionFields } from "../definitions/definitions.ts";
import { idSchema } from "../lib/ids.ts";
import { sourceKinds } from "../store/event-store.ts";
import { jobStates } from "../store/job-state.ts";
import { targetSchema } from "./targets.ts";

/** The name of an event. */
export const eventNameSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$/, "must be 1 to 100 letters, digits, ., _, : or -");

const expression = z.string().trim().min(1).max(10_000);

/** The body of `POST /triggers`. */
export const triggerBodySchema = z.strictObject({
  event: eventNameSchema.describe("The name of the events that start it"),
  when: expression
    .optional()
    .describe("CEL over `event` (`name`, `data`, `type`, `id`, `sourceId`, `receivedAt`): only if it is true"),
  target: targetSchema,
  inputFrom: expression
    .optional()
    .describe("CEL over `event`, whose value is the input; default: `event.data`, for an agent or a pattern as a text"),
  enabled: z.boolean().default(true),
});
export type TriggerBody = z.output<typeof triggerBodySchema>;
export const triggerReplacementSchema = replacementOf("trigger", triggerBodySchema);

/** A trigger, as it is read back. */
export const triggerViewSchema = z.object({
  triggerId: idSchema("trigger"),
  ...triggerBodySchema.shape,
  target: z.record(z.string(), z.unknown()),
  disabledBecause: z.string().optional().describe("Why it was disabled, if nobody did it"),
  ...versionFields,
});
export type TriggerView = z.output<typeof triggerViewSchema>;

/** The body of `POST /events/:name`. */
export const eventBodySchema = z.strictObject({
  id: z.string().min(1).max(200).optional().describe("Your own id: an event of a name is taken once in 24 hours by it"),
  data: z.unknown().optional().describe("Any JSON"),
});

/** What becomes of an event. */
export const acceptedEventSchema = z.object({
  eventId: idSchema("event"),
  name: z.string(),
  duplicate: z.literal(true).optional().describe("It was taken before: nothing more happens"),
  jobId: idSchema("job"),
  kind: z.literal("event"),
  status: z.enum(jobStates),
  statusUrl: z.string(),
});
export type AcceptedEvent = z.output<typeof acceptedEventSchema>;

/** The body of `POST /event-sources`. */
export const eventSourceBodySchema = z.strictObject({
  name: z.string().trim().min(1).max(200),
  kind: z.enum(sourceKinds).describe("How its requests are signed"),
  event: eventNameSchema.describe("The name of its events"),
  secret: z
    .string()
    .min(16)
    .max(256)
    .optional()
    .describe("What it signs with, where the other side names it; else one is made, and shown once"),
});
export type EventSourceBody = z.output<typeof eventSourceBodySchema>;

/** A source of events, without its secret. */
export const eventSourceViewSchema = z.object({
  sourceId: idSchema("eventSource"),
  name: z.string(),
  kind: z.enum(sourceKinds),
  event: z.string(),
  path: z.string().describe("Where the other side posts to"),
  createdBy: z.string(),
  createdAt: z.iso.datetime(),
});
export type EventSourceView = z.output<typeof eventSourceViewSchema>;
export const newEventSourceSchema = eventSourceViewSchema.extend({ secret: z.string() });
