import type { Config } from "../config/config.ts";
import { findForwarding } from "../gateway/chat/forward.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { Logger } from "../observe/logger.ts";
import type { Store } from "../store/store.ts";
import { makeFileBatches } from "./file/file-batches.ts";
import { makeBatches } from "./provider/batches.ts";

export type Batches = ReturnType<typeof openBatches>;

type BatchesInput = {
  gateway: Gateway;
  config: Config["gateway"]["batch"];
  store: Pick<Store, "completions" | "batches" | "files" | "sources" | "jobs" | "checkWrites">;
  jobs: Jobs;
  logger: Logger;
};

/** What providers answer later, and at a lower price. */
export function openBatches({ gateway, config, store, jobs, logger }: BatchesInput) {
  const { deps, plan, embed } = gateway;
  const chats = makeBatches({
    gateway: deps,
    store: store.batches,
    completions: store.completions,
    jobs,
    config,
    logger,
  });
  const files = makeFileBatches({
    store,
    jobs,
    batches: chats,
    embed,
    findForwarding: (tenantId, name) => findForwarding(deps, tenantId, name),
    plan,
    pollMs: config.pollMs,
  });
  return {
    /** Chats that wait for a batch. */
    chats,
    /** Files of chats and embeddings, as OpenAI's clients submit them, and batches of messages, as Anthropic's do. */
    files,
    close: chats.close,
  };
}
