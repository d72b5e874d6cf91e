import { defined } from "../defined.ts";
import { AppError, type ErrorView, toErrorView } from "../errors.ts";
import type { WorkContext } from "../jobs/work.ts";
import { isStoreUnavailable } from "../store/connect.ts";
import type { ExecutionStep } from "../store/execution-store.ts";
import { type CompositeDeps, type CompositeRun, findRun } from "./deps.ts";
import type { PatternOutcome } from "./patterns/pattern.ts";
import { patterns } from "./patterns.ts";
import { isRegulated, profiles } from "./profiles.ts";
import { makeRunCalls, type RunCalls } from "./run-calls.ts";
import type { CompositeResult } from "./schemas.ts";

/**
 * Runs an execution to its end. One that was cut goes on from the answers that are recorded. When it ends, also by a failure
 * for good or a cancel, what was said in it is erased where the profile is regulated; the result stays.
 * @throws AppError `not_found`; of the pattern: `provider_failed` and others, when too few models answered; the signal's reason.
 */
export async function execute(deps: CompositeDeps, context: WorkContext): Promise<CompositeResult> {
  const { tenantId, recordId: executionId, signal } = context;
  const { executions } = deps.store;
  const execution = await findRun(deps.store, tenantId, executionId);
  if (execution.result) return execution.result; // it ended, and its worker died before it could tell
  if (execution.error) throw toError(execution.error);
  const erase = isRegulated(execution.profile);
  try {
    const result = await runPattern(deps, execution, context);
    await executions.finish(tenantId, executionId, { result, erase });
    return result;
  } catch (error) {
    const isCancelled = signal.aborted && signal.reason instanceof AppError && signal.reason.code === "cancelled";
    const mayGoOn = isStoreUnavailable(error) || (isRetryable(error) && !context.isLastAttempt);
    const isOver = isCancelled || (!signal.aborted && !mayGoOn);
    if (isOver) {
      const view = toErrorView(isCancelled ? signal.reason : error);
      await executions.finish(tenantId, executionId, { error: view, erase });
    }
    throw error;
  }
}

async function runPattern(
  deps: CompositeDeps,
  execution: CompositeRun,
  context: WorkContext,
): Promise<CompositeResult> {
  const { tenantId, recordId: executionId, signal } = context;
  const { run, typicalSteps } = patterns[execution.pattern];
  const profile = profiles[execution.profile];
  const calls = makeRunCalls({
    gateway: deps.gateway,
    caller: { tenantId, keyId: execution.keyId, surface: "composite", signal },
    recorded: execution.steps,
    onStart: ({ role }) => {
      const done = calls.count();
      return context.progress({ stage: role, done, total: Math.max(typicalSteps, done + 1) });
    },
    onEnd: async (step) => {
      await deps.store.executions.addStep(tenantId, executionId, step);
      await context.step(toStepEvent(step));
    },
  });
  const { input = "", models, judge } = execution;
  try {
    const outcome = await run({ input, profile, models, judge, complete: calls.complete });
    return toResult(execution, outcome, calls);
  } catch (error) {
    throw withLastFailure(error, calls.lastFailure());
  }
}

/** A run that too few models answered fails as the last of them did: so its caller learns what is wrong. */
function withLastFailure(error: unknown, last: ErrorView | undefined): unknown {
  if (!(error instanceof AppError) || error.code !== "provider_failed" || last === undefined) return error;
  return new AppError(last.code, `${error.message} The last failure: ${last.message}`, {
    retryable: error.retryable,
    details: { ...Object(error.details), last: last.details },
    cause: error,
  });
}

function toResult(execution: CompositeRun, outcome: PatternOutcome, calls: RunCalls): CompositeResult {
  const { _id, pattern, profile, models } = execution;
  const { disclaimer } = profiles[profile];
  const { output, agreement, dissent } = outcome;
  const [answered, ...others] = calls.models();
  const isOneModel = models.length > 1 && answered !== undefined && others.length === 0;
  const sameModel = `All members are the same model (${answered}): that they agree tells little.`;
  const warnings = [...(isOneModel ? [sameModel] : []), ...outcome.warnings];
  return defined({
    executionId: _id,
    pattern,
    profile,
    output: disclaimer === undefined ? output : `${output}\n\n${disclaimer}`,
    regulated: isRegulated(profile),
    disclaimer,
    stepsExecuted: calls.count(),
    models,
    tokensUsed: calls.tokens(),
    costUsd: Number(calls.costUsd().toFixed(9)),
    agreement,
    dissent: dissent?.length === 0 ? undefined : dissent,
    warnings: warnings.length === 0 ? undefined : warnings,
  });
}

/** What followers are told of a call: nothing that was said in it. */
function toStepEvent({ step, role, model, status, tokens, costUsd }: ExecutionStep) {
  return { step, role, model, status, tokens, costUsd };
}

const isRetryable = (error: unknown) => !(error instanceof AppError) || error.retryable;

function toError({ code, message, param, details }: ErrorView): AppError {
  return new AppError(code, message, defined({ param, details }));
}
