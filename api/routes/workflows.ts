import { z } from "zod";
import {
  approvalDetailSchema,
  approvalViewSchema,
  decisionBodySchema,
  decisionResultSchema,
} from "../../src/approvals/schemas.ts";
import { idSchema } from "../../src/lib/ids.ts";
import { approvalStates } from "../../src/store/approval-store.ts";
import { rootOf } from "../../src/tenancy/roles.ts";
import { draftRunSchema, dryRunSchema } from "../../src/workflows/dry-run.ts";
import { itemQuerySchema, itemViewSchema } from "../../src/workflows/run-items.ts";
import {
  executeBodySchema,
  withNamedInput,
  workflowBodySchema,
  workflowReplacementSchema,
  workflowResultSchema,
  workflowRunSummarySchema,
  workflowRunViewSchema,
  workflowSummarySchema,
  workflowViewSchema,
} from "../../src/workflows/schemas.ts";
import { validationSchema } from "../../src/workflows/validate.ts";
import { filterQuery, listOf, pageQuery } from "../list-query.ts";
import { acceptedSchema, serveJob, withCallback } from "../prefer.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";
import { modelCallErrors } from "./chat.ts";

const params = z.object({ id: idSchema("workflow") });
const approvalParams = z.object({ id: idSchema("approval") });
const runParams = params.extend({ runId: idSchema("workflowRun") });
const example = {
  name: "Answer a complaint",
  steps: [
    { type: "rag_query", id: "facts", query: "{{ input.complaint }}" },
    {
      type: "ai_completion",
      id: "draft",
      model: "meta-llm",
      prompt: "Answer this complaint: {{ input.complaint }}\n\nWhat we know:\n{{ steps.facts.output[0].content }}",
    },
    { type: "human_approval", assigneeRole: "admin", message: "Send this? {{ steps.draft.output }}" },
    {
      type: "webhook",
      url: "https://desk.example.com/replies",
      method: "POST",
      body: { text: "{{ steps.draft.output }}" },
    },
  ],
};

/** What a run may end with that a call waits for. */
const runErrors = [
  ...modelCallErrors,
  "answer_incomplete",
  "webhook_failed",
  "source_refused",
  "source_unreachable",
  "wrong_state",
] as const;

const routes = declareRoutes({ auth: "member", tags: ["Workflows"] });

