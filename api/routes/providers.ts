import { z } from "zod";
import { AppError } from "../../src/errors.ts";
import { type KeyProvider, keyedProviders, keyProviders } from "../../src/gateway/providers/registry.ts";
import { verifyProviderKey } from "../../src/gateway/providers/verify-key.ts";
import type { Platform } from "../../src/platform.ts";
import { listOf, wholeList } from "../list-query.ts";
import { type AnyRoute, route } from "../route.ts";
import { named } from "../schema-names.ts";

const tags = ["Provider keys"];

const params = z.object({ provider: z.enum(keyProviders) });
const query = z.object({
  verify: z.enum(["true", "false"]).default("false").describe("`true` asks the provider whether it takes the key"),
});
const body = z.object({
  key: z
    .string()
    .min(20)
    .max(500)
    .regex(/^[!-~]+$/, "must be visible ASCII characters without blanks"),
});

const configured = { provider: z.enum(keyProviders), configured: z.boolean() };

const listProviders = route({
  method: "get",
  path: "/ai/providers",
  auth: "member",
  tags,
  summary: "Which providers have a key of yours",
  responses: {
    200: {
      description: "Every provider that takes customers' keys",
      body: listOf(
        named(
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
        ),
      ),
    },
  },
  async result({ caller, platform }) {
    const views = await platform.providerKeys.list(caller.tenantId);
    return wholeList(views.map(({ updatedAt, ...view }) => ({ ...view, updatedAt: updatedAt?.toISOString() })));
  },
});

const setKey = route({
  method: "put",
  path: "/ai/providers/:provider/key",
  auth: "admin",
  tags,
  summary: "Bring your own key for a provider",
  description:
    "Model calls of your tenant use it from then on, everywhere within 5 seconds. It is stored encrypted and never told again.",
  params,
  query,
  body: named("ProviderKeyRequest", body),
  responses: { 200: { description: "It is set", body: named("ProviderKeyState", z.object(configured)) } },
  errors: ["provider_key_refused", "provider_failed", "provider_key_unreadable"],
  async result({ params: { provider }, query: { verify }, body: { key }, caller, platform }) {
    await check(platform, provider, key, verify === "true");
    await platform.providerKeys.put(caller.tenantId, provider, key);
    return { provider, configured: true };
  },
});

const rotateKey = route({
  method: "post",
  path: "/ai/providers/:provider/rotate",
  auth: "admin",
  tags,
  summary: "Replace your key for a provider",
  description: "The new key is encrypted under the data key that the old one was. 404 when no key is set.",
  params,
  query,
  body,
  responses: {
    200: { description: "It is replaced", body: z.object({ ...configured, rotatedAt: z.iso.datetime() }) },
  },
  errors: ["provider_key_refused", "provider_failed", "provider_key_unreadable"],
  async result({ params: { provider }, query: { verify }, body: { key }, caller, platform }) {
    await check(platform, provider, key, verify === "true");
    const rotatedAt = await platform.providerKeys.rotate(caller.tenantId, provider, key);
    return { provider, configured: true, rotatedAt: rotatedAt.toISOString() };
  },
});

const removeKey = route({
  method: "delete",
  path: "/ai/providers/:provider/key",
  auth: "admin",
  tags,
  summary: "Remove your key for a provider",
  description: "Calls then use the platform's key, where it has one.",
  params,
  responses: { 204: { description: "It is removed" } },
  result: ({ params: { provider }, caller, platform }) => platform.providerKeys.remove(caller.tenantId, provider),
});

/** @throws AppError `invalid_request` for a key of another shape, and what the provider says of it when it is asked. */
async function check(platform: Platform, provider: KeyProvider, key: string, isAsked: boolean): Promise<void> {
  const { fits, form } = keyedProviders[provider].keys;
  if (!fits.test(key)) throw new AppError("invalid_request", `key: ${form}`, { param: "key" });
  if (isAsked) await verifyProviderKey(platform.config.gateway, provider, key);
}

export const providerRoutes: readonly AnyRoute[] = [listProviders, setKey, rotateKey, removeKey];
