import { defined } from "../../../defined.ts";
import { AppError, type ErrorView, toErrorView } from "../../../errors.ts";
import type { BatchLineDocument } from "../../../store/batch-store.ts";
import type { CompletionDocument } from "../../../store/completion-store.ts";
import { toChatResponse } from "../../chat/response.ts";
import { estimateUsage } from "../../count-tokens.ts";
import { addUsage, type FailedAttempts } from "../../money/failed-attempts.ts";
import { toNanoUsd, toUsd } from "../../money/prices.ts";
import type { BatchItemResult, CompletionResult, Usage } from "../../providers/provider.ts";
import type { RunDeps } from "./collect.ts";
import { BATCH_PRICE, type BatchDeps, requestOf } from "./deps.ts";

type Lost = ReturnType<FailedAttempts["sum"]>;
const nothing: Usage = { inputTokens: 0, outputTokens: 0 };

/** A line that batches let expire goes into another one so often. */
const MAX_EXPIRIES = 1;
/** Lines that are looked at together. */
const PAGE = 10_000;

/**
 * Gives a line its end: the ledger's record first, then the job's, then the line's own, each of which can be written again
 * without a second effect. A line that expired goes back to wait, once.
 */
export async function settleLine(
  deps: RunDeps,
  line: BatchLineDocument,
  outcome: BatchItemResult,
  lost?: Lost,
): Promise<void> {
  if ("isExpired" in outcome) {
    if (line.expiries < MAX_EXPIRIES) return waitAgain(deps, line);
    const error = new AppError("provider_failed", "The provider's batches let the request expire twice.", {
      details: { code: "batch_expired" },
    });
    return settleLine(deps, line, { customId: line._id, error });
  }
  const { store, jobs, gateway } = deps;
  const result = "result" in outcome ? outcome.result : undefined;
  const error = "error" in outcome ? toErrorView(outcome.error) : undefined;
  const spent = toSpent(deps, line, result, lost);
  const record = toRecord(line, { result, error, spent });
  await gateway.ledger.write(record);
  if (result) await jobs.held.end(line._id, { result: toBody(line, result, spent) });
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

type Spent = { usage: Usage; costNanoUsd: number; isCounted: boolean };

/** What a line's answer, and the billed failed attempts before it, come to at half the price. */
function toSpent(
  { gateway }: RunDeps,
  line: BatchLineDocument,
  result: CompletionResult | undefined,
  lost?: Lost,
): Spent {
  const counted = result?.usage;
  const usage = counted ?? (result ? estimateUsage(requestOf(line).messages, result.text, result.toolCalls) : nothing);
  const model = gateway.catalogue.find(line.model);
  const nanoUsd = (model === undefined ? 0 : toNanoUsd(model, usage)) + (lost?.nanoUsd ?? 0);
  return {
    usage: lost ? addUsage(usage, lost.usage) : usage,
    costNanoUsd: Math.round(nanoUsd * BATCH_PRICE),
    isCounted: counted !== undefined && lost === undefined,
  };
}

/** An answer in the shape of a chat that was answered at once. */
function toBody(line: BatchLineDocument, result: CompletionResult, { usage, costNanoUsd }: Spent) {
  const { model, provider, reason, requestedModel: requested } = line;
  const waitedMs = Date.now() - line.createdAt.getTime();
  const outcome = {
    ...result,
    logId: line.logId,
    model,
    provider,
    usage,
    cached: false,
    costUsd: toUsd(costNanoUsd),
    routing: { requested, model, provider, reason },
    timingsMs: { total: waitedMs, provider: waitedMs },
  };
  return toChatResponse({ ...outcome, ...line.debug }, line.debug !== undefined);
}

function toRecord(
  line: BatchLineDocument,
  { result, error, spent }: { result: CompletionResult | undefined; error: ErrorView | undefined; spent: Spent },
): CompletionDocument {
  return defined({
    _id: line.logId,
    tenantId: line.tenantId,
    keyId: line.keyId,
    surface: line.surface,
    kind: "chat" as const,
    requestedModel: line.requestedModel,
    model: line.model,
    provider: line.provider,
    isStreamed: false,
    isBatched: true as const,
    outcome: result === undefined ? ("failed" as const) : ("completed" as const),
    finishReason: result?.finishReason,
    error,
    inputTokens: spent.usage.inputTokens,
    outputTokens: spent.usage.outputTokens,
    usageSource: spent.isCounted ? ("provider" as const) : ("estimate" as const),
    costNanoUsd: spent.costNanoUsd,
    isCached: false,
    attempts: 1,
    durationMs: Date.now() - line.createdAt.getTime(),
    createdAt: new Date(),
  });
}
