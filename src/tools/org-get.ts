import { getOrganizationSchema } from "../tenancy/organizations.ts";
import { tool } from "./tool.ts";

export const orgGetTool = tool({
  name: "svc_org_get",
  description: "Get the tenants and members of an organization that you are a member of.",
  role: "member",
  input: getOrganizationSchema,
  run: ({ platform, caller }, { organizationId }) => platform.organizations.get(caller, organizationId),
});
