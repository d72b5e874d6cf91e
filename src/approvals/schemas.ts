import { z } from "zod";
import { runStates } from "../agents/run-state.ts";
import { runViewSchema } from "../agents/schemas.ts";
import { idSchema } from "../lib/ids.ts";
import { approvalStates } from "../store/approval-store.ts";
import { approverSchema, workflowRunStates, workflowRunViewSchema } from "../workflows/schemas.ts";

const decisionSchema = z.enum(["approved", "rejected"]);

/** A decision that a run waits for, or has waited for: a step of a workflow's, or a tool call of an agent's. */
export const approvalViewSchema = z.object({
  approvalId: idSchema("approval"),
  kind: z.enum(["workflow", "agent"]),
  runId: idSchema("workflowRun", "run"),
  jobId: idSchema("job").optional().describe("Of `agent`"),
  workflowId: idSchema("workflow").optional().describe("Of `workflow`"),
  workflowName: z.string().optional(),
  stepId: z.string().optional(),
  agentId: idSchema("agent").optional().describe("Of `agent`"),
  agentName: z.string().optional(),
  callId: z.string().optional().describe("The tool call in its run"),
  toolName: z.string().optional(),
  arguments: z
    .record(z.string(), z.unknown())
    .optional()
    .describe("As the tool gets them: the call is made with these or not at all"),
  argumentsHash: z.string().optional().describe("SHA-256 of their canonical JSON (RFC 8785)"),
  startedBy: z.string().optional().describe("The subject of the key that started the run"),
  assigneeRole: approverSchema,
  message: z.string().optional(),
  status: z.enum(approvalStates),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  decision: decisionSchema.optional().describe("Once somebody has decided"),
  decidedBy: z.string().optional(),
  decided_by: z.string().optional().describe("The same as `decidedBy`"),
  decidedAt: z.iso.datetime().optional(),
  comment: z.string().optional(),
});
export type ApprovalView = z.output<typeof approvalViewSchema>;

/** An approval with the run that waits for it, as far as it has come. */
export const approvalDetailSchema = approvalViewSchema.extend({
  run: workflowRunViewSchema.optional().describe("Of `workflow`"),
  agentRun: runViewSchema.optional().describe("Of `agent`: its steps so far, and what they cost"),
  mayDecide: z.boolean().describe("Whether the caller may decide: by their role, and by the key that started the run"),
});
export type ApprovalDetail = z.output<typeof approvalDetailSchema>;

/** The body of a decision. A `decided_by` in it is ignored: the key says who decides. */
export const decisionBodySchema = z.object({
  decision: decisionSchema,
  comment: z.string().max(4_000).optional(),
});
export type DecisionInput = z.output<typeof decisionBodySchema>;

export const decisionResultSchema = approvalViewSchema.extend({
  runStatus: z.enum([...new Set([...workflowRunStates, ...runStates])]),
});
export type DecisionResult = z.output<typeof decisionResultSchema>;
