import { z } from "zod";
import {
  firingViewSchema,
  scheduleBodySchema,
  scheduleReplacementSchema,
  scheduleSummarySchema,
  scheduleViewSchema,
} from "../../src/automation/schemas.ts";
import { idSchema } from "../../src/lib/ids.ts";
import { listOf, pageQuery } from "../list-query.ts";
import { reserveJob } from "../prefer.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";
import { modelCallErrors } from "./chat.ts";

const params = z.object({ id: idSchema("schedule") });
const summary = named("ScheduleSummary", scheduleSummarySchema);
const view = named("Schedule", scheduleViewSchema);
const firing = named("Firing", firingViewSchema);
/** A page of firings, of schedules and of triggers. */
export const firingList = listOf(firing);
const example = {
  name: "Morning report",
  cron: "0 9 * * 1-5",
  timezone: "Europe/Berlin",
  target: { agentId: "agt_01M80BTCKBSKNHEZVJ0V2BDPKV" },
  input: "Which complaints came in yesterday?",
};
const errors = [
  "not_found",
  "quota_exceeded",
  "compliance_blocked",
  "source_refused",
  "wrong_state",
  "insufficient_scope",
] as const;

const routes = declareRoutes({
  auth: "member",
  tags: ["Schedules and events"],
  bodyLimit: "settings",
  isForAllCollections: true,
});

export const scheduleRoutes = [
  routes.post("/schedules", {
    summary: "Start something at times",
    description:
      "An agent, a workflow, a pattern, the reading of a URL or of a collection's URLs. It is started with the rights of the key " +
      "that made or last replaced the schedule, once for each time, and no more when that key ends.",
    body: named("ScheduleRequest", scheduleBodySchema),
    keepsDigits: true,
    screen: ({ body, platform }) => platform.automation.screen(body.target, body.input),
    example,
    responses: { 201: { description: "The schedule", body: summary } },
    errors,
    result: ({ body, caller, platform }) => platform.automation.schedules.create(caller, body),
  }),
  routes.get("/schedules", {
    summary: "Schedules of the tenant, newest first",
    query: pageQuery("schedule"),
    responses: { 200: { description: "A page of schedules", body: listOf(summary) } },
    result: ({ query, caller, platform }) => platform.automation.schedules.list(caller.tenantId, query),
  }),
  routes.get("/schedules/:id", {
    summary: "One schedule, with its next five times",
    params,
    responses: { 200: { description: "The schedule", body: view } },
    result: ({ params: { id }, caller, platform }) => platform.automation.schedules.get(caller.tenantId, id),
  }),
  routes.put("/schedules/:id", {
    summary: "Replace a schedule by its next version",
    description:
      "If its times stay the same, the firing that comes next stays too. Members replace their own schedules, admins those of others.",
    params,
    body: named("ScheduleReplacement", scheduleReplacementSchema),
    keepsDigits: true,
    screen: ({ body, platform }) => platform.automation.screen(body.target, body.input),
    example,
    responses: { 200: { description: "The schedule", body: summary } },
    errors: [...errors, "insufficient_role"],
    result: ({ params: { id }, body, caller, platform }) => platform.automation.schedules.replace(caller, id, body),
  }),
  routes.delete("/schedules/:id", {
    summary: "Delete a schedule",
    description: "What it started goes on. Members delete their own schedules, admins those of others too.",
    params,
    responses: { 204: { description: "It was deleted" } },
    errors: ["insufficient_role"],
    result: ({ params: { id }, caller, platform }) => platform.automation.schedules.remove(caller, id),
  }),
  routes.get("/schedules/:id/firings", {
    summary: "Firings of a schedule, each with its job, newest first",
    description:
      "Kept for as long as a thousand of its intervals: an hour at least, 30 days at most; of a tenant the newest 100,000.",
    params,
    query: pageQuery("firing"),
    responses: { 200: { description: "A page of firings", body: firingList } },
    result: ({ params: { id }, query, caller, platform }) =>
      platform.automation.schedules.firings(caller.tenantId, id, query),
  }),
  routes.post("/schedules/:id/run", {
    summary: "Start its target now",
    description: "With the caller's own rights; its times stay as they are, and `overlap` does not hold.",
    params,
    responses: { 202: { description: "The firing", body: firing } },
    errors: [...modelCallErrors, ...errors],
    async result(input) {
      const { params: path, caller, platform } = input;
      const reserved = await reserveJob(input);
      const jobId = "job" in reserved ? reserved.job._id : reserved.jobId;
      return platform.automation.schedules.run(caller, path.id, jobId);
    },
  }),
];
