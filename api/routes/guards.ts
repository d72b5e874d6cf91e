import { guardCheckBodySchema, guardCheckSchema, guardPolicySchema } from "../../src/tenancy/guard-schemas.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

const routes = declareRoutes({ auth: "admin", tags: ["Guards"], bodyLimit: "settings" });
const policySchema = named("GuardPolicy", guardPolicySchema);

export const guardRoutes = [
  routes.get("/guards", {
    summary: "What is done with identifiers and secrets in the tenant's texts",
    responses: { 200: { description: "The policy", body: policySchema } },
    result: ({ caller, platform }) => platform.guards.find(caller.tenantId),
  }),
  routes.put("/guards", {
    isForAllCollections: true,
    summary: "Replace what is done with identifiers and secrets in the tenant's texts",
    description:
      "By kind and by place: `off`, `flag` (count it), `mask` (a mark such as `[CARD_1]` goes on in its place) or `block` (422). " +
      "It holds within 5 seconds. Regulated profiles block their kinds whatever it says.",
    body: policySchema,
    example: { rules: { card_number: { input: "mask", output: "mask", toolInput: "mask" }, ssn: { input: "block" } } },
    responses: { 200: { description: "What holds now", body: policySchema } },
    async result({ body, caller: { tenantId }, platform: { guards } }) {
      await guards.put(tenantId, body);
      return guards.find(tenantId);
    },
  }),
  routes.post("/guards/check", {
    bodyLimit: "json",
    summary: "What the guards would do with a text",
    description: "Asks no model and keeps nothing. With `policy`, by that one instead of the tenant's.",
    body: guardCheckBodySchema,
    example: { text: "My card is 4242 4242 4242 4242." },
    responses: { 200: { description: "What would happen", body: guardCheckSchema } },
    result: ({ body, caller, platform }) => platform.guards.check(caller, body),
  }),
];
