import { z } from "zod";
import { askApproval } from "../../definitions/approvals.ts";
import { Suspended } from "../../jobs/reschedule.ts";
import { defined } from "../../lib/defined.ts";
import { AppError } from "../../lib/errors.ts";
import type { ApprovalRecord } from "../../store/approval-store.ts";
import { approvalIdOf } from "../withdraw-approvals.ts";
import { commonFields, type StepKind, type StepWork, template, textField } from "./step.ts";

/** How long an approval waits, in ms. */
const MIN_WAIT_MS = 1_000;
const MAX_WAIT_MS = 30 * 86_400_000;
const DEFAULT_WAIT_MS = 7 * 86_400_000;
/** Longest message that an approver sees, in characters. */
const MAX_MESSAGE = 20_000;

const schema = z.strictObject({
  type: z.literal("human_approval"),
  ...commonFields,
  assigneeRole: z.enum(["owner", "admin"]),
  timeoutMs: z.number().int().min(MIN_WAIT_MS).max(MAX_WAIT_MS).optional(),
  message: template.optional().describe("What the approver reads"),
});
type HumanApproval = z.output<typeof schema>;

/** Waits for a person's decision. */
export const humanApproval: StepKind<HumanApproval> = {
  schema,
  summary: "assigneeRole (owner or admin), timeoutMs?, message?",
  fields: ({ message }) => textField("message", message),
  hasOwnTime: true,
  effect(output) {
    const { decision } = Object(output) as { decision?: unknown }; // what `toDecisionOutput` makes
    return decision === "rejected" || decision === "expired" ? { end: decision } : {};
  },
  stub: ({ step: { assigneeRole } }, { message }) => ({
    output: { decision: "approved", comment: null, decidedBy: null, decidedAt: null },
    call: { asks: assigneeRole, message },
  }),
  async run(work) {
    const { deps, run } = work;
    const approval = await approvalOf(work);
    if (approval.status === "cancelled") throw new AppError("cancelled", "The run was cancelled.");
    const { tenantId } = run;
    if (approval.status !== "pending") {
      await deps.store.workflowRuns.goOn(tenantId, run._id, work.place.path);
      return { output: toDecisionOutput(approval), startedAt: approval.createdAt };
    }
    const { _id: approvalId, assigneeRole, createdAt: since, expiresAt } = approval;
    const awaiting = { approvalId, stepId: work.place.id, path: work.place.path, assigneeRole, since, expiresAt };
    await deps.store.workflowRuns.await(tenantId, run._id, awaiting);
    throw new Suspended(async () => (await deps.store.approvals.get(tenantId, approvalId))?.status !== "pending");
  },
};

/** The step's approval: its record, which is made at the first attempt. */
async function approvalOf({ deps, run, step, place, fill }: StepWork<HumanApproval>): Promise<ApprovalRecord> {
  const { tenantId, _id: runId, workflowId, name: workflowName } = run;
  const approvalId = approvalIdOf(run, place.path);
  const there = await deps.store.approvals.get(tenantId, approvalId);
  if (there) return there;
  const { message } = await fill();
  const { assigneeRole, timeoutMs = DEFAULT_WAIT_MS } = step;
  const now = new Date();
  const asked = {
    kind: "workflow" as const,
    _id: approvalId,
    tenantId,
    workflowId,
    workflowName,
    runId,
    keyId: run.caller.keyId,
    startedBy: run.caller.subject,
    stepId: place.id,
    path: place.path,
    assigneeRole,
    ...(message === undefined ? {} : { message: String(message).slice(0, MAX_MESSAGE).toWellFormed() }),
    status: "pending" as const,
    createdAt: now,
    expiresAt: new Date(now.getTime() + timeoutMs),
    ...defined({ callback: run.callback }),
  };
  return askApproval(deps.store, asked);
}

/** A decision as expressions and readers see it. */
export function toDecisionOutput({ status, comment, decidedBy, decidedAt }: ApprovalRecord) {
  return {
    decision: status,
    comment: comment ?? null,
    decidedBy: decidedBy ?? null,
    decidedAt: decidedAt?.toISOString() ?? null,
  };
}
