import { z } from "zod";
import { agentViewSchema } from "../../src/agents/schemas.ts";
import { versionSummarySchema } from "../../src/definitions/definitions.ts";
import { idSchema } from "../../src/lib/ids.ts";
import type { Platform } from "../../src/platform.ts";
import { MAX_VERSIONS } from "../../src/store/definition-version-store.ts";
import { workflowViewSchema } from "../../src/workflows/schemas.ts";
import { listOf, wholeList, wholeListQuery } from "../list-query.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

const version = z
  .string()
  .regex(/^[1-9]\d{0,8}$/)
  .transform(Number);
const listSchema = listOf(named("DefinitionVersion", versionSummarySchema));

/** The routes of the versions of one kind of definitions. */
function versionRoutes<const K extends "agents" | "workflows">(
  kind: K,
  { what, view, tag }: { what: "agent" | "workflow"; view: z.ZodType; tag: string },
) {
  const routes = declareRoutes({ auth: "member", tags: [tag] });
  const params = z.object({ id: idSchema(what) });
  const ofVersion = params.extend({ version });
  const of = (platform: Platform) => platform[kind];
  return [
    routes.get(`/${kind}/:id/versions`, {
      summary: `Versions of ${what === "agent" ? "an agent" : "a workflow"}, newest first`,
      description: `The last ${MAX_VERSIONS} at most, 2 MiB of them together. A run names the version that it ran with, and keeps it.`,
      params,
      query: wholeListQuery,
      responses: { 200: { description: "The versions", body: listSchema } },
      result: async ({ params: { id }, caller, platform }) =>
        wholeList(await of(platform).versions(caller.tenantId, id)),
    }),
    routes.get(`/${kind}/:id/versions/:version`, {
      summary: `${what === "agent" ? "An agent" : "A workflow"} as it was at a version`,
      params: ofVersion,
      responses: { 200: { description: `The ${what}`, body: view } },
      result: ({ params, caller, platform }) => of(platform).version(caller.tenantId, params.id, params.version),
    }),
    routes.post(`/${kind}/:id/versions/:version/restore`, {
      summary: "Make an old version the next one",
      description: "It is checked as a new one is. Members restore their own, admins those of others too.",
      params: ofVersion,
      responses: { 200: { description: `The ${what}`, body: view } },
      errors: [
        "unknown_model",
        "source_refused",
        "insufficient_role",
        "wrong_state",
        "quota_exceeded",
        "invalid_request",
      ],
      result: ({ params, caller, platform }) => of(platform).restore(caller, params.id, params.version),
    }),
  ];
}

export const definitionVersionRoutes = [
  ...versionRoutes("agents", { what: "agent", view: agentViewSchema, tag: "Agents" }),
  ...versionRoutes("workflows", { what: "workflow", view: workflowViewSchema, tag: "Workflows" }),
];
