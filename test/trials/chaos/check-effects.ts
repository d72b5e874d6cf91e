import { type ApprovalRecord, approvalCollection } from "../../../src/store/approval-store.ts";
import { type WorkflowStepRecord, workflowStepCollection } from "../../../src/store/workflow-step-store.ts";
import type { ChildrenOf, JobOf } from "./check-jobs.ts";
import { COMPOSED_EFFECTS } from "./composed.ts";
import { about, type Check, type Evidence, total } from "./evidence.ts";
import type { Accepted } from "./load.ts";
import { PARTS } from "./work.ts";

/** Results that a whole run of the workflow has. */
const STEPS_A_RUN = 3;

/** Effects of a whole run, by its work. */
const effectsOf: Partial<Record<Accepted["work"], number>> = {
  ...{ agent: 1, workflow: 1, purchase: PARTS },
  composed: COMPOSED_EFFECTS,
};

/** What runs did in the world outside: each order was placed for a run, under one idempotency key, which is the run's own, or of a run within. */
export function checkEffects(
  { load, external }: Evidence,
  { jobOf, childrenOf }: { jobOf: JobOf; childrenOf: ChildrenOf },
): Check {
  const breaches: string[] = [];
  const orders = new Map(external.orders);
  for (const accepted of load.accepted.filter(({ work }) => work in effectsOf)) {
    const job = jobOf(accepted);
    const keys = [...(orders.get(accepted.ticket)?.keys() ?? [])];
    orders.delete(accepted.ticket);
    const expected = effectsOf[accepted.work] ?? 0;
    const isOnce = keys.length === expected || (keys.length < expected && job?.status !== "completed");
    const runs = [job, ...childrenOf(accepted)].flatMap((one) => one?.subject.runId ?? []);
    const isOwn = keys.every((key) => runs.some((runId) => key.startsWith(runId)));
    if (!isOnce || !isOwn) breaches.push(`${about(accepted)} has the effects ${keys.join(", ") || "none"}`);
  }
  for (const ticket of orders.keys()) breaches.push(`order ${ticket} was made for nobody`);
  const deliveries = [...external.orders.values()].reduce((sum, keys) => sum + total(keys), 0);
  return {
    promise: "each effect outside happens once, by its idempotency key",
    found: `${external.orders.size} orders, delivered ${deliveries} times`,
    breaches,
  };
}

/** A call that needs an approval was made after it was approved, and with the arguments that were approved. */
export async function checkApprovedCalls({ db, load, external }: Evidence, jobOf: JobOf): Promise<Check> {
  const approvals = await db.collection<ApprovalRecord>(approvalCollection.name).find({ kind: "agent" }).toArray();
  const asked = Map.groupBy(approvals, ({ runId }) => runId);
  const breaches: string[] = [];
  const purchases = load.accepted.filter(({ work }) => work === "purchase");
  for (const accepted of purchases) {
    const job = jobOf(accepted);
    const runId = job?.subject.runId ?? "";
    const approved = (asked.get(runId) ?? []).flatMap((one) =>
      one.kind === "agent" && one.status === "approved" ? [String(JSON.parse(one.arguments).url)] : [],
    );
    const own = [...external.called].filter(([key]) => key.startsWith(`${runId}-`));
    const made = own.flatMap(([, urls]) => [...urls]);
    for (const url of made)
      if (!approved.includes(url)) breaches.push(`${about(accepted)} called ${url}, which nobody had approved`);
    if (job?.status === "completed" && new Set(made).size !== PARTS)
      breaches.push(`${about(accepted)} made ${new Set(made).size} of ${PARTS} calls that were approved`);
  }
  return {
    promise: "each call that needs an approval is made with the arguments that were approved",
    found: `${purchases.length} purchases, ${approvals.length} approvals`,
    breaches,
  };
}

/** A completed run of a workflow has the result of each of its steps, and went on because somebody had agreed. */
export async function checkWorkflows({ db, load }: Evidence, jobOf: JobOf): Promise<Check> {
  const steps = await db.collection<WorkflowStepRecord>(workflowStepCollection.name).find().toArray();
  const approvals = await db.collection<ApprovalRecord>(approvalCollection.name).find().toArray();
  const stepsOf = Map.groupBy(steps, ({ runId }) => runId);
  const approvalsOf = Map.groupBy(approvals, ({ runId }) => runId);
  const breaches: string[] = [];
  const runs = load.accepted.filter(({ work }) => work === "workflow");
  for (const accepted of runs) {
    const job = jobOf(accepted);
    if (job?.status !== "completed") continue;
    const runId = job.subject.runId ?? "";
    const there = stepsOf.get(runId)?.length ?? 0;
    if (there !== STEPS_A_RUN) breaches.push(`${about(accepted)} has the results of ${there} steps for ${STEPS_A_RUN}`);
    const states = approvalsOf.get(runId)?.map(({ status }) => status) ?? [];
    if (states.join() !== "approved")
      breaches.push(`${about(accepted)} went on though ${states.join() || "nobody was asked"}`);
  }
  return {
    promise: "each step of a workflow is recorded once, and nothing goes on without a decision",
    found: `${runs.length} runs, ${steps.length} steps, ${approvals.length} approvals`,
    breaches,
  };
}
