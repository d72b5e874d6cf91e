import { z } from "zod";
import { workerSchema } from "../../src/jobs/heartbeats.ts";
import { AppError } from "../../src/lib/errors.ts";
import { inspectService, servicePartsSchema } from "../../src/observe/service-parts.ts";
import { listTenants, tenantOverviewSchema } from "../../src/tenancy/tenant-overview.ts";
import { listOf, pageQuery, wholeList, wholeListQuery } from "../list-query.ts";
import { readPassword } from "../middleware/operator.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";
import { operatorCookie, readOperatorToken } from "../session-cookie.ts";

/** Most tenants of a page: each is counted. */
const MAX_TENANTS = 50;

const cookieHeader = { "Set-Cookie": "The session: `HttpOnly`, `SameSite=Strict`, and `Secure` over https" };

const routes = declareRoutes({ auth: "operator", tags: ["Operator"], bodyLimit: "settings" });

export const operatorRoutes = [
  routes.post("/operator/session", {
    summary: "Exchange the operator's password for a session of a browser",
    description:
      "The response sets a cookie, which opens the routes of the operator, Bull Board and `/metrics` for 12 hours: until you sign " +
      "out, or `ADMIN_TOKEN` changes. There are at most 20; a further one ends the oldest. After 20 wrong ones in a minute " +
      "an address gets a 429 for each further wrong one.",
    hasSecretReply: true,
    responses: {
      201: {
        description: "The session is open",
        body: named("OperatorSession", z.object({ expiresAt: z.iso.datetime() })),
        headers: cookieHeader,
      },
    },
    async handler({ platform: { operator }, header }) {
      if (readPassword(header("authorization") ?? "") === undefined) {
        throw new AppError("insufficient_scope", "A session is opened by the password, not by another session.");
      }
      await operator.close(readOperatorToken(header) ?? "");
      const session = await operator.open();
      const headers = { "set-cookie": operatorCookie(header, session) };
      return { status: 201, body: { expiresAt: session.expiresAt.toISOString() }, headers };
    },
  }),
  routes.delete("/operator/session", {
    summary: "Sign out: end the session of the request's cookie",
    responses: { 204: { description: "It has ended", headers: { "Set-Cookie": "Removes the cookie" } } },
    async handler({ platform: { operator }, header }) {
      await operator.close(readOperatorToken(header) ?? "");
      return { status: 204, headers: { "set-cookie": operatorCookie(header) } };
    },
  }),
  routes.get("/operator/tenants", {
    summary: "All tenants and their use, newest first",
    description: "Their names and numbers, nothing of what they keep.",
    query: pageQuery("tenant").extend({
      limit: z.coerce.number().int().min(1).max(MAX_TENANTS).default(25).describe("Most tenants of a page"),
      name: z.string().min(1).max(200).optional().describe("Only the tenant of this name"),
    }),
    responses: {
      200: { description: "A page of tenants", body: listOf(named("TenantOverview", tenantOverviewSchema)) },
    },
    result: ({ query, platform: { store } }) => listTenants(store, query),
  }),
  routes.get("/operator/workers", {
    summary: "The worker processes that are alive",
    description: "Each reports itself every 5 seconds; one that has not for 20 is gone. At most 500.",
    query: wholeListQuery,
    responses: { 200: { description: "The workers", body: listOf(named("Worker", workerSchema)) } },
    result: async ({ platform: { jobs } }) => wholeList(await jobs.heartbeats.list()),
  }),
  routes.get("/operator/parts", {
    summary: "The state of each part, of the queues and of breakers, with versions and disk",
    responses: { 200: { description: "What was found", body: named("ServiceParts", servicePartsSchema) } },
    result: ({ platform }) => inspectService(platform),
  }),
];
