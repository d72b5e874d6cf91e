import { defined } from "../defined.ts";
import { AppError, type ErrorView, fromErrorView, notFound, toErrorView } from "../errors.ts";
import type { WorkContext } from "../jobs/work.ts";
import {
  type AgentRunEnd,
  type AgentRunRecord,
  type RunEnd,
  type StopReason,
  stopReasons,
} from "../store/agent-run-store.ts";
import { isStoreUnavailable } from "../store/connect.ts";
import { type AuditLog, openAuditLog } from "./audit.ts";
import type { AgentsDeps } from "./deps.ts";
import { type Iterations, makeIterations } from "./iterations.ts";
import { MAX_TURNS, toPrompt } from "./prompt.ts";
import { RunStopped } from "./run-state.ts";
import { makeRunUsage, type RunUsage } from "./run-usage.ts";
import type { RunResult } from "./schemas.ts";
import { makeTools, type RunTools } from "./tools.ts";

/** How a run is about to end. */
type Closing = { status: AgentRunEnd; reason?: StopReason; error?: ErrorView; output?: string };
/** `inner` ends the calls of the run. */
type Progress = { auditLog: AuditLog; usage: RunUsage; inner: AbortController; startedAt: Date };

/**
 * Runs an agent to its end; an interrupted run resumes from its audit log. Ends as completed, as stopped by a limit, or, when
 * a failure is final or the job was cancelled, by the error.
 * @throws AppError `not_found`; of the model call; the signal's reason. Other errors after which another attempt may resume the run.
 */
export async function executeRun(deps: AgentsDeps, context: WorkContext): Promise<RunResult> {
  const { tenantId, recordId: runId } = context;
  const { agentRuns } = deps.store;
  const run = await agentRuns.begin(tenantId, runId);
  if (run) return toResult(await runToEnd(deps, run, context), run);
  const ended = await agentRuns.get(tenantId, runId);
  if (!ended?.end) throw notFound("run");
  return toResult(ended.end, ended); // an earlier worker ended it, and died before it could report that
}

async function runToEnd(deps: AgentsDeps, run: AgentRunRecord, context: WorkContext): Promise<RunEnd> {
  const auditLog = await openAuditLog(deps.store.audit, run);
  const usage = makeRunUsage(run.limits, deps.gateway);
  const progress: Progress = { auditLog, usage, inner: new AbortController(), startedAt: run.startedAt ?? new Date() };
  const { signal } = progress.inner;
  const release = watchTime(run, context, progress);
  let tools: RunTools | undefined;
  try {
    const execute = (inner: WorkContext) => executeRun(deps, inner);
    tools = await makeTools(deps, run, { ...context, signal, usage, execute });
    const iterations = makeIterations({
      runId: run._id,
      acceptedAt: run.createdAt,
      definition: run.definition,
      caller: { tenantId: run.tenantId, ...run.caller },
      context: run.context === undefined ? undefined : JSON.parse(run.context),
      tools: tools.all,
      gateway: deps.gateway,
      auditLog,
      usage,
      signal,
      notify: (event) => context.step({ ...event, runId: run._id, depth: run.depth }),
      logger: context.logger,
    });
    const closing = recordedClosing(auditLog) ?? (await iterate(deps, run, { context, progress, iterations }));
    return await close(deps, run, { progress, iterations, closing });
  } finally {
    release();
    await tools?.close();
  }
}

/** Ends the run's inner signal when its time is over or its job has to stop. */
function watchTime(run: AgentRunRecord, { signal }: WorkContext, { inner, startedAt }: Progress): () => void {
  const leftMs = Math.max(0, startedAt.getTime() + run.limits.timeoutMs - Date.now());
  const clock = setTimeout(() => inner.abort(new RunStopped("timeout")), leftMs);
  const onAbort = () => inner.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  return () => {
    clearTimeout(clock);
    signal.removeEventListener("abort", onAbort);
  };
}

