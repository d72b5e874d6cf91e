import { AppError, type ErrorView, toErrorView } from "../../errors.ts";
import type { BatchLineDocument } from "../../store/batch-store.ts";
import type { CompletionDocument } from "../../store/completion-store.ts";
import { toNanoUsd, toUsd } from "../catalogue.ts";
import { toChatResponse } from "../chat-response.ts";
import { estimateUsage } from "../count-tokens.ts";
import type { BatchLineResult, CompletionResult, Usage } from "../providers/provider.ts";
import { BATCH_PRICE, type BatchDeps } from "./deps.ts";
import type { RunDeps } from "./run.ts";

/** A line that batches let expire goes into another one so often. */
const MAX_EXPIRIES = 1;
/** Lines that are looked at together. */
const PAGE = 10_000;

/**
 * Gives a line its end: the ledger's record first, then the job's, then the line's own, each of which can be written again
 * without a second effect. A line that expired goes back to wait, once.
 */
export async function settleLine(deps: RunDeps, line: BatchLineDocument, outcome: BatchLineResult): Promise<void> {
  if ("isExpired" in outcome) {
    if (line.expiries < MAX_EXPIRIES) return waitAgain(deps, line);
    const error = new AppError("provider_failed", "The provider's batches let the request expire twice.", {
      details: { code: "batch_expired" },
    });
    return settleLine(deps, line, { customId: line._id, error });
  }
  const { store, jobs, gateway } = deps;
  const answered = "result" in outcome ? toAnswer(deps, line, outcome.result) : undefined;
  const error = "error" in outcome ? toErrorView(outcome.error) : undefined;
  const record = toRecord(line, answered, error);
  await gateway.ledger.write(line.logId, [record]);
  if (answered) await jobs.held.end(line._id, { result: answered.body });
  else if (error) await jobs.held.end(line._id, { error });
  const isFirst = await store.moveLine(line._id, ["batched"], { state: "done" });
  if (isFirst && line.reserved) {
    await gateway.budgets.settleLater(line.tenantId, line.reserved, record.costNanoUsd);
  }
}

async function waitAgain({ store, collector }: RunDeps, line: BatchLineDocument): Promise<void> {
  const change = { state: "waiting" as const, batchId: "", expiries: line.expiries + 1 };
  if (await store.moveLine(line._id, ["batched"], change)) await collector.add(line);
}

/**
 * Takes lines out of a batch whose jobs do not wait any more: their callers have cancelled them, or a worker that died had
 * ended them already, which the ledger tells.
 */
export async function dropEnded(deps: BatchDeps, batchId: string): Promise<void> {
  const { store, completions, jobs, gateway, config } = deps;
  const lines = await store.lines(batchId, "batched", Math.min(config.maxLines, PAGE));
  const waiting = await jobs.held.stillWaiting(lines.map(({ _id }) => _id));
  for (const line of lines) {
    if (waiting.has(line._id)) continue;
    const record = await completions.get(line.tenantId, line.logId);
    const isFirst = await store.moveLine(line._id, ["batched"], { state: record ? "done" : "cancelled" });
    if (!isFirst || !line.reserved) continue;
    await gateway.budgets.settleLater(line.tenantId, line.reserved, record?.costNanoUsd ?? 0);
  }
}

type Answer = { usage: Usage; costNanoUsd: number; result: CompletionResult; body: unknown; isCounted: boolean };

/** What a line's answer comes to, at half the price, in the shape of a chat that was answered at once. */
function toAnswer({ gateway }: RunDeps, line: BatchLineDocument, result: CompletionResult): Answer {
  const { text, toolCalls, finishReason, reasoning } = result;
  const usage = result.usage ?? estimateUsage(line.request.messages, text, toolCalls);
  const model = gateway.catalogue.find(line.model);
  const costNanoUsd = model === undefined ? 0 : Math.round(toNanoUsd(model, usage) * BATCH_PRICE);
  const body = toChatResponse({
    logId: line.logId,
    text,
    ...(reasoning === undefined ? {} : { reasoning }),
    toolCalls,
    finishReason,
    model: line.model,
    provider: line.provider,
    usage,
    cached: false,
    costUsd: toUsd(costNanoUsd),
    routing: { requested: line.requestedModel, model: line.model, provider: line.provider, reason: line.reason },
    timingsMs: { total: 0, provider: 0 },
  });
  return { usage, costNanoUsd, result, body, isCounted: result.usage !== undefined };
}

function toRecord(
  line: BatchLineDocument,
  answer: Answer | undefined,
  error: ErrorView | undefined,
): CompletionDocument {
  return {
    _id: line.logId,
    tenantId: line.tenantId,
    keyId: line.keyId,
    surface: line.surface,
    kind: "chat",
    requestedModel: line.requestedModel,
    model: line.model,
    provider: line.provider,
    isStreamed: false,
    isBatched: true,
    outcome: answer === undefined ? "failed" : "completed",
    ...(answer === undefined ? {} : { finishReason: answer.result.finishReason }),
    ...(error === undefined ? {} : { error }),
    inputTokens: answer?.usage.inputTokens ?? 0,
    outputTokens: answer?.usage.outputTokens ?? 0,
    usageSource: answer?.isCounted === true ? "provider" : "estimate",
    costNanoUsd: answer?.costNanoUsd ?? 0,
    isCached: false,
    attempts: 1,
    durationMs: Date.now() - line.createdAt.getTime(),
    createdAt: new Date(),
  };
}
