import { z } from "zod";
import { replacementOf, versionFields } from "../definitions/definitions.ts";
import { errorViewSchema } from "../jobs/job-view.ts";
import { idSchema } from "../lib/ids.ts";
import { deliveryStates } from "../store/delivery-store.ts";

/** What a tenant can be told of. */
const webhookEvents = [
  "job.completed",
  "job.failed",
  "job.cancelled",
  "batch.completed",
  "batch.failed",
  "batch.cancelled",
  "approval.requested",
  "approval.decided",
  "budget.nearly_exhausted",
  "budget.exhausted",
  "guard.blocked",
] as const;
export type WebhookEvent = (typeof webhookEvents)[number];

/** The body of `POST /webhooks`. */
export const webhookBodySchema = z.strictObject({
  url: z.string().min(1).max(8_192).describe("Where the messages are posted to"),
  events: z
    .array(z.enum(webhookEvents))
    .min(1)
    .max(webhookEvents.length)
    .describe("The types of messages that it gets"),
  description: z.string().trim().max(500).optional(),
  enabled: z.boolean().default(true),
});
export type WebhookBody = z.output<typeof webhookBodySchema>;
export const webhookReplacementSchema = replacementOf("webhook", webhookBodySchema);

/** A webhook, as it is read back. */
export const webhookViewSchema = z.object({
  webhookId: idSchema("webhook"),
  ...webhookBodySchema.shape,
  endsAt: z.iso.datetime().optional().describe("When it ends with the key that made it"),
  ...versionFields,
});
export type WebhookView = z.output<typeof webhookViewSchema>;

/** A message to a webhook, and the last ten attempts to send it. */
export const deliveryViewSchema = z.object({
  deliveryId: idSchema("delivery").describe("Also the message's `webhook-id`"),
  type: z.enum(webhookEvents),
  status: z.enum(deliveryStates),
  attempts: z.int().min(0),
  log: z.array(z.object({ at: z.iso.datetime(), status: z.int().optional(), error: errorViewSchema.optional() })),
  message: z.unknown().describe("What is sent"),
  createdAt: z.iso.datetime(),
  deliveredAt: z.iso.datetime().optional(),
  nextAt: z.iso.datetime().optional().describe("When it is sent next"),
});
export type DeliveryView = z.output<typeof deliveryViewSchema>;
