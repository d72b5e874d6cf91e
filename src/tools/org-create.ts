import { createOrganizationSchema } from "../tenancy/organizations.ts";
import { tool } from "./tool.ts";

export const orgCreateTool = tool({
  name: "svc_org_create",
  description: "Create an organization. Your tenant joins it, and you become its owner.",
  role: "owner",
  input: createOrganizationSchema,
  run: ({ platform, caller }, given) => platform.organizations.create(caller, given),
});
