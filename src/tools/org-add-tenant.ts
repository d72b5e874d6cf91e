import { addTenantSchema } from "../tenancy/organizations.ts";
import { tool } from "./tool.ts";

export const orgAddTenantTool = tool({
  name: "svc_org_add_tenant",
  description:
    "Add a tenant to an organization that you own: one that is there, by `tenantId`, or a new one, by `name`. The first API " +
    "key of a new tenant is in this answer only.",
  role: "owner",
  input: addTenantSchema,
  run: ({ platform, caller }, given) => platform.organizations.addTenant(caller, given),
});
