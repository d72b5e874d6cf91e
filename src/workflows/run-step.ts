import { AppError } from "../errors.ts";
import type { WorkContext } from "../jobs/work.ts";
import type { WorkflowRunRecord } from "../store/workflow-run-store.ts";
import { inSpan } from "../tracing.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { parseExpression, type Scope } from "./expressions.ts";
import type { PlannedStep } from "./plan.ts";
import type { AiCompletionStep, ConditionStep, RagQueryStep, Step, WebhookStep } from "./step-schemas.ts";
import { fillText, fillWithin, inField } from "./step-texts.ts";

const DEFAULT_TOP_K = 10;
/** Longest query, in characters; that of `POST /rag/query`. */
const MAX_QUERY = 8_192;
const SURFACE = "workflows";

export type StepResult = { output: unknown; spent?: { tokens: number; costUsd: number } };

/** A step that does its work by itself; approvals are a person's. */
export type WorkingStep = Exclude<Step, { type: "human_approval" }>;

type Work<S> = {
  deps: WorkflowsDeps;
  run: WorkflowRunRecord;
  step: S;
  planned: PlannedStep;
  scope: Scope;
  context: Pick<WorkContext, "signal">;
};

/**
 * Does the work of one step, once. It may be done again after a crash: a webhook's message has the same id then.
 * @throws AppError `invalid_request` for an expression without a value; what the gateway, retrieval and webhooks throw; each
 * tells whether another try can help. The signal's reason.
 */
export function runStep(work: Work<WorkingStep>): Promise<StepResult> {
  const { step, planned, run } = work;
  const attributes = { "switchyard.run.id": run._id, "switchyard.step.path": planned.path };
  return inSpan({ name: `step ${step.type}`, kind: "INTERNAL", attributes }, async () => doStep(work));
}

function doStep(work: Work<WorkingStep>): Promise<StepResult> | StepResult {
  const { step } = work;
  switch (step.type) {
    case "ai_completion":
      return complete({ ...work, step });
    case "rag_query":
      return query({ ...work, step });
    case "webhook":
      return callWebhook({ ...work, step });
    case "condition":
      return choose({ ...work, step });
    default:
      return step satisfies never;
  }
}

async function complete({ deps, run, step, planned, scope, context }: Work<AiCompletionStep>): Promise<StepResult> {
  const { model, prompt, systemPrompt, temperature, maxTokens } = step;
  const caller = { tenantId: run.tenantId, keyId: run.caller.keyId, surface: SURFACE, signal: context.signal };
  const { text, usage, costUsd } = await deps.gateway.complete(caller, {
    model,
    messages: [{ role: "user", content: fillText(prompt, scope, `${planned.field}.prompt`) }],
    ...(systemPrompt === undefined
      ? {}
      : { systemPrompt: fillText(systemPrompt, scope, `${planned.field}.systemPrompt`) }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
  });
  return { output: text.toWellFormed(), spent: { tokens: usage.inputTokens + usage.outputTokens, costUsd } };
}

async function query({ deps, run, step, planned, scope, context }: Work<RagQueryStep>): Promise<StepResult> {
  const param = `${planned.field}.query`;
  const text = fillText(step.query, scope, param).trim();
  if (text === "") throw new AppError("invalid_request", "There is nothing to look for.", { param });
  if (text.length > MAX_QUERY) {
    throw new AppError("invalid_request", `The query is longer than ${MAX_QUERY} characters.`, { param });
  }
  const spent = { tokens: 0, costUsd: 0 };
  const limit = {
    check: () => undefined,
    spend: (one: { usage: { inputTokens: number; outputTokens: number }; costUsd: number }) => {
      spent.tokens += one.usage.inputTokens + one.usage.outputTokens;
      spent.costUsd += one.costUsd;
    },
  };
  const { topK = DEFAULT_TOP_K, documentIds } = step;
  const asked = { query: text, topK, mode: "hybrid" as const, ...(documentIds ? { documentIds } : {}) };
  const { tenantId, caller } = run;
  const output = await deps.rag.query({ tenantId, keyId: caller.keyId, limit }, asked, context.signal);
  return { output, spent };
}

async function callWebhook({ deps, run, step, planned, scope, context }: Work<WebhookStep>): Promise<StepResult> {
  const { field, path } = planned;
  const output = await deps.webhooks.deliver(run.tenantId, {
    id: `${run._id}:${path}`,
    url: fillText(step.url, scope, `${field}.url`),
    method: step.method,
    signal: context.signal,
    ...(step.body === undefined ? {} : { body: fillWithin(step.body, scope, `${field}.body`) }),
  });
  return { output };
}

function choose({ step, planned, scope }: Work<ConditionStep>): StepResult {
  const param = `${planned.field}.expression`;
  const value = inField(param, () => parseExpression(step.expression).evaluate(scope));
  if (typeof value === "boolean") return { output: { branch: value ? "then" : "else" } };
  throw new AppError("invalid_request", "The expression's value is neither true nor false.", {
    param,
    details: { type: value === null ? "null" : Array.isArray(value) ? "list" : typeof value },
  });
}
