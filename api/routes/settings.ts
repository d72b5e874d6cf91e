import { z } from "zod";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

/** Most days that a tenant may keep the texts of its calls. */
const MAX_DAYS = 90;

const routes = declareRoutes({ auth: "owner", tags: ["Gateway"], bodyLimit: "settings" });

const days = z.number().int().min(1).max(MAX_DAYS);
/** Its message names a wrong type as those of other types do, so that both forms are named. */
const off = z.literal("off", {
  error: ({ input }) => (typeof input === "string" ? undefined : 'must be "off", not that'),
});
const settingsSchema = named(
  "Settings",
  z.object({
    callTextDays: z
      .union([days, off, z.literal("as_logs")])
      .describe(
        "Days that the texts of model calls, requests and answers, are kept in `/ai/logs/:logId`. `as_logs`: you chose " +
          "nothing, and the operator keeps them as long as the records",
      ),
  }),
);

export const settingsRoutes = [
  routes.get("/settings", {
    summary: "What the tenant has set for itself",
    responses: { 200: { description: "The settings", body: settingsSchema } },
    result: async ({ caller, platform }) => ({ callTextDays: await platform.callTexts.find(caller.tenantId) }),
  }),
  routes.put("/settings", {
    isForAllCollections: true,
    summary: "Keep the texts of the tenant's model calls, or do not",
    description:
      `\`callTextDays\` is \`"off"\`, or 1 to ${MAX_DAYS} days, and no more than the platform keeps the records ` +
      "(`CALL_LOG_DAYS`). It holds within 5 seconds, in the place of the operator's choice. Texts that are older are shown no " +
      "longer then, and removed a while later; with `off` all of them.",
    body: z.strictObject({
      callTextDays: z.union([days, off]),
    }),
    example: { callTextDays: 30 },
    responses: { 200: { description: "What holds now", body: settingsSchema } },
    async result({ body, caller: { tenantId }, platform: { callTexts } }) {
      await callTexts.put(tenantId, body.callTextDays);
      return { callTextDays: await callTexts.find(tenantId) };
    },
  }),
];
