import type { Agents } from "../agents/agents.ts";
import { settleApproval } from "../definitions/approvals.ts";
import { sweepEach } from "../jobs/sweep-each.ts";
import type { Waits } from "../jobs/waits.ts";
import { defined, toView } from "../lib/defined.ts";
import { AppError, notFound } from "../lib/errors.ts";
import { idSchema } from "../lib/ids.ts";
import type { ApprovalQuery, ApprovalRecord } from "../store/approval-store.ts";
import { mapPage, type Page } from "../store/page.ts";
import type { Store } from "../store/store.ts";
import type { GuardPolicies } from "../tenancy/guard-policies.ts";
import { type Caller, hasRole, maySee, ownKeyOf } from "../tenancy/roles.ts";
import type { Workflows } from "../workflows/workflows.ts";
import type { ApprovalDetail, ApprovalView, DecisionInput, DecisionResult } from "./schemas.ts";

/** Approvals of each kind in one round, and rounds of one pass: many may expire at the same time. */
const SWEPT = 100;
const MAX_ROUNDS = 20;
/** How long a decision may stay without effect on its run until a sweep repeats it, in ms. */
const SETTLE_AGAIN_AFTER_MS = 5_000;

type ApprovalsDeps = {
  store: Pick<Store, "approvals" | "callbacks" | "apiKeys" | "workflowRuns" | "agentRuns">;
  waits: Pick<Waits, "wake">;
  workflows: Pick<Workflows, "settleDecision" | "runOf">;
  agents: Pick<Agents, "runOf">;
  guards: Pick<GuardPolicies, "take">;
};

/**
 * Decisions of people on steps of workflows and on tool calls of agents. The approval's own state decides, by one
 * compare-and-set; what happens to the run follows it.
 */
export function makeApprovals(deps: ApprovalsDeps) {
  const { approvals } = deps.store;
  const settle = (approval: ApprovalRecord): Promise<void> =>
    approval.kind === "agent"
      ? settleApproval(deps.store, approval, () => deps.waits.wake(approval))
      : deps.workflows.settleDecision(approval);
  const expire = async ({ tenantId, _id }: Pick<ApprovalRecord, "tenantId" | "_id">) => {
    const expired = await approvals.decide(tenantId, _id, { status: "expired" }, new Date());
    if (expired) await settle(expired);
    return expired;
  };
  /** Ends approvals that are overdue, of one tenant before it reads, or of all. */
  const expireOverdue = async (tenantId?: string): Promise<void> => {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const overdue = await approvals.overdue(new Date(), { limit: SWEPT, ...defined({ tenantId }) });
      await sweepEach(overdue, expire);
      if (overdue.length < SWEPT) return;
    }
  };
  /** An approval as it is now: one whose time is over expires here, before the sweep finds it. */
  const find = async (caller: Caller, approvalId: string): Promise<ApprovalRecord> => {
    const approval = await approvals.get(caller.tenantId, approvalId);
    if (!approval || !maySee(caller, approval.keyId)) throw notFound("approval");
    if (approval.status !== "pending" || approval.expiresAt.getTime() > Date.now()) return approval;
    return (await expire(approval)) ?? find(caller, approvalId);
  };
  const runOf = async (caller: Caller, approval: ApprovalRecord) =>
    approval.kind === "agent"
      ? { agentRun: await deps.agents.runOf(caller, approval.runId) }
      : { run: await deps.workflows.runOf(caller, approval.workflowId, approval.runId) };
  const { refusal } = makeRights(deps.store);
  return {
    /** Approvals in one state, the newest first. */
    async list(caller: Caller, query: ApprovalQuery): Promise<Page<ApprovalView>> {
      const { tenantId } = caller;
      await expireOverdue(tenantId);
      return mapPage(await approvals.list(tenantId, { ...query, keyId: ownKeyOf(caller) }), toApprovalView);
    },
    /** @throws AppError `not_found`. */
    async get(caller: Caller, approvalId: string): Promise<ApprovalDetail> {
      const approval = await find(caller, approvalId);
      const mayDecide = approval.status === "pending" && (await refusal(caller, approval)) === undefined;
      return { ...toApprovalView(approval), ...(await runOf(caller, approval)), mayDecide };
    },
    /** The decisions that an open run awaits. */
    async awaited(caller: Caller, runId: string): Promise<(ApprovalView & { mayDecide: boolean })[]> {
      const found: (ApprovalView & { mayDecide: boolean })[] = [];
      for (const approvalId of await awaitedBy(deps.store, caller.tenantId, runId)) {
        const approval = await find(caller, approvalId);
        if (approval.status !== "pending") continue;
        found.push({ ...toApprovalView(approval), mayDecide: (await refusal(caller, approval)) === undefined });
      }
      return found;
    },
    expireOverdue,
    /** @throws AppError `not_found`, `insufficient_role`, `compliance_blocked`; `wrong_state` when it was decided, or its time is over. */
    async decide(caller: Caller, approvalId: string, { decision, ...given }: DecisionInput): Promise<DecisionResult> {
      const refused = await refusal(caller, await find(caller, approvalId));
      if (refused !== undefined) throw new AppError("insufficient_role", refused);
      const { comment } = await deps.guards.take(caller, "input", given);
      const by = { decidedBy: caller.subject, ...(comment === undefined ? {} : { comment: comment.toWellFormed() }) };
      const decided = await approvals.decide(caller.tenantId, approvalId, { status: decision, ...by }, new Date());
      if (!decided) throw toRejection(await find(caller, approvalId));
      await settle(decided);
      const { run, agentRun } = { run: undefined, agentRun: undefined, ...(await runOf(caller, decided)) };
      return { ...toApprovalView(decided), runStatus: run?.status ?? agentRun?.status ?? "running" };
    },
    /** Lets approvals expire, and resumes runs whose decision did not reach them. Run it on a schedule. */
    async sweep(): Promise<void> {
      await expireOverdue();
      const before = new Date(Date.now() - SETTLE_AGAIN_AFTER_MS);
      await sweepEach(await approvals.unsettled(before, SWEPT), settle);
    },
  };
}

