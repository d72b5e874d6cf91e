import { z } from "zod";
import { toView } from "../../src/lib/defined.ts";
import { idSchema } from "../../src/lib/ids.ts";
import type { WebhookSecrets } from "../../src/webhooks/secrets.ts";
import {
  deliveryViewSchema,
  webhookBodySchema,
  webhookReplacementSchema,
  webhookViewSchema,
} from "../../src/webhooks/subscription-schemas.ts";
import { listOf, pageQuery } from "../list-query.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

const secretSchema = named(
  "WebhookSecret",
  z.object({
    secret: z.string().describe("`whsec_` and 32 bytes in base64"),
    createdAt: z.iso.datetime(),
    previousUntil: z.iso
      .datetime()
      .optional()
      .describe("Until then webhooks also carry a signature by the previous secret"),
  }),
);

const toSecretView = ({ current: secret, createdAt, previous }: WebhookSecrets) =>
  toView({ secret, createdAt, previousUntil: previous?.until });

const params = z.object({ id: idSchema("webhook") });
const deliveryParams = params.extend({ deliveryId: idSchema("delivery") });
const view = named("Webhook", webhookViewSchema);
const delivery = named("Delivery", deliveryViewSchema);
const example = { url: "https://desk.example.com/switchyard", events: ["job.failed", "approval.requested"] };
const aboutMessages =
  "Each message is signed as `/webhooks/secret` says, and sent again for an hour and a half until it is accepted; a receiver has " +
  "10 s to answer. Its `webhook-id` is the same at every attempt.";

const subscriptions = declareRoutes({
  auth: "admin",
  tags: ["Schedules and events"],
  bodyLimit: "settings",
  isForAllCollections: true,
});
const routes = declareRoutes({ auth: "admin", tags: ["Workflows"], bodyLimit: "settings" });

export const webhookRoutes = [
  routes.get("/webhooks/secret", {
    summary: "The secret that your webhooks are signed with",
    description:
      "Webhooks are signed by the Standard Webhooks specification (standardwebhooks.com): verify `webhook-signature` over " +
      "`webhook-id`, `webhook-timestamp` and the raw body with one of its libraries. The first call makes the secret.",
    responses: { 200: { description: "The secret", body: secretSchema } },
    errors: ["provider_key_unreadable"],
    result: async ({ caller, platform }) => toSecretView(await platform.webhooks.secrets.find(caller.tenantId)),
  }),
  routes.post("/webhooks/secret/rotate", {
    isForAllCollections: true,
    summary: "Replace the secret that your webhooks are signed with",
    description: "For a day each webhook carries both signatures, so that receivers can change theirs without a gap.",
    hasSecretReply: true,
    responses: { 200: { description: "The new secret", body: secretSchema } },
    errors: ["wrong_state", "provider_key_unreadable"],
    result: async ({ caller, platform }) => toSecretView(await platform.webhooks.secrets.rotate(caller.tenantId)),
  }),
  subscriptions.post("/webhooks", {
    summary: "Have a server told of what happens in the tenant",
    description: `Of jobs that are accepted from then on, of batches, approvals and the budget. ${aboutMessages}`,
    body: named("WebhookRequest", webhookBodySchema),
    example,
    responses: { 201: { description: "The webhook", body: view } },
    errors: ["source_refused", "quota_exceeded"],
    result: ({ body, caller, platform }) => platform.subscriptions.create(caller, body),
  }),
  subscriptions.get("/webhooks", {
    summary: "Webhooks of the tenant, newest first",
    query: pageQuery("webhook"),
    responses: { 200: { description: "A page of webhooks", body: listOf(view) } },
    result: ({ query, caller, platform }) => platform.subscriptions.list(caller.tenantId, query),
  }),
  subscriptions.get("/webhooks/:id", {
    summary: "One webhook",
    params,
    responses: { 200: { description: "The webhook", body: view } },
    result: ({ params: { id }, caller, platform }) => platform.subscriptions.get(caller.tenantId, id),
  }),
  subscriptions.put("/webhooks/:id", {
    summary: "Replace a webhook by its next version",
    description: "What is under way goes to the address that it was made for.",
    params,
    body: named("WebhookReplacement", webhookReplacementSchema),
    example,
    responses: { 200: { description: "The webhook", body: view } },
    errors: ["source_refused", "wrong_state"],
    result: ({ params: { id }, body, caller, platform }) => platform.subscriptions.replace(caller, id, body),
  }),
  subscriptions.delete("/webhooks/:id", {
    summary: "Delete a webhook",
    params,
    responses: { 204: { description: "It was deleted" } },
    result: ({ params: { id }, caller, platform }) => platform.subscriptions.remove(caller, id),
  }),
  subscriptions.get("/webhooks/:id/deliveries", {
    summary: "Messages to a webhook, newest first, with their attempts",
    description: "Kept for 30 days.",
    params,
    query: pageQuery("delivery"),
    responses: { 200: { description: "A page of messages", body: listOf(delivery) } },
    result: ({ params: { id }, query, caller, platform }) =>
      platform.subscriptions.deliveries(caller.tenantId, id, query),
  }),
  subscriptions.post("/webhooks/:id/deliveries/:deliveryId/replay", {
    summary: "Send a message again",
    description: "Under its id, to the address that the webhook has now.",
    params: deliveryParams,
    responses: { 202: { description: "It is sent again", body: delivery } },
    errors: ["wrong_state"],
    result: ({ params: { id, deliveryId }, caller, platform }) =>
      platform.subscriptions.replay(caller.tenantId, id, deliveryId),
  }),
];
