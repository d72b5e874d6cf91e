import { AppError } from "../../../errors.ts";
import { forEachConcurrent } from "../../../for-each-concurrent.ts";
import { Rescheduled } from "../../../jobs/reschedule.ts";
import type { EmbeddingBatchDocument } from "../../../store/embedding-batch-store.ts";
import type { CallContext, EmbeddingBatches, EmbeddingBatchResult } from "../../providers/provider.ts";
import { type Charged, type EmbeddingBatchDeps, settleBatch } from "./settle.ts";

/** Results of a batch that are used at the same time. */
const RESULTS_AT_ONCE = 4;

/**
 * Ends a batch if its provider has, and calls `use` for each of its results before; one that was given up is cancelled first.
 * False while the provider works on it. @throws AppError as the provider's calls do, and what `use` throws.
 */
export async function lookAt(
  deps: EmbeddingBatchDeps,
  batch: EmbeddingBatchDocument,
  { signal, use }: { signal: AbortSignal; use(result: EmbeddingBatchResult): Promise<void> },
): Promise<boolean> {
  const { batches, context } = await reach(deps, batch, signal);
  const id = batch.providerBatchId ?? (await findSubmitted(deps, batch, { batches, context }));
  if (id === undefined) {
    const error = new AppError("provider_failed", "The batch did not reach its provider.");
    await settleBatch(deps, batch, { inputTokens: 0, isCounted: false, error });
    return true;
  }
  let state = await batches.stateOf(id, context);
  if (state === "working" && batch.state === "abandoned") {
    await batches.cancel(id, context);
    state = await batches.stateOf(id, context);
  }
  if (state === "working") return false;
  if (state === "failed") {
    const error = new AppError("provider_failed", "The provider rejected the batch.");
    await settleBatch(deps, batch, { inputTokens: 0, isCounted: false, error });
    return true;
  }
  const charged: Charged = { inputTokens: 0, isCounted: true };
  await forEachConcurrent(batches.results(id, context), RESULTS_AT_ONCE, async (result) => {
    signal.throwIfAborted();
    if ("result" in result) {
      charged.inputTokens += result.result.usage?.inputTokens ?? 0;
      charged.isCounted &&= result.result.usage !== undefined;
    }
    await use(result);
  });
  if (!charged.isCounted) charged.inputTokens = batch.inputTokens;
  await settleBatch(deps, batch, charged);
  return true;
}

type Reached = { batches: EmbeddingBatches; context: CallContext };

/** The interface of a batch's provider, with the key that it was submitted with. @throws AppError `provider_not_configured`. */
async function reach(
  { gateway }: EmbeddingBatchDeps,
  { tenantId, provider, providerKeyId }: EmbeddingBatchDocument,
  signal: AbortSignal,
): Promise<Reached> {
  const batches = gateway.providers.get(provider)?.embeddingBatches;
  if (batches === undefined) throw new TypeError(`${provider} has no batches of embeddings`);
  const key = await gateway.keys.byId(tenantId, providerKeyId);
  if (key !== undefined) return { batches, context: { signal, apiKey: key.apiKey } };
  const message = `The key for ${provider} was removed before the batch had ended.`;
  throw new AppError("provider_not_configured", message, { details: { provider } });
}

/**
 * The provider's id of a batch whose submission was cut; undefined when it never arrived.
 * @throws Rescheduled while it may still arrive.
 */
async function findSubmitted(
  { store, config }: EmbeddingBatchDeps,
  batch: EmbeddingBatchDocument,
  { batches, context }: Reached,
): Promise<string | undefined> {
  const providerBatchId = await batches.find(batch._id, context);
  if (providerBatchId !== undefined) await store.change(batch, { providerBatchId });
  // The process that submits it may only be paused, with its request in flight.
  const arrivesInMs = batch.createdAt.getTime() + config.settleMs - Date.now();
  if (providerBatchId === undefined && arrivesInMs > 0) throw new Rescheduled(Math.min(arrivesInMs, config.pollMs));
  return providerBatchId;
}