/** How an earlier worker was about to end the run when it died. */
function recordedClosing({ recorded }: AuditLog): Closing | undefined {
  const end = recorded.at(-1);
  if (end?.kind !== "end") return undefined;
  const { status, output } = end;
  const reason = stopReasons.find((one) => one === end.reason);
  if (status === "stopped" && reason) return { status, reason, output };
  const code = status === "cancelled" ? "cancelled" : "internal";
  return { status, output, error: toErrorView(new AppError(code, `The run ended: ${end.reason}.`)) };
}

async function iterate(
  deps: AgentsDeps,
  run: AgentRunRecord,
  { context, progress, iterations }: { context: WorkContext; progress: Progress; iterations: Iterations },
): Promise<Closing> {
  const { inner, startedAt, auditLog } = progress;
  const { tenantId, agentId, sessionId, definition, _id: before } = run;
  try {
    const session = { agentId, before, endedBy: startedAt, limit: MAX_TURNS };
    const earlier =
      sessionId === undefined ? [] : await deps.store.agentRuns.turns(tenantId, { ...session, sessionId });
    // Loaded by workers alone, and at their first run: LangChain is large, and the API never runs it.
    const { runLoop } = await import("./loop.ts");
    await runLoop({
      ...toPrompt(run, earlier),
      maxIterations: definition.maxIterations,
      recall: iterations.recall,
      think: iterations.think,
      act: iterations.act,
      giveUp: () => inner.abort(new AppError("cancelled", "Another call of this step failed.")),
    });
    return { status: "completed" };
  } catch (error) {
    const closing = toClosing(error, context);
    if (closing === undefined) throw error;
    const reason = closing.reason ?? closing.error?.code ?? "failed";
    const { status } = closing;
    if (status !== "completed") await auditLog.append({ kind: "end", status, reason, output: iterations.bestAnswer() });
    await context
      .step({ event: "end", index: iterations.count(), runId: run._id, depth: run.depth })
      .catch(() => undefined); // cancelled: the job has no followers any more
    return closing;
  }
}

/** How an error ends a run; undefined when another attempt may resume it. */
function toClosing(error: unknown, { signal, isLastAttempt }: WorkContext): Closing | undefined {
  if (signal.aborted) {
    if (signal.reason instanceof RunStopped) return { status: "stopped", reason: "parent_stopped" };
    const isCancelled = signal.reason instanceof AppError && signal.reason.code === "cancelled";
    return isCancelled ? { status: "cancelled", error: toErrorView(signal.reason) } : undefined;
  }
  if (error instanceof RunStopped) return { status: "stopped", reason: error.reason };
  if (isStoreUnavailable(error)) return undefined;
  const isFinal = error instanceof AppError && !error.retryable;
  return isFinal || isLastAttempt ? { status: "failed", error: toErrorView(error) } : undefined;
}

async function close(
  deps: AgentsDeps,
  { tenantId, _id }: AgentRunRecord,
  { progress, iterations, closing }: { progress: Progress; iterations: Iterations; closing: Closing },
): Promise<RunEnd> {
  const { tokens, costUsd } = progress.usage.total();
  const end: RunEnd = {
    ...closing,
    output: closing.output ?? iterations.bestAnswer(),
    steps: iterations.count() || progress.auditLog.recorded.filter(({ kind }) => kind === "intention").length,
    tokensUsed: tokens,
    costUsd,
    ...progress.auditLog.head(),
    finishedAt: new Date(),
  };
  await deps.store.agentRuns.finish(tenantId, _id, end);
  return end;
}

/** The result of a run that has ended. @throws AppError when it failed or was cancelled. */
function toResult(end: RunEnd, { _id: runId, agentId, agentVersion, sessionId }: AgentRunRecord): RunResult {
  const { status, output, reason: stopReason, steps, tokensUsed, costUsd, head: auditHead, error } = end;
  if (status !== "completed" && status !== "stopped") throw fromErrorView(error, "The run failed.");
  const about = { stopReason, agentId, agentVersion, sessionId, auditHead };
  return defined({ output, steps, runId, tokensUsed, costUsd, status, ...about });
}
