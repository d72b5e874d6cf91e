import { AWAITING_APPROVAL } from "../jobs/job-outcome.ts";
import { Rescheduled } from "../jobs/reschedule.ts";
import type { WorkContext } from "../jobs/work.ts";
import { defined } from "../lib/defined.ts";
import {
  AppError,
  type ErrorView,
  fromErrorView,
  isCancel,
  notFound,
  toErrorView,
  unavailable,
} from "../lib/errors.ts";
import { MAX_TIMER_MS } from "../lib/with-timeout.ts";
import { inSpan, type SpanStart } from "../observe/tracing.ts";
import {
  type AgentRunEnd,
  type AgentRunRecord,
  type RunEnd,
  type StopReason,
  stopReasons,
} from "../store/agent-run-store.ts";
import { isStoreFailure } from "../store/store-errors.ts";
import { approveCall, withdrawApprovals } from "./approve-call.ts";
import { type AuditLog, openAuditLog } from "./audit.ts";
import type { AgentsDeps } from "./deps.ts";
import { makeIterations } from "./iterations.ts";
import type { Loop, RunStepEvent } from "./loop.ts";
import { citeRun, withUrls } from "./passages.ts";
import { MAX_TURNS, toPrompt } from "./prompt.ts";
import { CallSuspended, isPause, type Pause, RunStopped } from "./run-state.ts";
import { makeRunUsage } from "./run-usage.ts";
import type { RunResult } from "./schemas.ts";
import type { ToolContext } from "./tools/tool.ts";
import { makeTools } from "./tools.ts";

/** How long a run keeps its worker before it lets others have a turn, in ms; an iteration that has begun is finished. */
const TURN_MS = 10_000;

/** How a run is about to end. */
type Closing = { status: AgentRunEnd; reason?: StopReason; error?: ErrorView; output?: string };
/** A run that is under way. `inner` ends the calls of the run. */
type Running = Loop & {
  deps: AgentsDeps;
  context: WorkContext;
  auditLog: AuditLog;
  inner: AbortController;
  startedAt: Date;
};

/**
 * Runs an agent to its end; an interrupted run resumes from its audit log. Ends as completed, as stopped by a limit, or, when
 * a failure is final or the job was cancelled, by the error.
 * @throws AppError `not_found`; of the model call; the signal's reason. CallSuspended and Rescheduled, to be resumed; other errors
 * after which another attempt may resume the run.
 */
export async function executeRun(deps: AgentsDeps, context: WorkContext): Promise<RunResult> {
  const { tenantId, recordId: runId } = context;
  const { agentRuns } = deps.store;
  const run = await agentRuns.begin(tenantId, runId);
  if (run) return toResult(await inSpan(toSpan(run), () => runToEnd(deps, run, context), failureOfRun), run);
  const ended = await agentRuns.get(tenantId, runId);
  if (!ended?.end) throw notFound("run");
  return toResult(ended.end, ended); // an earlier worker ended it, and died before it could report that
}

/** The span of a run, by OpenTelemetry's names. The calls of models in it have the usage, so that nothing is counted twice. */
function toSpan({ definition, agentId, agentVersion, sessionId, _id }: AgentRunRecord): SpanStart {
  const attributes = defined({
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.agent.id": agentId,
    "gen_ai.agent.name": definition.name,
    "gen_ai.agent.version": String(agentVersion),
    "gen_ai.request.model": definition.model,
    "gen_ai.conversation.id": sessionId,
    "switchyard.run.id": _id,
  });
  return { name: `invoke_agent ${definition.name}`, kind: "INTERNAL", attributes };
}

const failureOfRun = ({ status, error, reason }: RunEnd) => ({
  failure: error?.code,
  attributes: defined({ "switchyard.run.status": status, "switchyard.run.stop_reason": reason }),
});