/** The approvals that an open run of either kind was suspended for. */
async function awaitedBy(
  { workflowRuns, agentRuns }: Pick<Store, "workflowRuns" | "agentRuns">,
  tenantId: string,
  runId: string,
): Promise<string[]> {
  if (idSchema("workflowRun").safeParse(runId).success) {
    const run = await workflowRuns.get(tenantId, runId);
    return run?.awaiting && !run.end ? [run.awaiting.approvalId] : [];
  }
  const run = await agentRuns.get(tenantId, runId);
  return run && !run.end ? (run.awaiting ?? []).flatMap(({ approvalId }) => approvalId ?? []) : [];
}

/** Who may decide. */
function makeRights({ apiKeys }: Pick<Store, "apiKeys">) {
  return {
    /** Why a caller may not decide on an approval; undefined when they may. */
    async refusal(caller: Caller, approval: ApprovalRecord): Promise<string | undefined> {
      const { assigneeRole, keyId, tenantId } = approval;
      if (!hasRole(caller.role, assigneeRole)) return `This decision is for the role ${assigneeRole}.`;
      if (approval.kind !== "agent" || caller.keyId !== keyId) return undefined;
      const isAlone = async () =>
        caller.role === "owner" && (await apiKeys.countUsable(tenantId, { at: new Date() })) < 2;
      if (approval.allowSelfApproval ?? (await isAlone())) return undefined;
      return "The key that started the run may not decide on its calls; the agent's allowSelfApproval allows that.";
    },
  };
}

/** Why a decision comes too late, with the first one. */
function toRejection(approval: ApprovalRecord): AppError {
  const { status } = approval;
  const message = status === "expired" ? "The time to decide is over." : `It is ${status} already.`;
  return new AppError("wrong_state", message, { details: toApprovalView(approval) });
}

function toApprovalView(approval: ApprovalRecord): ApprovalView {
  const { _id: approvalId, runId, startedBy, assigneeRole, message, status, createdAt, expiresAt } = approval;
  const { decidedBy, decidedAt, comment } = approval;
  const of = approval.kind === "agent" ? toCallView(approval) : toStepView(approval);
  const decision = status === "approved" || status === "rejected" ? status : undefined;
  const decided = { decision, decidedBy, decided_by: decidedBy, decidedAt, comment };
  return toView({
    approvalId,
    ...of,
    runId,
    startedBy,
    assigneeRole,
    message,
    status,
    createdAt,
    expiresAt,
    ...decided,
  });
}

function toStepView({ workflowId, workflowName, stepId }: Exclude<ApprovalRecord, { kind: "agent" }>) {
  return { kind: "workflow" as const, workflowId, workflowName, stepId };
}

function toCallView(approval: Extract<ApprovalRecord, { kind: "agent" }>) {
  const { kind, jobId, agentId, agentName, callId, toolName, argumentsHash } = approval;
  return {
    kind,
    jobId,
    agentId,
    agentName,
    callId,
    toolName,
    arguments: JSON.parse(approval.arguments),
    argumentsHash,
  };
}
