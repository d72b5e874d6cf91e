import { makeUsageTracker, sumSpent } from "../definitions/runs.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { WorkContext } from "../jobs/work.ts";
import { defined } from "../lib/defined.ts";
import { AppError, fromErrorView, isCancel, notFound, toErrorView } from "../lib/errors.ts";
import type { ExecutionRecord, ExecutionStep, ExecutionStore } from "../store/execution-store.ts";
import { isStoreFailure, Overtaken } from "../store/store-errors.ts";
import type { GuardPolicies } from "../tenancy/guard-policies.ts";
import type { Quotas } from "../tenancy/quotas.ts";
import { openPatternRun, type PatternOutcome } from "./patterns/pattern.ts";
import { type PatternId, patterns } from "./patterns.ts";
import { isRegulated, type ProfileId, profiles } from "./profiles.ts";
import { makeRunCalls } from "./run-calls.ts";
import type { CompositeResult } from "./schemas.ts";

/** What composite runs work with. */
export type CompositeDeps = {
  store: { executions: ExecutionStore };
  jobs: Pick<Jobs, "submit" | "find">;
  gateway: Pick<Gateway, "complete" | "usableModels" | "resolveModel" | "requireBudget">;
  quotas: Pick<Quotas, "check">;
  guards: Pick<GuardPolicies, "take">;
};

/** A run as it is recorded here; the store does not know which patterns and profiles there are. */
export type CompositeRun = ExecutionRecord & { pattern: PatternId; profile: ProfileId; result?: CompositeResult };

/** @throws AppError `not_found`. */
export async function findRun({ store }: CompositeDeps, tenantId: string, executionId: string): Promise<CompositeRun> {
  const execution = await store.executions.get(tenantId, executionId);
  if (!execution) throw notFound("execution");
  return execution as CompositeRun; // as `accept` of composite.ts recorded it
}

/**
 * Runs an execution to its end; an interrupted one resumes with the recorded answers. When it ends, also by a final failure or
 * a cancel, its input and its answers are erased where the profile is regulated; the result stays.
 * @throws AppError `not_found`; of the pattern: `provider_failed` and others, when too few models answered; the signal's reason.
 */
export async function execute(deps: CompositeDeps, context: WorkContext): Promise<CompositeResult> {
  const { tenantId, recordId: executionId, signal } = context;
  const { executions } = deps.store;
  const execution = await findRun(deps, tenantId, executionId);
  const ended = endOf(execution); // its worker died before it could report that
  if (ended) return ended;
  const erase = isRegulated(execution.profile);
  try {
    const result = await runPattern(deps, execution, context);
    if (await executions.finish(tenantId, executionId, { result, erase })) return result;
    return endOf(await findRun(deps, tenantId, executionId)) ?? result; // another worker, or a cancel, came first
  } catch (error) {
    const isCancelled = isCancel(signal.reason);
    const isRetryable = !(error instanceof AppError) || error.retryable;
    const mayResume = isStoreFailure(error) || (isRetryable && !context.isLastAttempt);
    if (isCancelled || (!signal.aborted && !mayResume)) {
      const view = toErrorView(isCancelled ? signal.reason : error);
      await executions.finish(tenantId, executionId, { error: view, erase });
    }
    throw error;
  }
}

/** The result of a run that has ended; undefined of one that has not. @throws AppError when it failed or was cancelled. */
function endOf({ result, error }: CompositeRun): CompositeResult | undefined {
  if (error) throw fromErrorView(error, "The run failed.");
  return result;
}