async function runToEnd(deps: AgentsDeps, run: AgentRunRecord, context: WorkContext): Promise<RunEnd> {
  const auditLog = inTurns(await openAuditLog(deps.store.audit, run), context);
  const usage = makeRunUsage(run, deps.gateway);
  const inner = new AbortController();
  const signal = AbortSignal.any([context.signal, inner.signal]);
  const startedAt = run.startedAt ?? new Date();
  const turn = makeTurn(run);
  const clock = setTimeout(() => inner.abort(new RunStopped("timeout")), Math.min(turn.leftMs, MAX_TIMER_MS));
  const closers: (() => Promise<void>)[] = [];
  try {
    const { logger } = context;
    const calls = new Map<string, ToolContext>();
    const { tools, policyOf } = await makeTools({
      deps,
      run,
      usage,
      endsAt: turn.endsAt,
      signal,
      logger,
      callOf({ toolCall }) {
        const call = calls.get(toolCall?.id ?? "");
        if (!call) throw new TypeError("a tool was run without a call");
        return call;
      },
      execute: (runId, toolSignal) =>
        executeRun(deps, { ...context, recordId: runId, signal: toolSignal, isLastAttempt: true }),
      notice: async (text) => {
        const isKnown = auditLog.recorded.some((content) => content.kind === "notice" && content.text === text);
        if (!isKnown) await auditLog.append({ kind: "notice", text });
      },
      share: context.share,
      inTurn: (toolSignal, begin) => context.inner({ depth: run.depth + 1, signal: toolSignal }, begin),
      closeLater: (close) => void closers.push(close),
    });
    const notify = (event: RunStepEvent, known: number) => {
      const about = { ...event, runId: run._id, depth: run.depth };
      // The progress of a job is that of the run that was asked for.
      return context.step(about, run.depth > 1 ? undefined : { stage: "steps", done: event.index, total: known });
    };
    const iterations = makeIterations(auditLog, usage);
    const known = auditLog.recorded.filter(({ kind }) => kind === "intention").length;
    const approve: Loop["approve"] = (call, args) => approveCall({ deps, run, auditLog, policyOf, signal }, call, args);
    const yieldTurn = () => turn.yieldAfter(iterations.count() - known);
    const guarded = { tenantId: run.tenantId, keyId: run.caller.keyId, agentId: run.agentId };
    const guardOutput = (output: string) => deps.guards.take(guarded, "toolOutput", output);
    const actions = { approve, yieldTurn, notify, guardOutput };
    const loop = { run, gateway: deps.gateway, iterations, tools, calls, usage, signal, logger, ...actions };
    const running = { ...loop, deps, context, auditLog, inner, startedAt };
    return await close(running, recordedClosing(auditLog) ?? (await iterate(running)));
  } catch (error) {
    throw isPause(error) ? await pause(deps, run, { error, workedMs: turn.workedMs() }) : error;
  } finally {
    clearTimeout(clock);
    await Promise.allSettled(closers.map((close) => close())); // a server that is gone needs no farewell
  }
}

/** A worker's turn at a run: how much of the run's time at work is left, and when others are to have their turn. */
function makeTurn({ limits, workedMs = 0 }: AgentRunRecord) {
  const beganAt = performance.now();
  const leftMs = Math.max(0, limits.timeoutMs - workedMs);
  const ownMs = () => performance.now() - beganAt;
  return {
    leftMs,
    endsAt: new Date(Date.now() + leftMs),
    /** How long this turn has taken. */
    workedMs: () => Math.round(ownMs()),
    /** @throws Rescheduled once the run has had its turn, and something was done in it. */
    yieldAfter(done: number): void {
      if (done > 0 && ownMs() > TURN_MS) throw new Rescheduled(0, "queued");
    },
  };
}

/** Notes on a run that is given back how long it was worked on, and what it awaits. Returns what ends its turn. */
async function pause(
  { store: { agentRuns } }: AgentsDeps,
  { tenantId, _id }: AgentRunRecord,
  { error, workedMs }: { error: Pause; workedMs: number },
): Promise<Pause> {
  await agentRuns.work(tenantId, _id, workedMs);
  if (error instanceof Rescheduled) return error;
  const { awaited, isOver, runIds } = error;
  await agentRuns.await(tenantId, _id, [...awaited], [...runIds]);
  return new CallSuspended(awaited, isOver, [...runIds, _id]);
}

/**
 * An audit log whose entries are written in turns: models that answer at once would fill process and store with one tenant's
 * runs. What has happened is recorded whether or not the run's turn comes before it is stopped.
 */
