import type { Config } from "../../config/config.ts";
import type { GatewayDeps } from "../../gateway/deps.ts";
import type { Jobs } from "../../jobs/jobs.ts";
import { newId } from "../../lib/ids.ts";
import type { Logger } from "../../observe/logger.ts";
import type { BatchItemRecord, BatchRecord } from "../../store/batch-store.ts";
import type { Store } from "../../store/store.ts";

/** The sweep closes a batch that another process should have closed this long ago, in ms. */
const GRACE_MS = 3_000;
/** An item whose job is not there by then is dropped, in ms: a call that was cut in between is repeated sooner. */
const ORPHAN_AFTER_MS = 600_000;
/** A worker that continues after it lost its lease does so within this time, in ms. */
const STRAYS_OF_MS = 3_600_000;
/** A batch is kept for this long, in ms. */
const KEEP_BATCH_MS = 8 * 86_400_000;
/** What one sweep looks at. */
const SWEPT = 100;

/** What the stages of a batch work with. */
export type BatchDeps = {
  gateway: GatewayDeps;
  store: Store["batches"];
  completions: Pick<Store["completions"], "get">;
  jobs: Jobs;
  config: Config["gateway"]["batch"];
  logger: Logger;
};

/** What a batch runs with. */
export type RunDeps = BatchDeps & { collector: ReturnType<typeof makeCollector> };

/** An item, or a batch of such items: what says where it belongs. */
type Grouped = Pick<BatchItemRecord, "group" | "provider" | "providerKeyId" | "model" | "tenantId">;

/**
 * Gathers items into batches. The items say by their group where they belong, and a batch takes them only when it runs, so
 * any number of processes can add at once. A batch is closed by the process that fills it, by a timer of the process that
 * began it, or by the sweep.
 */
export function makeCollector(
  { store, jobs, config, logger }: BatchDeps,
  submitBatch: (closed: BatchRecord) => Promise<void>,
) {
  const timers = new Set<NodeJS.Timeout>();

  const closeBatch = async (batchId: string) => {
    const closed = await store.changeBatch(batchId, ["collecting"], { $set: { state: "closed" } });
    if (closed) await submitBatch(closed);
  };
  const closeLater = (batch: BatchRecord) => {
    const timer = setTimeout(
      () => {
        timers.delete(timer);
        closeBatch(batch._id).catch((error: unknown) => logger.warn({ err: error }, "a batch is left to the sweep"));
      },
      Math.max(0, batch.closeAt.getTime() - Date.now()),
    );
    timers.add(timer.unref());
  };
  /** Sees to it that a waiting item gets into a batch: at the latest when the batch's time has come. */
  const add = async ({ group, provider, providerKeyId, model, tenantId }: Grouped): Promise<void> => {
    const now = Date.now();
    const made: BatchRecord = {
      _id: newId("batch"),
      tenantId,
      group,
      provider,
      providerKeyId,
      model,
      state: "collecting",
      jobId: newId("job"),
      size: 0,
      closeAt: new Date(now + config.collectMs),
      polls: 0,
      createdAt: new Date(now),
      expireAt: new Date(now + KEEP_BATCH_MS),
    };
    const batch = await store.ensureCollecting(made);
    if (batch === made) closeLater(batch);
    if ((await store.countWaiting(group, config.maxItems)) >= config.maxItems) await closeBatch(batch._id);
  };
  return {
    add,
    async sweep(): Promise<void> {
      for (const { _id } of await store.overdue(["collecting"], new Date(Date.now() - GRACE_MS), SWEPT)) {
        await closeBatch(_id);
      }
      for (const stray of await store.strays(new Date(Date.now() - STRAYS_OF_MS), SWEPT)) {
        const change = { state: "waiting" as const, batchId: "" };
        if (await store.moveItem(stray._id, ["batched"], change)) await add(stray);
      }
      const left = await store.waitingSince(new Date(Date.now() - config.collectMs - GRACE_MS), SWEPT);
      const accepted = left.filter(({ state }) => state === "accepted");
      const held = await jobs.held.stillWaiting(accepted.map(({ _id }) => _id));
      const orphaned = Date.now() - ORPHAN_AFTER_MS;
      const isReady = ({ _id, state, createdAt }: BatchItemRecord) =>
        state === "waiting" || held.has(_id) || createdAt.getTime() < orphaned;
      const ready = left.filter(isReady);
      for (const { _id } of ready) await store.moveItem(_id, ["accepted"], { state: "waiting" });
      for (const item of new Map(ready.map((one) => [one.group, one])).values()) await add(item);
    },
    close(): void {
      for (const timer of timers) clearTimeout(timer);
    },
  };
}
