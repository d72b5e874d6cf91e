import { defined } from "../../../defined.ts";
import { AppError } from "../../../errors.ts";
import { newId } from "../../../ids.ts";
import { jittered } from "../../../jitter.ts";
import { Rescheduled } from "../../../jobs/reschedule.ts";
import type { EmbeddingBatchDocument } from "../../../store/embedding-batch-store.ts";
import { sweepEach } from "../../../sweep-each.ts";
import { requireModel } from "../../catalogue.ts";
import { estimateTokens } from "../../count-tokens.ts";
import { findModel } from "../../find-model.ts";
import type { GatewayCaller } from "../../money/account.ts";
import { boundEmbedding } from "../../money/prices.ts";
import type { EmbeddingBatchResult } from "../../providers/provider.ts";
import { findKeys, toTarget } from "../../resilience/target.ts";
import { BATCH_PRICE } from "../provider/settle.ts";
import { lookAt } from "./look-at.ts";
import { type EmbeddingBatchDeps, settleBatch } from "./settle.ts";

/** The record of a batch is kept for this long, in ms: a provider takes a day. */
const KEEP_MS = 30 * 86_400_000;
/** A provider takes a day at most; one that takes longer is given up, in ms. */
const PATIENCE_MS = 26 * 3_600_000;
/** The first pause between two looks at a batch, in ms; it grows by half each time. */
const FIRST_POLL_MS = 2_000;
/** Batches that one sweep looks at, and the longest time for one of them, in ms. */
const SWEPT = 20;
const SWEEP_TIMEOUT_MS = 60_000;

/** Texts for a batch: each call with the id that its vectors come back under. `mark` is the owner's own. */
type EmbeddingBatchInput = Pick<EmbeddingBatchDocument, "owner" | "number" | "mark"> & {
  model: string;
  requests: readonly { customId: string; input: string[] }[];
};

type UseResult = (result: EmbeddingBatchResult) => Promise<void>;

/** Embeddings that a provider makes within a day, at half the price, for durable work that waits for them. */
export function makeEmbeddingBatches(deps: EmbeddingBatchDeps) {
  const { store } = deps;
  return {
    /** Whether the provider of a tenant's model makes embeddings in batches. @throws AppError as `embed` does. */
    isOffered: async (tenantId: string, model: string) =>
      (await findTarget(deps, tenantId, model)).batches !== undefined,
    /** The owner's last batch, which says where to continue; null before the first. */
    last: store.last,
    /** The owner's open batches, at most `limit`. */
    open: store.open,
    /** How long an owner waits before it looks at its batches again, in ms. */
    pauseFor: (batches: readonly EmbeddingBatchDocument[]) =>
      Math.min(...batches.map(({ polls }) => pauseAfter(deps, polls))),
    /** See `submitBatch`. @throws AppError `budget_exhausted`, Rescheduled. */
    submit: (caller: GatewayCaller, input: EmbeddingBatchInput) => submitBatch(deps, caller, input),
    /** See `advanceBatch`. */
    advance: (batch: EmbeddingBatchDocument, signal: AbortSignal, use: UseResult) =>
      advanceBatch(deps, batch, { signal, use }),
    /** Gives up the open batches of an owner: the sweep cancels them, and charges what was embedded by then. */
    abandon: store.abandon,
    /** Run it on a schedule; any number of processes may. */
    sweep: () => sweepAbandoned(deps),
  };
}

/** How long to wait before a batch is looked at again, in ms. */
function pauseAfter({ config }: EmbeddingBatchDeps, polls: number): number {
  return jittered(Math.min(FIRST_POLL_MS * 1.5 ** polls, config.pollMs), { share: 0.25 });
}

const isOverdue = ({ createdAt }: EmbeddingBatchDocument) => Date.now() > createdAt.getTime() + PATIENCE_MS;

async function findTarget({ gateway }: EmbeddingBatchDeps, tenantId: string, name: string) {
  const model = requireModel(await findModel(gateway, tenantId, name), name, "embedding");
  const keys = await findKeys(gateway, tenantId, { providers: [model.provider], required: model.provider });
  const target = toTarget(gateway, { keys, tenantId }, model);
  return { ...target, batches: model.batch === true ? target.provider.embeddingBatches : undefined };
}

