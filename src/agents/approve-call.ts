import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { askApproval } from "../definitions/approvals.ts";
import { Rescheduled } from "../jobs/reschedule.ts";
import { defined } from "../lib/defined.ts";
import { AppError } from "../lib/errors.ts";
import { derivedId } from "../lib/ids.ts";
import { jittered } from "../lib/jitter.ts";
import type { AgentRunRecord } from "../store/agent-run-store.ts";
import type { AgentApproval } from "../store/approval-store.ts";
import type { AuditCall, AuditContent } from "../store/audit-store.ts";
import { type ApprovalPolicy, DEFAULT_APPROVAL_MS, type PolicyOf } from "./approval-policy.ts";
import type { AuditLog } from "./audit.ts";
import type { AgentsDeps } from "./deps.ts";
import { CallSuspended, RunStopped } from "./run-state.ts";

/** Longest wait before rules are evaluated again that found no room, in ms. */
const MAX_BUSY_MS = 20_000;

export type ApprovalDeps = {
  deps: Pick<AgentsDeps, "store" | "evaluator">;
  run: AgentRunRecord;
  auditLog: Pick<AuditLog, "recorded" | "append">;
  policyOf: PolicyOf;
  signal: AbortSignal;
};

/** What the model reads in the place of a call that is not made. */
export type Refusal = { output: string };

/**
 * Whether a tool call may be made with `args`, as its tool gets them: undefined when it may, since it needs no approval or was
 * approved with these. The approval is a record whose id is derived from run, turn and call, so that each call has its own, and a
 * repeated attempt finds it.
 * @throws CallSuspended while nobody has decided; RunStopped when nobody did in time, where the tool says so; Rescheduled while
 * its rule cannot be evaluated.
 */
export async function approveCall(on: ApprovalDeps, call: AuditCall, args: object): Promise<Refusal | undefined> {
  const policy = on.policyOf(call.name);
  if (!policy) return undefined;
  const { tenantId, createdAt } = on.run;
  const { approvals } = on.deps.store;
  const approvalId = derivedId("approval", { at: createdAt, from: call.idempotencyKey });
  const there = await approvals.get(tenantId, approvalId);
  if (!there && !(await needsApproval(on, policy, args))) return undefined;
  const asked = toApproval(on.run, call, { approvalId, policy, args });
  const approval = there ?? (await askApproval(on.deps.store, asked));
  if (approval.kind !== "agent" || approval.argumentsHash !== asked.argumentsHash || approval.toolName !== call.name)
    return { output: "The call was not made: it is not the one that was to be approved." };
  await note(on, {
    kind: "asked",
    callId: call.id,
    approvalId,
    assigneeRole: approval.assigneeRole,
    argumentsHash: approval.argumentsHash,
    expiresAt: approval.expiresAt.toISOString(),
  });
  if (approval.status === "pending") throw toSuspended(on, approval);
  return applyDecision(on, approval, policy);
}

/** Withdraws what a run that ends has asked for, and nobody has decided on. */
export async function withdrawApprovals(
  { audit, approvals }: Pick<AgentsDeps["store"], "audit" | "approvals">,
  { tenantId, _id }: Pick<AgentRunRecord, "tenantId" | "_id">,
): Promise<void> {
  const contents = (await audit.contents(tenantId, _id)).map(({ content }) => content);
  const decided = new Set(contents.flatMap((one) => (one.kind === "decided" ? [one.approvalId] : [])));
  for (const one of contents)
    if (one.kind === "asked" && !decided.has(one.approvalId))
      await approvals.decide(tenantId, one.approvalId, { status: "cancelled" }, new Date());
}

/** An approval whose rule cannot be evaluated for these arguments is needed. */
async function needsApproval(on: ApprovalDeps, { when }: ApprovalPolicy, args: object): Promise<boolean> {
  if (when === undefined) return true;
  const { tenantId, agentId, agentVersion, context } = on.run;
  const values = { arguments: args, context: context === undefined ? {} : JSON.parse(context) };
  const asker = { tenantId, key: `${agentId}:${agentVersion}:${when}`, signal: on.signal };
  try {
    return await on.deps.evaluator.holds(asker, { field: "approval", rule: when, values });
  } catch (error) {
    on.signal.throwIfAborted();
    if (!(error instanceof AppError) || !error.retryable) return true;
    throw new Rescheduled(jittered(Math.min(error.retryAfterMs ?? 1_000, MAX_BUSY_MS)), "queued");
  }
}

function toApproval(
  run: AgentRunRecord,
  call: AuditCall,
  { approvalId, policy, args }: { approvalId: string; policy: ApprovalPolicy; args: object },
): AgentApproval {
  const { definition, agentId, jobId, tenantId, _id: runId, caller, callback } = run;
  const text = String(canonicalize(args));
  const now = new Date();
  return {
    _id: approvalId,
    kind: "agent",
    tenantId,
    jobId,
    runId,
    agentId,
    agentName: definition.name,
    callId: call.id,
    toolName: call.name,
    arguments: text,
    argumentsHash: createHash("sha256").update(text).digest("hex"),
    keyId: caller.keyId,
    startedBy: caller.subject,
    assigneeRole: policy.assigneeRole,
    status: "pending",
    createdAt: now,
    expiresAt: new Date(now.getTime() + (policy.timeoutMs ?? DEFAULT_APPROVAL_MS)),
    ...defined({ message: policy.message, allowSelfApproval: definition.allowSelfApproval, callback }),
  };
}

function toSuspended({ deps, run }: ApprovalDeps, { _id, toolName, expiresAt }: AgentApproval): CallSuspended {
  const awaited = { kind: "approval" as const, runId: run._id, until: expiresAt, approvalId: _id, toolName };
  const isOver = async () => (await deps.store.approvals.get(run.tenantId, _id))?.status !== "pending";
  return new CallSuspended([awaited], isOver);
}

async function applyDecision(
  on: ApprovalDeps,
  { _id: approvalId, callId, status, decidedBy, decidedAt, comment }: AgentApproval,
  { onExpiry }: ApprovalPolicy,
): Promise<Refusal | undefined> {
  if (status === "pending" || status === "cancelled") throw new AppError("cancelled", "The run was cancelled.");
  const by = defined({ by: decidedBy, at: decidedAt?.toISOString(), comment });
  await note(on, { kind: "decided", callId, approvalId, decision: status, ...by });
  if (status === "approved") return undefined;
  if (status === "expired") {
    if (onExpiry === "stop") throw new RunStopped("approval_expired");
    return { output: "The call was not made: nobody decided on it in time." };
  }
  const said = comment === undefined || comment === "" ? "" : ` Their comment: ${comment}`;
  return { output: `The call was not made: ${decidedBy ?? "somebody"} rejected it.${said}` };
}

type Noted = Extract<AuditContent, { kind: "asked" | "decided" }>;

/** Writes what happened into the run's chain, once. */
async function note({ auditLog }: ApprovalDeps, content: Noted): Promise<void> {
  const { kind, callId } = content;
  const isKnown = auditLog.recorded.some((one) => one.kind === kind && one.callId === callId);
  if (!isKnown) await auditLog.append(content);
}