/** The paths of approvals and runs come first: the pattern of a workflow would match them. */
export const workflowRoutes = [
  routes.get("/workflows/approvals", {
    summary: "Decisions that runs wait for, newest first",
    description: "The page `/approvals` shows them, with each run so far, to decide there.",
    query: pageQuery("approval").extend({ status: z.enum(approvalStates).default("pending"), ...filterQuery }),
    responses: { 200: { description: "A page of approvals", body: listOf(approvalViewSchema) } },
    result: ({ query, caller, platform }) => platform.approvals.list(caller, query),
  }),
  routes.get("/workflows/approvals/:id", {
    summary: "One approval, with the run that waits for it as far as it has come",
    params: approvalParams,
    responses: { 200: { description: "The approval", body: approvalDetailSchema } },
    result: ({ params: { id }, caller, platform }) => platform.approvals.get(caller, id),
  }),
  routes.post("/workflows/approvals/:id/decide", {
    summary: "Approve or reject",
    description:
      "An approval for an `admin` may be decided by admins and owners, one for an `owner` by owners only. Who decided is the " +
      "subject of the key, whatever the body says. Approved, the run continues; rejected, it stops at once. A second decision is " +
      "409, with the first one in `details`.",
    params: approvalParams,
    body: decisionBodySchema,
    example: { decision: "approved", comment: "Checked against the invoice." },
    responses: { 200: { description: "The decision, and what the run is now", body: decisionResultSchema } },
    errors: ["insufficient_role", "wrong_state", "compliance_blocked"],
    result: ({ params: { id }, body, caller, platform }) => platform.approvals.decide(caller, id, body),
  }),
  routes.get("/workflows/runs/:runId", {
    summary: "A run with the results of its steps, of whichever workflow",
    params: z.object({ runId: idSchema("workflowRun") }),
    responses: { 200: { description: "The run", body: workflowRunViewSchema } },
    result: ({ params: { runId }, caller, platform }) => platform.workflows.runOf(caller, undefined, runId),
  }),
  routes.post("/workflows/validate", {
    summary: "Check a workflow without keeping it",
    description:
      "The checks of its creation. Gives all problems, each with the path of its field, and 200 in any case.",
    body: z.looseObject({}),
    keepsDigits: true,
    example,
    responses: { 200: { description: "What is wrong with it", body: validationSchema } },
    result: ({ body, caller, platform }) => platform.workflows.validate(caller.tenantId, body),
  }),
  routes.post("/workflows/dry-run", {
    summary: "Walk through a draft of a workflow without keeping it",
    description: "What `POST /workflows/:id/execute?dryRun=true` does with a workflow that is kept.",
    body: draftRunSchema,
    keepsDigits: true,
    responses: { 200: { description: "What a run would call, and how it would end", body: dryRunSchema } },
    errors: [...modelCallErrors, "unknown_model", "source_refused", "wrong_state", "quota_exceeded", "timeout"],
    example: { workflow: example, input: { complaint: "The pump is louder than the old one." } },
    async handler(given) {
      const { body, caller, platform, signal } = given;
      const { workflow: draft, input } = body;
      return {
        status: 200,
        body: await given.inTurn(() => platform.workflows.dryRun({ caller, of: { draft }, input, signal })),
      };
    },
  }),
  routes.post("/workflows", {
    summary: "Create a workflow",
    description:
      "Steps run in order. Texts may hold `{{ expression }}` in CEL over `input`, `steps.<id>.output`, `previous` (the output of " +
      "the last step that is no condition) and `run`; an invalid expression, or one that names a step that does not come before, is refused here.",
    body: workflowBodySchema,
    keepsDigits: true,
    example,
    responses: { 201: { description: "The workflow", body: workflowViewSchema } },
    errors: ["unknown_model", "source_refused", "quota_exceeded", "wrong_state", "not_found"],
    result: ({ body, caller, platform }) => platform.workflows.create(caller, body),
  }),
  routes.get("/workflows", {
    summary: "Workflows of the tenant, newest first",
    description: "Each without its steps, which `/workflows/:id` shows.",
    query: pageQuery("workflow"),
    responses: { 200: { description: "A page of workflows", body: listOf(workflowSummarySchema) } },
    result: ({ query, caller, platform }) => platform.workflows.list(caller.tenantId, query),
  }),
  routes.get("/workflows/:id", {
    summary: "One workflow",
    params,
    responses: { 200: { description: "The workflow", body: workflowViewSchema } },
    result: ({ params: { id }, caller, platform }) => platform.workflows.get(caller.tenantId, id),
  }),
  routes.put("/workflows/:id", {
    summary: "Replace a workflow by its next version",
    description:
      "Runs that have started keep their version. Members replace their own workflows, admins those of others too.",
    params,
    body: workflowReplacementSchema,
    keepsDigits: true,
    example,
    responses: { 200: { description: "The workflow", body: workflowViewSchema } },
    errors: ["unknown_model", "source_refused", "insufficient_role", "wrong_state", "quota_exceeded"],
    result: ({ params: { id }, body, caller, platform }) => platform.workflows.replace(caller, id, body),
  }),
  routes.delete("/workflows/:id", {
    summary: "Delete a workflow",
    description: "Its runs continue and stay readable. Members delete their own workflows, admins those of others too.",
    params,
    responses: { 204: { description: "It was deleted" } },
    errors: ["insufficient_role"],
    result: ({ params: { id }, caller, platform }) => platform.workflows.remove(caller, id),
  }),
  routes.post("/workflows/:id/execute", {
    summary: "Start a run",
    description:
      "Responds at once with 202, since a run may wait for people; `Prefer: wait=N` waits up to N seconds for its end. The run's " +
      "steps can be followed at `/jobs/:id/events`. With `?dryRun=true` nothing is kept or called: the answer says what would be. A dry run " +
      "neither takes nor looks at an `Idempotency-Key`, so the run that follows may have it.",
    params,
    query: z.object({
      dryRun: z
        .enum(["true", "false"])
        .default("false")
        .describe("`true`: stubs answer for models, webhooks, people and other jobs"),
    }),
    body: named("WorkflowRunRequest", withNamedInput(executeBodySchema.extend(withCallback))),
    keepsDigits: true,
    isBodyOptional: true,
    isAsync: true,
    responses: {
      200: {
        description: "How the run ended, or what a dry run would call",
        body: z.union([dryRunSchema, workflowResultSchema]),
      },
      202: { description: "The run has started", body: acceptedSchema },
    },
    errors: [...runErrors, "quota_exceeded", "timeout"],
    example: { input: { complaint: "The pump is louder than the old one." } },
    trialField: "dryRun",
    async handler(input) {
      const { params: path, query, body, caller, platform, signal } = input;
      if (query.dryRun === "true") {
        if (input.header("idempotency-key") !== undefined) input.ignore("Idempotency-Key");
        const ask = () => platform.workflows.dryRun({ caller, of: { workflowId: path.id }, input: body.input, signal });
        return { status: 200, body: await input.inTurn(ask) };
      }
      return serveJob(input, {
        accept: (job) => platform.workflows.accept({ caller, workflowId: path.id, body, ...job }),
        defaultWaitMs: 0,
      });
    },
  }),
  routes.get("/workflows/:id/runs", {
    summary: "Runs of a workflow, newest first",
    params,
    query: pageQuery("workflowRun"),
    responses: { 200: { description: "A page of runs", body: listOf(workflowRunSummarySchema) } },
    result: ({ params: { id }, query, caller, platform }) => platform.workflows.runs(caller, id, query),
  }),
  routes.get("/workflows/:id/runs/:runId", {
    summary: "A run with the results of its steps",
    params: runParams,
    responses: { 200: { description: "The run", body: workflowRunViewSchema } },
    result: ({ params: { id, runId }, caller, platform }) => platform.workflows.runOf(caller, id, runId),
  }),
  routes.get("/workflows/:id/runs/:runId/items", {
    summary: "The items of a list that a run goes over, as far as they have ended",
    description: "In order, each with its whole output, also where the output of the list has a `ref` in its place.",
    params: runParams,
    query: itemQuerySchema,
    responses: { 200: { description: "A page of items", body: listOf(itemViewSchema) } },
    result: ({ params: { id, runId }, query, caller, platform }) =>
      platform.workflows.items(caller, { workflowId: id, runId }, query),
  }),
  routes.post("/workflows/:id/runs/:runId/retry", {
    summary: "Start a run again from the step that failed",
    description:
      "For a run that has failed, or was cancelled. A new run of the same version and input keeps the results that this one has, " +
      "those of a `for_each`'s items too, and goes on from there; its `retryOf` names this one. 409 for a run in another state.",
    params: runParams,
    isAsync: true,
    responses: {
      200: { description: "How the run ended", body: workflowResultSchema },
      202: { description: "The run has started", body: acceptedSchema },
    },
    errors: runErrors,
    handler(input) {
      const { params: path, caller, platform } = input;
      const place = { workflowId: path.id, runId: path.runId };
      return serveJob(
        { ...input, body: {} },
        { accept: (job) => platform.workflows.retry(caller, place, job), defaultWaitMs: 0 },
      );
    },
  }),
  routes.post("/workflows/:id/runs/:runId/cancel", {
    summary: "Stop a run",
    description: "A waiting run stops at once, a working one as soon as it can; 409 when it has ended.",
    params: runParams,
    responses: { 200: { description: "The run as it is now", body: workflowRunViewSchema } },
    errors: ["wrong_state"],
    result: ({ params: { id, runId }, caller, platform: { jobs, workflows } }) =>
      jobs.inTurn(rootOf(caller), () => workflows.cancel(caller, id, runId)),
  }),
];
