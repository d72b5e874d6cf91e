import { openRunState, sumSpent } from "../definitions/runs.ts";
import { defined, toView } from "../lib/defined.ts";
import type { AgentRunRecord, AgentRunSummaryRecord, AwaitedByRun } from "../store/agent-run-store.ts";
import type { AuditCall, AuditContent, AuditEntry } from "../store/audit-store.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { JobState } from "../store/job-state.ts";
import { parseArguments } from "./arguments.ts";
import { verifyAuditLog } from "./audit.ts";
import type { RunSummary, RunView, StepView } from "./schemas.ts";

type Turn = Extract<AuditContent, { kind: "intention" | "answer" }>;
type Observed = { content: Extract<AuditContent, { kind: "observation" }>; at: string };

/** A run as it is read back: its steps joined from the entries, and whether the chain holds. */
export function toRunView(run: AgentRunRecord, entries: readonly AuditEntry[], job: JobRecord | null): RunView {
  const { end, context, input, history, definition } = run;
  const contents = entries.map(({ content }) => content);
  const notices = contents.flatMap((content) => (content.kind === "notice" ? [content.text] : []));
  return {
    ...toHead(run, job?.status, contents),
    agentName: definition.name,
    input,
    ...defined({
      history,
      notices: notices.length > 0 ? notices : undefined,
      context: context === undefined ? undefined : JSON.parse(context),
      error: end ? end.error : job?.error,
      guard: job?.guard,
    }),
    steps: joinSteps(entries),
    finalOutput: end?.output ?? "",
    ...defined({ citations: end?.citations }),
    integrity: verifyAuditLog(run, entries),
  };
}

/** A run in a list; `job` is the state of the job of one that is open. */
export function toRunSummary(run: AgentRunSummaryRecord, job: JobState | undefined): RunSummary {
  return { ...toHead(run, job, []), steps: run.end?.steps ?? 0 };
}

function toHead(run: AgentRunSummaryRecord, job: JobState | undefined, contents: readonly AuditContent[]) {
  const { _id: runId, agentId, agentVersion, jobId, parentRunId, sessionId, createdAt, startedAt, end } = run;
  const awaiting = end === undefined && job === "awaiting" ? run.awaiting : undefined;
  const spent = sumSpent(contents.flatMap((content) => ("spent" in content ? [content.spent] : [])));
  const { status = awaiting ? stateOfWait(awaiting) : openRunState(job), reason: stopReason, finishedAt } = end ?? {};
  const { tokensUsed, costUsd } = end ?? { tokensUsed: spent.tokens, costUsd: spent.costUsd };
  const about = { runId, agentId, agentVersion, jobId, parentRunId, sessionId, status, stopReason };
  return toView({
    ...about,
    awaiting: awaiting?.map((one) => toView(one)),
    createdAt,
    startedAt,
    finishedAt,
    tokensUsed,
    costUsd,
  });
}

const stateOfWait = (awaiting: readonly AwaitedByRun[]): RunSummary["status"] =>
  awaiting.some(({ kind }) => kind === "approval") ? "awaiting_approval" : "waiting";

/** One step an iteration: the model's answer, and the observations of the calls that it requested. */
function joinSteps(entries: readonly AuditEntry[]): StepView[] {
  const observed = new Map<string, Observed>();
  const approvals = new Map<string, Action["approval"]>();
  const turns: { turn: Turn; at: string }[] = [];
  for (const { content, at } of entries) {
    if (content.kind === "observation") observed.set(content.callId, { content, at });
    else if (content.kind === "asked" || content.kind === "decided") approvals.set(content.callId, toApproval(content));
    else if (content.kind === "intention" || content.kind === "answer") turns.push({ turn: content, at });
  }
  return turns.map(({ turn, at }, place) => {
    const { thought, model, logId, spent } = turn;
    const calls =
      turn.kind === "intention"
        ? turn.calls.map((call) => ({
            ...toAction(call, observed.get(call.id)),
            ...defined({ approval: approvals.get(call.id) }),
          }))
        : [];
    const used = calls.flatMap(({ id }) => observed.get(id)?.content.spent ?? []);
    const joined = { index: place + 1, thought, ...joinActions(calls, at) };
    return { ...joined, model, logId, startedAt: at, ...sumSpent([spent, ...used]) };
  });
}

type Action = NonNullable<StepView["actions"]>[number];

/** What the chain says of a call's approval. */
function toApproval(content: Extract<AuditContent, { kind: "asked" | "decided" }>): Action["approval"] {
  const { approvalId } = content;
  if (content.kind === "asked") return { approvalId, status: "pending" };
  const { decision: status, by: decidedBy, comment } = content;
  return { approvalId, status, ...defined({ decidedBy, comment }) };
}

function toAction({ id, name, arguments: json, idempotencyKey }: AuditCall, observation: Observed | undefined): Action {
  const action = { id, action: name, actionInput: parseArguments(json, true) ?? { invalid: json }, idempotencyKey };
  if (!observation) return { ...action, observation: "" };
  const { output, isError, startedAt, runId, jobId, citations } = observation.content;
  const optional = defined({
    isError: isError || undefined,
    runId,
    jobId,
    citations: citations?.map(({ at: _at, length: _length, ...shown }) => shown),
  });
  return { ...action, observation: output, ...optional, startedAt, finishedAt: observation.at };
}

/** What an iteration did, in the interface's one action; several calls of one answer stand in `actions` too. */
function joinActions(calls: readonly Action[], answeredAt: string) {
  const [first, second] = calls;
  if (!first) return { action: "final_answer", actionInput: {}, observation: "", finishedAt: answeredAt };
  const ends = calls.flatMap((call) => call.finishedAt ?? []).sort();
  const finished = ends.length < calls.length ? {} : defined({ finishedAt: ends.at(-1) });
  if (!second) {
    const { id: _id, startedAt: _startedAt, finishedAt: _finishedAt, ...only } = first;
    return { ...only, ...finished };
  }
  return {
    action: calls.map(({ action }) => action).join(", "),
    actionInput: Object.fromEntries(calls.map(({ id, actionInput }) => [id, actionInput])),
    observation: calls.map(({ id, action, observation }) => `[${id} ${action}]\n${observation}`).join("\n\n"),
    actions: [...calls],
    ...finished,
  };
}
