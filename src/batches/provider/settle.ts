import { toContent } from "../../gateway/chat/attempt.ts";
import { guardAnswer } from "../../gateway/chat/guard-chat.ts";
import { withoutFence } from "../../gateway/chat/json-fence.ts";
import { toChatResponse } from "../../gateway/chat/response.ts";
import { findMismatch, MISMATCH } from "../../gateway/chat/response-format.ts";
import { markReasoning } from "../../gateway/messages.ts";
import { countUsage, toOutcome } from "../../gateway/money/account.ts";
import { addUsage, type BilledAttempts, toNanoUsd, toUsd } from "../../gateway/money/prices.ts";
import { endUserOf } from "../../gateway/money/usage-increments.ts";
import type { BatchItemResult, CompletionRequest, CompletionResult, Usage } from "../../gateway/providers/provider.ts";
import { estimateUsage } from "../../gateway/tokens.ts";
import { defined } from "../../lib/defined.ts";
import { AppError, type ErrorView, toErrorView, withoutText } from "../../lib/errors.ts";
import type { BatchItemRecord } from "../../store/batch-store.ts";
import type { CompletionRecord } from "../../store/completion-store.ts";
import { toMessage } from "../../surfaces/messages/to-message.ts";
import { guardFor, type PolicyGuard } from "../../tenancy/guard-policies.ts";
import { toResponseLine } from "../file/response-lines.ts";
import type { BatchDeps, RunDeps } from "./collect.ts";

/** What a batched chat costs, in parts of the price. */
export const BATCH_PRICE = 0.5;
/** An item that batches let expire goes into another one this often. */
const MAX_EXPIRIES = 1;
/** Items that are looked at together. */
const PAGE = 10_000;

/** What an item asks for. */
export const requestOf = (item: BatchItemRecord) => item.request as CompletionRequest; // as `accept` recorded it

const messagesOf = (item: BatchItemRecord) =>
  item.raw ? [{ role: "user" as const, content: item.raw.body }] : requestOf(item).messages;

/** The error of an answer that does not match the schema of its item. @throws what keeps that from being found out. */
async function findItemMismatch({ gateway }: RunDeps, item: BatchItemRecord, result: CompletionResult) {
  const { responseFormat } = requestOf(item);
  if (responseFormat === undefined) return undefined;
  const mismatch = await findMismatch(gateway.schemaChecks, item, responseFormat, result);
  if (mismatch === undefined || (mismatch instanceof AppError && mismatch.code === MISMATCH)) return mismatch;
  throw mismatch;
}

const unfenced = (item: BatchItemRecord, result: CompletionResult): CompletionResult =>
  requestOf(item).responseFormat === undefined ? result : { ...result, text: withoutFence(result.text) };

/** Guards the answer of an item, as the rules of its tenant are now; `blocked` is the error of one that is withheld. */
async function guardItem(
  { gateway }: RunDeps,
  item: BatchItemRecord,
  outcome: BatchItemResult,
): Promise<{ guard?: PolicyGuard; blocked?: AppError }> {
  if (!("result" in outcome)) return {};
  const guard = await guardFor(gateway, item);
  if (guard === undefined) return {};
  try {
    outcome.result = await guardAnswer(guard, outcome.result);
    return { guard };
  } catch (error) {
    if (error instanceof AppError && error.code === "compliance_blocked") return { guard, blocked: error };
    throw error;
  }
}

/**
 * Gives an item its end: the ledger's record first, then the job's, then the item's own, each of which can be written again
 * without a second effect. An item that expired goes back to wait, once. `failed`: its billed failed attempts.
 */
export async function settleItem(
  deps: RunDeps,
  item: BatchItemRecord,
  outcome: BatchItemResult,
  failed?: BilledAttempts,
): Promise<void> {
  const { store, jobs, gateway, collector } = deps;
  if ("isExpired" in outcome) {
    if (item.expiries < MAX_EXPIRIES) {
      const change = { state: "waiting" as const, batchId: "", expiries: item.expiries + 1 };
      if (await store.moveItem(item._id, ["batched"], change)) await collector.add(item);
      return;
    }
    const error = new AppError("provider_failed", "The provider's batches let the request expire twice.", {
      details: { code: "batch_expired" },
    });
    return settleItem(deps, item, { customId: item._id, error });
  }
  const { guard, blocked } = await guardItem(deps, item, outcome);
  if ("result" in outcome) outcome.result = unfenced(item, outcome.result);
  const result = "result" in outcome ? outcome.result : undefined;
  const failure =
    blocked ?? ("error" in outcome ? outcome.error : result && (await findItemMismatch(deps, item, result)));
  const error = failure && toErrorView(failure);
  const spent = toSpent(deps, item, failed, result);
  const found = guard?.found() ?? [];
  const areTextsKept =
    result !== undefined && blocked === undefined && (await gateway.callTexts.areKept(item.tenantId));
  const content = areTextsKept ? toContent(messagesOf(item), result.text, { guard, isGuarded: false }) : undefined;
  const told = found.length > 0 ? { guard: found } : {};
  const record = { ...toRecord(item, spent, result, error), ...told, ...defined({ content }) };
  await gateway.ledger.write(record);
  if (error) await jobs.held.end(item._id, { error, ...told });
  else if ("result" in outcome) await jobs.held.end(item._id, { result: toBody(item, outcome, spent), ...told });
  const isFirst = await store.moveItem(item._id, ["batched"], { state: "done" });
  if (isFirst && item.reserved) {
    await gateway.budgets.settleLater(item.tenantId, item.reserved, record.costNanoUsd);
  }
}

