import { makeFailedAttempts } from "../../gateway/money/prices.ts";
import type { BatchItemResult, CallContext, ProviderBatches } from "../../gateway/providers/provider.ts";
import { withRetries } from "../../gateway/resilience/retry.ts";
import { attemptTarget, findKeys, toTarget } from "../../gateway/resilience/target.ts";
import { fromAbort } from "../../gateway/resilience/transport-errors.ts";
import { estimateMessageTokens } from "../../gateway/tokens.ts";
import { Rescheduled } from "../../jobs/reschedule.ts";
import { defined } from "../../lib/defined.ts";
import { AppError } from "../../lib/errors.ts";
import { forEachConcurrent } from "../../lib/for-each-concurrent.ts";
import { newId } from "../../lib/ids.ts";
import { jittered } from "../../lib/jitter.ts";
import type { BatchItemRecord, BatchRecord } from "../../store/batch-store.ts";
import type { RunDeps } from "./collect.ts";
import { dropEnded, requestOf, settleItem } from "./settle.ts";

/**
 * Requests of one batch together, as JSON, but for one that is larger: a worker holds them all, of eight batches at a time.
 * Providers take ten times as much. Pictures are what fills it.
 */
const MAX_CHARACTERS = 16 << 20;
/** The first pause between two looks at a batch, in ms; it grows by half each time. */
const FIRST_POLL_MS = 2_000;
/** Beyond what a batch can hold. */
const ALL_ITEMS = 100_000;
/** A provider takes a day at most; a batch whose provider still fails after this time is given up, in ms. */
const PATIENCE_MS = 26 * 3_600_000;
/** A batch whose results may still be had gets another job after this time, in ms: by then an operator can have mended it. */
const RESTART_AFTER_MS = 3_600_000;
/** Attempts at one item that our own worker runs. */
const ATTEMPTS_AN_ITEM = 3;
/** Items that our own worker runs at once, and results that are written at once. */
const ITEMS_AT_ONCE = 8;

/**
 * Advances a batch as far as possible now: takes items in, submits them, checks whether it has ended, gives each item its
 * answer. Every step is on the record before the next, so another worker can resume at any point. A provider that fails is
 * asked again until its day is over.
 * @throws Rescheduled while the provider works on it, or fails.
 */
export async function runBatch(deps: RunDeps, batchId: string, signal: AbortSignal): Promise<void> {
  const { store, collector } = deps;
  const batch = await store.batch(batchId);
  if (batch === null || batch.state === "ended") return;
  try {
    await advance(deps, batch, signal);
  } catch (error) {
    if (!(error instanceof AppError) || signal.aborted) throw error;
    if (error.retryable && Date.now() - batch.createdAt.getTime() < PATIENCE_MS) throw await reschedule(deps, batch);
    const items = await takeItems(deps, batch);
    await forEachConcurrent(items, ITEMS_AT_ONCE, (item) => settleItem(deps, item, { customId: item._id, error }));
  }
  // In this order: a worker that still holds items of a batch cannot submit them once it has ended.
  await endBatch(deps, batchId);
  if ((await store.giveBack(batchId)) > 0) await collector.add(batch);
}

/**
 * Sees to a batch whose job failed for good after it may have reached its provider. Results that the provider is known to owe
 * are looked for by another job, an hour later, until its day is over. Else items that are still open fail; of more items than
 * a batch takes, the next call ends the rest. May run twice.
 */
export async function restartOrFail(deps: RunDeps, batch: BatchRecord): Promise<void> {
  const { store, config, logger } = deps;
  const { _id: batchId, jobId } = batch;
  if (batch.providerBatchId !== undefined && Date.now() - batch.createdAt.getTime() < PATIENCE_MS) {
    logger.error({ batchId, jobId }, "the job of a submitted batch failed for good: another one follows in an hour");
    // The sweep submits the job then.
    const next = { jobId: newId("job"), closeAt: new Date(Date.now() + RESTART_AFTER_MS) };
    await store.changeBatch(batchId, ["submitted"], { $set: next });
    return;
  }
  logger.error({ batchId, jobId }, "the job of a submitted batch failed for good: its requests fail too");
  const error = new AppError("provider_failed", "The request's batch could not be brought to its end; send it again.", {
    details: { code: "batch_lost" },
  });
  const items = await store.items(batchId, "batched", config.maxItems);
  await forEachConcurrent(items, ITEMS_AT_ONCE, (item) => settleItem(deps, item, { customId: item._id, error }));
  if (items.length < config.maxItems) await endBatch(deps, batchId);
}

const endBatch = ({ store }: RunDeps, batchId: string) =>
  store.changeBatch(batchId, ["closed", "submitted"], {
    $set: { state: "ended", closeAt: new Date() },
    $unset: { isSubmitting: "" },
  });

async function advance(deps: RunDeps, batch: BatchRecord, signal: AbortSignal): Promise<void> {
  const { provider, tenantId, providerKeyId } = batch;
  const { providers, keys } = deps.gateway;
  const batches = providers.get(provider)?.batches;
  if (batches === undefined) throw new TypeError(`there is no provider ${provider} with batches`);
  if (batches === "own-workers") return runHere(deps, await takeItems(deps, batch), signal);
  const key = await keys.byId(tenantId, providerKeyId);
  if (key === undefined) {
    throw new AppError("provider_not_configured", `The key for ${provider} was removed before the batch had ended.`, {
      details: { provider },
    });
  }
  await runThere(deps, { batch, batches, context: { signal, apiKey: key.apiKey } });
}