function inTurns(auditLog: AuditLog, { share, signal }: WorkContext): AuditLog {
  return {
    ...auditLog,
    append(content) {
      const write = () => auditLog.append(content);
      return share(write).catch((error: unknown) => (signal.aborted ? write() : Promise.reject(error)));
    },
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

async function iterate(running: Running): Promise<Closing> {
  const { deps, run, context, auditLog, iterations, inner, startedAt } = running;
  const { tenantId, agentId, sessionId, _id: before } = run;
  try {
    // Others' turns may hold documents that a limited key must not read.
    const own = run.caller.collections === undefined ? {} : { keyId: run.caller.keyId };
    const session = { agentId, before, endedBy: startedAt, limit: MAX_TURNS, ...own };
    const earlier =
      sessionId === undefined || run.history
        ? []
        : await deps.store.agentRuns.turns(tenantId, { ...session, sessionId });
    // Loaded by workers alone, and at their first run: LangChain is large, and the API never runs it.
    const { runLoop } = await import("./loop.ts");
    await runLoop({
      ...running,
      ...toPrompt(run, earlier),
      giveUp: (error) => inner.abort(toSiblingsEnd(error, context)),
    });
    const cut = iterations.cutBy();
    if (cut !== undefined) throw new RunStopped(cut);
    return { status: "completed" };
  } catch (error) {
    if (isPause(error) && !context.signal.aborted) {
      await reportPause(running, error);
      throw error;
    }
    const closing = toClosing(error, context);
    if (closing === undefined) throw error;
    if (!context.signal.aborted) await context.confirm();
    const reason = closing.reason ?? closing.error?.code ?? "failed";
    const { status } = closing;
    if (status !== "completed") await auditLog.append({ kind: "end", status, reason, output: iterations.bestAnswer() });
    await context
      .step({ event: "end", index: iterations.count(), runId: run._id, depth: run.depth })
      .catch(() => undefined); // cancelled: the job has no followers any more
    return closing;
  }
}

/** Tells followers of the job that its run waits. */
async function reportPause({ run, context, iterations }: Running, error: Pause): Promise<void> {
  if (error instanceof Rescheduled) return;
  const isAsked = error.awaited.some(({ kind }) => kind === "approval");
  const stage = isAsked ? AWAITING_APPROVAL : "waiting";
  const done = iterations.count();
  const progress = run.depth > 1 ? undefined : { stage, done, total: done + 1 };
  await context.step({ event: stage, index: done, runId: run._id, depth: run.depth }, progress);
}

/** How an error ends a run; undefined when another attempt may resume it. */
function toClosing(error: unknown, { signal, isLastAttempt }: WorkContext): Closing | undefined {
  if (signal.aborted) {
    if (signal.reason instanceof RunStopped) return { status: "stopped", reason: "parent_stopped" };
    return isCancel(signal.reason) ? { status: "cancelled", error: toErrorView(signal.reason) } : undefined;
  }
  if (error instanceof RunStopped) return { status: "stopped", reason: error.reason };
  if (isStoreFailure(error)) return undefined;
  const isFinal = error instanceof AppError && !error.retryable;
  return isFinal || isLastAttempt ? { status: "failed", error: toErrorView(error) } : undefined;
}

/** Why the other calls of a step end when one has failed: for good, or to be made again by the attempt that resumes the run. */
function toSiblingsEnd(error: unknown, context: WorkContext): AppError {
  if (toClosing(error, context) === undefined) return unavailable("The run", error);
  return new AppError("cancelled", "Another call of this step failed.");
}

async function close({ deps, run, auditLog, usage, iterations }: Running, closing: Closing): Promise<RunEnd> {
  if (run.definition.tools.some(({ approval }) => approval)) await withdrawApprovals(deps.store, run);
  const { tokens, outputTokens, costUsd } = usage.total();
  const output = closing.output ?? iterations.bestAnswer();
  const cited = citeRun(iterations.observations(), output);
  const citations = cited && (await withUrls(deps.store, run.tenantId, cited));
  const end: RunEnd = {
    ...closing,
    output,
    ...(citations && { citations }),
    steps: iterations.count() || auditLog.recorded.filter(({ kind }) => kind === "intention").length,
    tokensUsed: tokens,
    outputTokens,
    costUsd,
    ...auditLog.head(),
    finishedAt: new Date(),
  };
  await deps.store.agentRuns.finish(run.tenantId, run._id, end);
  await usage.closeBudgets();
  return end;
}

/** The result of a run that has ended. @throws AppError when it failed or was cancelled. */
function toResult(end: RunEnd, { _id: runId, agentId, agentVersion, sessionId }: AgentRunRecord): RunResult {
  const { status, output, reason: stopReason, steps, tokensUsed, outputTokens, costUsd, head: auditHead, error } = end;
  if (status !== "completed" && status !== "stopped") throw fromErrorView(error, "The run failed.");
  const about = { citations: end.citations, stopReason, agentId, agentVersion, sessionId, auditHead };
  return defined({ output, steps, runId, tokensUsed, outputTokens, costUsd, status, ...about });
}
