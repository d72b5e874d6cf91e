import { AppError } from "../errors.ts";
import type { WorkContext } from "../jobs/work.ts";
import type { WorkflowRunRecord } from "../store/workflow-run-store.ts";
import { inSpan } from "../tracing.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { fillStep } from "./fill-step.ts";
import type { PlannedStep } from "./plan.ts";
import type { ScopeTexts } from "./scope-texts.ts";
import type { AiCompletionStep, ConditionStep, RagQueryStep, Step, WebhookStep } from "./step-schemas.ts";

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
  scope: ScopeTexts;
  context: Pick<WorkContext, "signal">;
};

/**
 * Does the work of one step, once. It may be done again after a crash: a webhook's message has the same id then.
 * @throws AppError `invalid_request` for an expression without a value; what the evaluator, the gateway, retrieval and webhooks throw; each
 * tells whether another try can help. The signal's reason.
 */
export function runStep(work: Work<WorkingStep>): Promise<StepResult> {
  const { step, planned, run } = work;
  const attributes = { "switchyard.run.id": run._id, "switchyard.step.path": planned.path };
  return inSpan({ name: `step ${step.type}`, kind: "INTERNAL", attributes }, async () => doStep(work));
}

function doStep(work: Work<WorkingStep>): Promise<StepResult> {
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

async function complete(work: Work<AiCompletionStep>): Promise<StepResult> {
  const { deps, run, step, context } = work;
  const { model, temperature, maxTokens } = step;
  const { prompt, systemPrompt } = await fillStep(work);
  const caller = { tenantId: run.tenantId, keyId: run.caller.keyId, surface: SURFACE, signal: context.signal };
  const { text, usage, costUsd } = await deps.gateway.complete(caller, {
    model,
    messages: [{ role: "user", content: String(prompt) }],
    ...(systemPrompt === undefined ? {} : { systemPrompt: String(systemPrompt) }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
  });
  return { output: text.toWellFormed(), spent: { tokens: usage.inputTokens + usage.outputTokens, costUsd } };
}

async function query(work: Work<RagQueryStep>): Promise<StepResult> {
  const { deps, run, step, planned, context } = work;
  const param = `${planned.field}.query`;
  const text = String((await fillStep(work)).query).trim();
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

async function callWebhook(work: Work<WebhookStep>): Promise<StepResult> {
  const { deps, run, step, planned, context } = work;
  const { url, body } = await fillStep(work);
  const output = await deps.webhooks.deliver(run.tenantId, {
    id: `${run._id}:${planned.path}`,
    url: String(url),
    method: step.method,
    signal: context.signal,
    ...(body === undefined ? {} : { body }),
  });
  return { output };
}

async function choose(work: Work<ConditionStep>): Promise<StepResult> {
  const { expression: value } = await fillStep(work);
  if (typeof value === "boolean") return { output: { branch: value ? "then" : "else" } };
  throw new AppError("invalid_request", "The expression's value is neither true nor false.", {
    param: `${work.planned.field}.expression`,
    details: { type: value === null ? "null" : Array.isArray(value) ? "list" : typeof value },
  });
}