/** Notes that the batch was looked at; the next look is put off for longer each time. */
async function reschedule({ store, config }: RunDeps, batch: BatchRecord): Promise<Rescheduled> {
  const polled = await store.changeBatch(batch._id, ["closed", "submitted"], { $inc: { polls: 1 } });
  const waitMs = Math.min(FIRST_POLL_MS * 1.5 ** (polled?.polls ?? 1), config.pollMs);
  return new Rescheduled(jittered(waitMs, { share: 0.25 }));
}

/** The items of a batch that is not submitted yet, less those that were cancelled; what it has no room for keeps waiting. */
async function takeItems(deps: RunDeps, batch: BatchRecord): Promise<BatchItemRecord[]> {
  const { store, config, collector } = deps;
  await store.changeBatch(batch._id, ["collecting"], { $set: { state: "closed" } });
  if (batch.submittedAt === undefined) {
    await store.fill(batch, { items: config.maxItems, characters: MAX_CHARACTERS });
    await dropEnded(deps, batch._id);
    if ((await store.countWaiting(batch.group, 1)) > 0) await collector.add(batch);
  }
  return store.items(batch._id, "batched", config.maxItems);
}

/** A batch with the interface of its provider, and what calling that takes. */
type ProviderBatch = { batch: BatchRecord; batches: ProviderBatches; context: CallContext };

async function runThere(deps: RunDeps, run: ProviderBatch): Promise<void> {
  const { store } = deps;
  const { batch, batches, context } = run;
  const id = batch.providerBatchId ?? (await submit(deps, run));
  if (id === undefined) return; // every item was cancelled
  if (!(await batches.hasEnded(id, context))) throw await reschedule(deps, batch);
  // More than were submitted when a worker that had lost its lease put some in late; those have no result and wait again.
  const open = new Map((await store.items(batch._id, "batched", ALL_ITEMS)).map((item) => [item._id, item]));
  await forEachConcurrent(batches.results(id, context), ITEMS_AT_ONCE, async (result) => {
    const item = open.get(result.customId);
    if (item === undefined) return; // settled by an earlier run
    open.delete(result.customId);
    await settleItem(deps, item, result);
  });
  for (const item of open.values()) await settleItem(deps, item, { customId: item._id, isExpired: true });
}

/** Submits the items, once: a batch that a dead worker may have submitted is looked for first. */
async function submit(deps: RunDeps, { batch, batches, context }: ProviderBatch): Promise<string | undefined> {
  const { store, config } = deps;
  const items = await takeItems(deps, batch);
  if (items.length === 0) {
    // Another worker may have found some since then; it submits them when it was first to mark the batch.
    const isOver = batch.submittedAt !== undefined || (await store.endUnsubmitted(batch._id));
    if (!isOver) throw new Rescheduled(jittered(FIRST_POLL_MS));
    return undefined;
  }
  await deps.gateway.ledger.requireTaken();
  const since = batch.submittedAt;
  let id: string | undefined;
  if (since !== undefined) {
    const isKnown = (ids: string[]) => store.known(batch.group, ids);
    id = await batches.find({ batchId: batch._id, size: batch.size, since, isKnown }, context);
    // The previous worker may only be paused with its request in flight; resubmitting now could duplicate the batch.
    const settlesInMs = since.getTime() + config.settleMs - Date.now();
    if (id === undefined && settlesInMs > 0) throw new Rescheduled(Math.min(settlesInMs, config.pollMs));
  } else {
    // One of a group at a time: until its id is on the record, a batch is known by being none of the others.
    const marked = await store.markSubmitting(batch, items.length);
    if (!marked) throw new Rescheduled(jittered(FIRST_POLL_MS));
  }
  const wanted = items.map((item) => ({ customId: item._id, request: requestOf(item), ...defined({ raw: item.raw }) }));
  id ??= await batches.submit(batch._id, wanted, context);
  await store.changeBatch(batch._id, ["closed"], {
    $set: { state: "submitted", providerBatchId: id },
    $unset: { isSubmitting: "" },
  });
  return id;
}

/** Runs the items by our own worker, a call each; every item is settled by itself, so that another worker can resume. */
async function runHere(deps: RunDeps, items: readonly BatchItemRecord[], signal: AbortSignal): Promise<void> {
  const { gateway } = deps;
  await forEachConcurrent(items, ITEMS_AT_ONCE, async (item) => {
    const { _id: customId, tenantId } = item;
    const request = requestOf(item);
    const model = gateway.catalogue.find(item.model);
    if (model === undefined) {
      const error = new AppError("unknown_model", `${item.model} is not served any more.`, { param: "model" });
      return settleItem(deps, item, { customId, error });
    }
    await gateway.ledger.requireTaken();
    const keys = await findKeys(gateway, tenantId, { providers: [model.provider], required: model.provider });
    const target = toTarget(gateway, { keys, tenantId }, model);
    const failed = makeFailedAttempts(model, () => estimateMessageTokens(request.messages, model));
    const attempted = { signal, onAttempt: () => undefined, onCharged: failed.add };
    let result: BatchItemResult;
    try {
      const response = await withRetries(
        () => attemptTarget(target, attempted, (context) => target.provider.complete(request, context)),
        { signal, maxAttempts: ATTEMPTS_AN_ITEM },
      );
      result = { customId, result: response };
    } catch (error) {
      if (signal.aborted) throw fromAbort(signal);
      if (!(error instanceof AppError)) throw error;
      result = { customId, error };
    }
    await settleItem(deps, item, result, failed.sum());
  });
}
