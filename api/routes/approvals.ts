import { z } from "zod";
import { idSchema } from "../../src/ids.ts";
import { approvalStates } from "../../src/store/approval-store.ts";
import {
  approvalDetailSchema,
  approvalViewSchema,
  decisionBodySchema,
  decisionResultSchema,
} from "../../src/workflows/schemas.ts";
import { listOf, pageQuery } from "../list-query.ts";
import { declareRoutes } from "../route.ts";

const params = z.object({ id: idSchema("approval") });

const routes = declareRoutes({ auth: "member", tags: ["Workflows"] });

export const approvalRoutes = [
  routes.get("/workflows/approvals", {
    summary: "Decisions that runs wait for, newest first",
    description: "The page `/approvals` shows them, with each run so far, to decide there.",
    query: pageQuery("approval").extend({ status: z.enum(approvalStates).default("pending") }),
    responses: { 200: { description: "A page of approvals", body: listOf(approvalViewSchema) } },
    result: ({ query: { status, ...page }, caller, platform }) =>
      platform.workflows.approvals(caller.tenantId, { status, ...page }),
  }),
  routes.get("/workflows/approvals/:id", {
    summary: "One approval, with the run that waits for it as far as it has come",
    params,
    responses: { 200: { description: "The approval", body: approvalDetailSchema } },
    result: ({ params: { id }, caller, platform }) => platform.workflows.approval(caller, id),
  }),
  routes.post("/workflows/approvals/:id/decide", {
    summary: "Approve or reject",
    description:
      "An approval for an `admin` may be decided by admins and owners, one for an `owner` by owners only. Who decided is the " +
      "subject of the key, whatever the body says. Approved, the run continues; rejected, it stops at once. A second decision is " +
      "409, with the first one in `details`.",
    params,
    body: decisionBodySchema,
    example: { decision: "approved", comment: "Checked against the invoice." },
    responses: { 200: { description: "The decision, and what the run is now", body: decisionResultSchema } },
    errors: ["insufficient_role", "wrong_state"],
    result: ({ params: { id }, body, caller, platform }) => platform.workflows.decide(caller, id, body),
  }),
];
