import { z } from "zod";
import { customProviderBodySchema, customProviderViewSchema } from "../../src/gateway/providers/custom/schemas.ts";
import { toView } from "../../src/lib/defined.ts";
import { listOf, wholeList, wholeListQuery } from "../list-query.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

const params = z.object({ name: z.string().min(1).max(100) });
const providerSchema = named("CustomProvider", customProviderViewSchema);

const routes = declareRoutes({ auth: "admin", tags: ["Provider keys"], bodyLimit: "settings" });

export const customProviderRoutes = [
  routes.get("/ai/providers/custom", {
    auth: "member",
    summary: "Your tenant's custom providers, by name",
    query: wholeListQuery,
    responses: { 200: { description: "All of them, without their keys", body: listOf(providerSchema) } },
    result: async ({ caller, platform }) =>
      wholeList((await platform.customProviders.list(caller.tenantId)).map((view) => toView(view))),
  }),
  routes.get("/ai/providers/custom/:name", {
    auth: "member",
    summary: "A custom provider",
    params,
    responses: { 200: { description: "The provider, without its key", body: providerSchema } },
    result: async ({ params: { name }, caller, platform }) =>
      toView(await platform.customProviders.get(caller.tenantId, name)),
  }),
  routes.put("/ai/providers/custom/:name", {
    isForAllCollections: true,
    summary: "Set a provider of your own, with its key and models",
    description:
      "Any server of one of the wire formats. Your tenant calls its models as `name/id`, everywhere within 5 seconds, at the " +
      "prices given here. Replaces the provider of this name and its key, which is stored encrypted and never shown again. " +
      "`baseUrl` must be https at a public address, unless the operator allows its origin.",
    params,
    body: named("CustomProviderRequest", customProviderBodySchema),
    responses: { 200: { description: "It is set", body: providerSchema } },
    errors: ["source_refused", "quota_exceeded", "provider_key_unreadable", "wrong_state"],
    example: {
      baseUrl: "https://desk.example.com/v1",
      key: "the-key-of-your-account",
      wire: "openai-chat",
      models: [
        {
          id: "large",
          type: "chat",
          contextWindow: 128_000,
          inputUsdPerMTok: 2,
          outputUsdPerMTok: 6,
        },
      ],
    },
    result: async ({ params: { name }, body, caller, platform }) =>
      toView(await platform.customProviders.put(caller.tenantId, name, body)),
  }),
  routes.delete("/ai/providers/custom/:name", {
    isForAllCollections: true,
    summary: "Remove a custom provider with its key",
    description: "Its models are unknown from then on, everywhere within 5 seconds; as fallbacks they are skipped.",
    params,
    responses: { 204: { description: "It is removed" } },
    result: ({ params: { name }, caller, platform }) => platform.customProviders.remove(caller.tenantId, name),
  }),
];
