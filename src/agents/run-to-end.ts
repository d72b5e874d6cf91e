import { AppError, type ErrorView, toErrorView } from "../errors.ts";
import type { WorkContext } from "../jobs/work.ts";
import type { AgentRunRecord } from "../store/agent-run-store.ts";
import { isStoreUnavailable } from "../store/connect.ts";
import type { AgentsDeps } from "./deps.ts";
import { type Iterations, makeIterations } from "./iterations.ts";
import { makeSpending, type Spending } from "./limits.ts";
import { MAX_TURNS, toPrompt } from "./prompt.ts";
import { type EndState, type RunEnd, RunStopped, type StopReason, stopReasons } from "./run-state.ts";
import type { RunResult } from "./schemas.ts";
import { makeTools, type RunTools } from "./tools/make-tools.ts";
import { openTrail, type Trail } from "./trail.ts";

/** How a run is about to end. */
type Closing = { status: EndState; reason?: StopReason; error?: ErrorView; output?: string };
/** `execute` runs an agent that is called as a tool. */
export type InnerRunContext = WorkContext & { execute(context: WorkContext): Promise<RunResult> };
type Course = { trail: Trail; spending: Spending; inner: AbortController; startedAt: Date };

/** @throws what leaves the run open, to be gone on with by another try. */
export async function runToEnd(deps: AgentsDeps, run: AgentRunRecord, context: InnerRunContext): Promise<RunEnd> {
  const trail = await openTrail(deps.store.audit, run);
  const course: Course = {
    trail,
    spending: makeSpending(run.limits, deps.gateway),
    inner: new AbortController(),
    startedAt: run.startedAt ?? new Date(),
  };
  const release = watchTime(run, context, course);
  let tools: RunTools | undefined;
  try {
    tools = await makeTools(deps, run, { ...context, signal: course.inner.signal, spending: course.spending });
    const iterations = makeIterations({
      runId: run._id,
      acceptedAt: run.createdAt,
      definition: run.definition,
      caller: { tenantId: run.tenantId, ...run.caller },
      context: run.context === undefined ? undefined : JSON.parse(run.context),
      tools: tools.all,
      gateway: deps.gateway,
      trail,
      spending: course.spending,
      signal: course.inner.signal,
      tell: (event) => context.step({ ...event, runId: run._id, depth: run.depth }),
      logger: context.logger,
    });
    const closing = recordedClosing(trail) ?? (await loop(deps, run, { context, course, iterations }));
    return await close(deps, run, { course, iterations, closing });
  } finally {
    release();
    await tools?.close();
  }
}

/** Ends the run's inner signal when its time is over or its job has to stop. */
function watchTime(run: AgentRunRecord, { signal }: WorkContext, { inner, startedAt }: Course): () => void {
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
function recordedClosing({ recorded }: Trail): Closing | undefined {
  const end = recorded.at(-1);
  if (end?.kind !== "end") return undefined;
  const { status, output } = end;
  const reason = stopReasons.find((one) => one === end.reason);
  if (status === "stopped" && reason) return { status, reason, output };
  const code = status === "cancelled" ? "cancelled" : "internal";
  return { status, output, error: toErrorView(new AppError(code, `The run ended: ${end.reason}.`)) };
}

async function loop(
  deps: AgentsDeps,
  run: AgentRunRecord,
  { context, course, iterations }: { context: WorkContext; course: Course; iterations: Iterations },
): Promise<Closing> {
  const { inner, startedAt, trail } = course;
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
    if (status !== "completed") await trail.append({ kind: "end", status, reason, output: iterations.bestAnswer() });
    await context
      .step({ event: "end", index: iterations.count(), runId: run._id, depth: run.depth })
      .catch(() => undefined); // cancelled: nobody is to be told any more
    return closing;
  }
}

/** What an error makes of a run; undefined when the run is to be gone on with. */
function toClosing(error: unknown, { signal, isLastAttempt }: WorkContext): Closing | undefined {
  if (signal.aborted) {
    if (signal.reason instanceof RunStopped) return { status: "stopped", reason: "parent_stopped" };
    const isCancelled = signal.reason instanceof AppError && signal.reason.code === "cancelled";
    return isCancelled ? { status: "cancelled", error: toErrorView(signal.reason) } : undefined;
  }
  if (error instanceof RunStopped) return { status: "stopped", reason: error.reason };
  if (isStoreUnavailable(error)) return undefined;
  const isForGood = error instanceof AppError && !error.retryable;
  return isForGood || isLastAttempt ? { status: "failed", error: toErrorView(error) } : undefined;
}

async function close(
  deps: AgentsDeps,
  { tenantId, _id }: AgentRunRecord,
  { course, iterations, closing }: { course: Course; iterations: Iterations; closing: Closing },
): Promise<RunEnd> {
  const { tokens, costUsd } = course.spending.total();
  const end: RunEnd = {
    ...closing,
    output: closing.output ?? iterations.bestAnswer(),
    steps: iterations.count() || course.trail.recorded.filter(({ kind }) => kind === "intention").length,
    tokensUsed: tokens,
    costUsd,
    ...course.trail.head(),
    finishedAt: new Date(),
  };
  await deps.store.agentRuns.finish(tenantId, _id, end);
  return end;
}
