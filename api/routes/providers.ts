import { z } from "zod";
import { type KeyProvider, keyProviders } from "../../src/config/provider-settings.ts";
import { keyedProviders, verifyProviderKey } from "../../src/gateway/providers/registry.ts";
import { toView } from "../../src/lib/defined.ts";
import { invalidRequest } from "../../src/lib/errors.ts";
import type { Platform } from "../../src/platform.ts";
import { listOf, wholeList, wholeListQuery } from "../list-query.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

const params = z.object({ provider: z.enum(keyProviders) });
const query = z.object({
  verify: z.enum(["true", "false"]).default("false").describe("`true` asks the provider whether it takes the key"),
});
const body = z.strictObject({
  key: z
    .string()
    .min(20)
    .max(500)
    .regex(/^[!-~]+$/, "must be visible ASCII characters without blanks"),
});

const configured = { provider: z.enum(keyProviders), configured: z.boolean() };

const providerSchema = named(
  "Provider",
  z.object({
    ...configured,
    keyPreview: z.string().optional(),
    updatedAt: z.iso.datetime().optional(),
    decryptable: z
      .boolean()
      .optional()
      .describe("Whether the stored key can be read with the service's master key; absent without a key"),
  }),
);
const keyErrors = ["provider_key_refused", "provider_failed", "provider_key_unreadable"] as const;

const routes = declareRoutes({ auth: "admin", tags: ["Provider keys"], bodyLimit: "settings" });

export const providerRoutes = [
  routes.get("/ai/providers", {
    auth: "member",
    summary: "Which providers have a key of yours",
    query: wholeListQuery,
    responses: { 200: { description: "Every provider that takes customers' keys", body: listOf(providerSchema) } },
    result: async ({ caller, platform }) =>
      wholeList((await platform.providerKeys.list(caller.tenantId)).map((view) => toView(view))),
  }),
  routes.put("/ai/providers/:provider/key", {
    isForAllCollections: true,
    summary: "Bring your own key for a provider",
    description:
      "Model calls of your tenant use it from then on, everywhere within 5 seconds. It is stored encrypted and never shown again.",
    params,
    query,
    body: named("ProviderKeyRequest", body),
    responses: { 200: { description: "It is set", body: named("ProviderKeyState", z.object(configured)) } },
    errors: keyErrors,
    async result({ params: { provider }, query: { verify }, body: { key }, caller, platform }) {
      await check(platform, provider, key, verify === "true");
      await platform.providerKeys.put(caller.tenantId, provider, key);
      return { provider, configured: true };
    },
  }),
  routes.post("/ai/providers/:provider/rotate", {
    isForAllCollections: true,
    summary: "Replace your key for a provider",
    description: "The new key is encrypted under the same data key as the old one. 404 when no key is set.",
    params,
    query,
    body,
    responses: {
      200: { description: "It is replaced", body: z.object({ ...configured, rotatedAt: z.iso.datetime() }) },
    },
    errors: keyErrors,
    async result({ params: { provider }, query: { verify }, body: { key }, caller, platform }) {
      await check(platform, provider, key, verify === "true");
      const rotatedAt = await platform.providerKeys.rotate(caller.tenantId, provider, key);
      return { provider, configured: true, rotatedAt: rotatedAt.toISOString() };
    },
  }),
  routes.delete("/ai/providers/:provider/key", {
    isForAllCollections: true,
    summary: "Remove your key for a provider",
    description: "Calls then use the platform's key, where it has one.",
    params,
    responses: { 204: { description: "It is removed" } },
    result: ({ params: { provider }, caller, platform }) => platform.providerKeys.remove(caller.tenantId, provider),
  }),
];

/** @throws AppError `invalid_request` for a key of another form; the provider's refusal when it is asked. */
async function check(platform: Platform, provider: KeyProvider, key: string, isAsked: boolean): Promise<void> {
  const { fits, form } = keyedProviders[provider].keys;
  if (!fits.test(key)) throw invalidRequest("key", `key: ${form}`);
  if (isAsked) await verifyProviderKey(platform.config.gateway, provider, key);
}