/**
 * Takes items out of a batch whose jobs do not wait any more: their callers have cancelled them, or a worker that died had
 * ended them already, which the ledger shows.
 */
export async function dropEnded(deps: BatchDeps, batchId: string): Promise<void> {
  const { store, completions, jobs, gateway, config } = deps;
  const items = await store.items(batchId, "batched", Math.min(config.maxItems, PAGE));
  const waiting = await jobs.held.stillWaiting(items.map(({ _id }) => _id));
  for (const item of items) {
    if (waiting.has(item._id)) continue;
    const record = await completions.get(item.tenantId, item.logId);
    const isFirst = await store.moveItem(item._id, ["batched"], { state: record ? "done" : "cancelled" });
    if (!isFirst || !item.reserved) continue;
    await gateway.budgets.settleLater(item.tenantId, item.reserved, record?.costNanoUsd ?? 0);
  }
}

type Answer = Extract<BatchItemResult, { result: unknown }>;
type Spent = { usage: Usage; costNanoUsd: number; isCounted: boolean };

/** What an item's answer, and the billed failed attempts before it, come to at half the price. */
function toSpent(
  { gateway }: RunDeps,
  item: BatchItemRecord,
  failed: BilledAttempts,
  result?: CompletionResult,
): Spent {
  const model = gateway.catalogue.find(item.model);
  const asked = { messages: messagesOf(item), model };
  const estimate = () => estimateUsage(asked, result?.text ?? "", result?.toolCalls ?? []);
  const counted = result && countUsage({ usage: result.usage, estimate });
  const { isFlex: _, ...usage } = counted?.usage ?? { inputTokens: 0, outputTokens: 0 }; // a batch has its own price
  const nanoUsd = (model === undefined ? 0 : toNanoUsd(model, usage)) + (failed?.nanoUsd ?? 0);
  return {
    usage: failed ? addUsage(usage, failed.usage) : usage,
    costNanoUsd: Math.round(nanoUsd * BATCH_PRICE),
    isCounted: counted?.isReported === true && failed === undefined,
  };
}

/** An answer in the shape of a chat that was answered at once; to a request in the provider's wire format as it came. */
function toBody(item: BatchItemRecord, { result, raw }: Answer, { usage, costNanoUsd }: Spent) {
  if (item.raw !== undefined) return raw;
  const { model, provider, reason, requestedModel: requested } = item;
  const { parts, ...answer } = result;
  const waitedMs = Date.now() - item.createdAt.getTime();
  const outcome = {
    ...answer,
    ...defined({ parts: parts && markReasoning(parts, provider) }),
    logId: item.logId,
    model,
    provider,
    usage,
    cached: false,
    costUsd: toUsd(costNanoUsd),
    routing: { requested, model, provider, reason },
    timingsMs: { total: waitedMs, provider: waitedMs },
  };
  if (item.response !== undefined) return toResponseLine(item.response, outcome);
  if (item.message === undefined) return toChatResponse({ ...outcome, ...item.debug }, item.debug !== undefined);
  const { ignored } = item.message;
  return { ...toMessage(outcome), ...(ignored.length > 0 && { _ignored: ignored }) };
}

function toRecord(item: BatchItemRecord, spent: Spent, result?: CompletionResult, error?: ErrorView) {
  const record: CompletionRecord = defined({
    _id: item.logId,
    tenantId: item.tenantId,
    keyId: item.keyId,
    surface: item.surface,
    requestId: item.requestId,
    ...item.origin,
    jobId: item._id,
    endUser: endUserOf(item.request),
    kind: "chat" as const,
    requestedModel: item.requestedModel,
    model: item.model,
    provider: item.provider,
    isStreamed: false,
    isBatched: true as const,
    outcome: toOutcome(error),
    finishReason: result?.finishReason,
    error: error && withoutText(error),
    inputTokens: spent.usage.inputTokens,
    outputTokens: spent.usage.outputTokens,
    usageSource: spent.isCounted ? ("provider" as const) : ("estimate" as const),
    costNanoUsd: spent.costNanoUsd,
    isCached: false,
    attempts: 1,
    durationMs: Date.now() - item.createdAt.getTime(),
    createdAt: new Date(),
  });
  return record;
}
