import type { Config } from "../../../config.ts";
import type { Jobs } from "../../../jobs/jobs.ts";
import type { Logger } from "../../../logger.ts";
import type { BatchItemDocument, BatchStore } from "../../../store/batch-store.ts";
import type { CompletionStore } from "../../../store/completion-store.ts";
import type { GatewayDeps } from "../../deps.ts";
import type { CompletionRequest } from "../../providers/provider.ts";

/** What a batched chat costs, in parts of the price. */
export const BATCH_PRICE = 0.5;

/** What the stages of a batch work with. */
export type BatchDeps = {
  gateway: GatewayDeps;
  store: BatchStore;
  completions: Pick<CompletionStore, "get">;
  jobs: Jobs;
  config: Config["gateway"]["batch"];
  logger: Logger;
};

/** What an item asks for. */
export const requestOf = (item: BatchItemDocument) => item.request as CompletionRequest; // as `accept` recorded it