/**
 * Submits a batch, once for each number of its owner. One that the provider refuses has failed, which its record says.
 * @throws AppError `budget_exhausted` without room for all that it may cost; Rescheduled when another process has this number,
 * or it is not known whether the provider has it.
 */
async function submitBatch(
  deps: EmbeddingBatchDeps,
  { tenantId, keyId, surface, signal }: GatewayCaller,
  { model: requestedModel, requests, ...place }: EmbeddingBatchInput,
): Promise<void> {
  const { gateway, store } = deps;
  const { model, key, batches } = await findTarget(deps, tenantId, requestedModel);
  if (batches === undefined) throw new TypeError(`${model.provider} has no batches of embeddings`);
  const texts = requests.flatMap(({ input }) => input);
  await gateway.ledger.requireTaken();
  const nanoUsd = Math.ceil(boundEmbedding(model, texts).mostNanoUsd * BATCH_PRICE);
  const claim = { mostNanoUsd: nanoUsd, leastNanoUsd: nanoUsd };
  const reserved = await gateway.budgets.reserveForLater(tenantId, () => claim);
  const now = new Date();
  const batch: EmbeddingBatchDocument = {
    _id: newId("batch"),
    ...{ tenantId, keyId, surface, requestedModel, ...place },
    ...{ model: model.id, provider: model.provider, providerKeyId: key.keyId },
    state: "open",
    inputTokens: texts.reduce((sum, text) => sum + estimateTokens(text), 0),
    polls: 0,
    logId: newId("log"),
    ...defined({ reserved }),
    ...{ createdAt: now, updatedAt: now, expireAt: new Date(now.getTime() + KEEP_MS) },
  };
  if (!(await store.insert(batch))) {
    if (reserved) await gateway.budgets.settleLater(tenantId, reserved, 0);
    throw new Rescheduled(pauseAfter(deps, 0));
  }
  const wireId = model.wireId ?? model.id;
  const items = requests.map(({ customId, input }) => ({ customId, request: { model: wireId, input } }));
  try {
    const providerBatchId = await batches.submit(batch._id, items, { signal, apiKey: key.apiKey });
    await store.change(batch, { providerBatchId });
  } catch (error) {
    if (signal.aborted || !(error instanceof AppError)) throw error;
    if (error.retryable) throw new Rescheduled(pauseAfter(deps, 0)); // it is looked for at the provider
    await settleBatch(deps, batch, { inputTokens: 0, isCounted: false, error });
  }
}

/**
 * Looks at an open batch; `use` is called for each of its results once it has ended, again after a crash. True when it is over:
 * what has no result by then gets none.
 */
async function advanceBatch(
  deps: EmbeddingBatchDeps,
  batch: EmbeddingBatchDocument,
  { signal, use }: { signal: AbortSignal; use: UseResult },
): Promise<boolean> {
  try {
    if (await lookAt(deps, batch, { signal, use })) return true;
  } catch (error) {
    if (signal.aborted || !(error instanceof AppError) || error.code === "unavailable") throw error;
    if (!error.retryable) {
      await settleBatch(deps, batch, { inputTokens: batch.inputTokens, isCounted: false, error });
      return true;
    }
    deps.logger.warn({ err: error, batchId: batch._id }, "a batch of embeddings could not be looked at");
  }
  if (isOverdue(batch)) await deps.store.change(batch, { state: "abandoned", hasFailed: true });
  else await deps.store.change(batch, { polls: batch.polls + 1 });
  return isOverdue(batch);
}

/** Cancels the batches that were given up, and charges them. */
async function sweepAbandoned(deps: EmbeddingBatchDeps): Promise<void> {
  const before = new Date(Date.now() - deps.config.pollMs);
  await sweepEach(await deps.store.abandoned(before, SWEPT), async (batch) => {
    await deps.store.change(batch, {}); // the next sweep takes others first
    try {
      await lookAt(deps, batch, { signal: AbortSignal.timeout(SWEEP_TIMEOUT_MS), use: async () => undefined });
    } catch (error) {
      if (error instanceof Rescheduled) return;
      const isLost = error instanceof AppError && !error.retryable;
      if (!isLost && !isOverdue(batch)) throw error;
      await settleBatch(deps, batch, { inputTokens: batch.inputTokens, isCounted: false, error });
    }
  });
}
