import { z } from "zod";
import { toView } from "../../src/lib/defined.ts";
import type { WebhookSecrets } from "../../src/webhooks/secrets.ts";
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
];
