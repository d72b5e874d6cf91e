import type { Config } from "../../../config.ts";
import { defined } from "../../../defined.ts";
import { toErrorView } from "../../../errors.ts";
import type { Logger } from "../../../logger.ts";
import type { CompletionDocument } from "../../../store/completion-store.ts";
import type { EmbeddingBatchDocument } from "../../../store/embedding-batch-store.ts";
import type { Store } from "../../../store/store.ts";
import type { GatewayDeps } from "../../deps.ts";
import { toNanoUsd } from "../../money/prices.ts";
import { BATCH_PRICE } from "../provider/settle.ts";

/** What batches of embeddings work with. */
export type EmbeddingBatchDeps = {
  gateway: GatewayDeps;
  store: Store["embeddingBatches"];
  config: Config["gateway"]["batch"];
  logger: Logger;
};

/** What a batch is charged for; `error`: why it has no results. */
export type Charged = { inputTokens: number; isCounted: boolean; error?: unknown };

/** Ends a batch: the ledger's record first, then its own. Both can be written again without a second effect. */
export async function settleBatch(
  { gateway, store }: Pick<EmbeddingBatchDeps, "gateway" | "store">,
  batch: EmbeddingBatchDocument,
  { inputTokens, isCounted, error }: Charged,
): Promise<void> {
  const model = gateway.catalogue.find(batch.model);
  const nanoUsd = model === undefined ? 0 : toNanoUsd(model, { inputTokens, outputTokens: 0 });
  const { logId, tenantId, keyId, surface, requestedModel, provider, createdAt, reserved } = batch;
  const record: CompletionDocument = {
    _id: logId,
    ...{ tenantId, keyId, surface, requestedModel, model: batch.model, provider },
    kind: "embedding",
    isStreamed: false,
    isBatched: true,
    outcome: error === undefined ? "completed" : "failed",
    ...defined({ error: error === undefined ? undefined : toErrorView(error) }),
    inputTokens,
    outputTokens: 0,
    usageSource: isCounted ? "provider" : "estimate",
    costNanoUsd: Math.round(nanoUsd * BATCH_PRICE),
    isCached: false,
    attempts: 1,
    durationMs: Date.now() - createdAt.getTime(),
    createdAt: new Date(),
  };
  await gateway.ledger.write(record);
  const hasFailed = error === undefined ? {} : { hasFailed: true as const };
  const isFirst = await store.change(batch, { state: "ended", ...hasFailed });
  if (isFirst && reserved) await gateway.budgets.settleLater(tenantId, reserved, record.costNanoUsd);
}