async function runPattern(deps: CompositeDeps, execution: CompositeRun, context: WorkContext) {
  const { tenantId, signal } = context;
  const { run, typicalSteps } = patterns[execution.pattern];
  const profile = profiles[execution.profile];
  const about = {
    origin: { jobId: execution.jobId, runId: execution._id },
    isErased: isRegulated(execution.profile),
    ...(execution.boundBy && { limit: makeUsageTracker(execution).limit }),
  };
  const calls = makeRunCalls({
    gateway: deps.gateway,
    caller: { tenantId, keyId: execution.keyId, surface: "composite", signal, ...about },
    recorded: execution.steps,
    onStart: ({ role }, done) => context.progress({ stage: role, done, total: Math.max(typicalSteps, done + 1) }),
    onEnd: async (step) => {
      const keep = () => keepStep(deps, execution, step);
      // Models that answer at once would fill the store with one tenant's steps. What was answered is recorded in any case.
      const inTurn = context.share(keep);
      const kept = await inTurn.catch((error: unknown) => (signal.aborted ? keep() : Promise.reject(error)));
      await context.step(toStepEvent(kept));
      return kept;
    },
  });
  const { input = "", models, judge } = execution;
  const opened = openPatternRun({ input, profile, models, judge, complete: calls.complete });
  try {
    const outcome = await run(opened);
    return toResult(execution, { ...outcome, warnings: opened.warnings }, calls.ended);
  } catch (error) {
    throw withLastFailure(error, calls.ended);
  }
}

/**
 * Records a call that has ended, and returns it; where another worker has recorded an answer to it, that one, on which all
 * that follows is built. @throws Overtaken when another worker has ended the run.
 */
async function keepStep(
  { store: { executions } }: CompositeDeps,
  { tenantId, _id }: CompositeRun,
  step: ExecutionStep,
): Promise<ExecutionStep> {
  if (await executions.addStep(tenantId, _id, step)) return step;
  const run = await executions.get(tenantId, _id);
  const kept = run?.steps.find((one) => one.step === step.step && one.status === "completed");
  if (!run?.isOpen || !kept) throw new Overtaken("This run");
  return kept;
}

/** A run that too few models answered fails as the last of them did: so its caller learns what is wrong. */
function withLastFailure(error: unknown, ended: readonly ExecutionStep[]): unknown {
  const last = ended.findLast(({ status }) => status === "failed")?.error;
  if (!(error instanceof AppError) || error.code !== "provider_failed" || last === undefined) return error;
  return new AppError(last.code, `${error.message} The last failure: ${last.message}`, {
    retryable: error.retryable,
    details: { ...Object(error.details), last: last.details },
    cause: error,
  });
}

function toResult(
  execution: CompositeRun,
  outcome: PatternOutcome & { warnings: readonly string[] },
  ended: readonly ExecutionStep[],
): CompositeResult {
  const { _id, pattern, profile, models } = execution;
  const { disclaimer } = profiles[profile];
  const { output, agreement, dissent } = outcome;
  const answered = new Set(ended.flatMap(({ status, model }) => (status === "completed" ? [model] : [])));
  const sameModel = `All members are the same model (${[...answered].join()}): their agreement proves little.`;
  const finishReason = cutOf(output, ended);
  const cut = finishReason === undefined ? [] : [`The answer is not whole: its model ended with ${finishReason}.`];
  const warnings = [...cut, ...(models.length > 1 && answered.size === 1 ? [sameModel] : []), ...outcome.warnings];
  const { tokens, outputTokens, costUsd } = sumSpent(ended);
  return defined({
    executionId: _id,
    pattern,
    profile,
    finishReason,
    output: disclaimer === undefined ? output : `${output}\n\n${disclaimer}`,
    regulated: isRegulated(profile),
    disclaimer,
    stepsExecuted: ended.length,
    models,
    tokensUsed: tokens,
    outputTokens,
    costUsd,
    agreement,
    dissent: dissent?.length === 0 ? undefined : dissent,
    warnings: warnings.length === 0 ? undefined : warnings,
  });
}

/** Why the answer that a run gives is not whole: it is one of its calls', or the end of one; undefined when it is. */
const cutOf = (output: string, ended: readonly ExecutionStep[]) =>
  ended.findLast(({ output: said }) => output !== "" && said?.endsWith(output))?.finishReason;

/** What followers receive of a call: nothing that was asked or answered. */
function toStepEvent({ step, role, model, status, tokens, costUsd }: ExecutionStep) {
  return { step, role, model, status, tokens, costUsd };
}
