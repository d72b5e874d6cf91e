import { type ForwardedChat, withGuard } from "../../gateway/chat/forward.ts";
import type { PlannedChat } from "../../gateway/chat/plan.ts";
import type { GatewayCaller } from "../../gateway/money/account.ts";
import { toTarget } from "../../gateway/resilience/target.ts";
import { batchQueue } from "../../jobs/queues.ts";
import { submitWork, type Work, type WorkRecord } from "../../jobs/work.ts";
import { defined } from "../../lib/defined.ts";
import { newId } from "../../lib/ids.ts";
import { currentRequestId } from "../../net/call-scope.ts";
import type { BatchItemRecord, BatchRecord } from "../../store/batch-store.ts";
import type { JobRecord } from "../../store/job-record.ts";
import { unlessDuplicate } from "../../store/writes.ts";
import { type BatchDeps, makeCollector, type RunDeps } from "./collect.ts";
import { groupOf, planItem } from "./plan-item.ts";
import { restartOrFail, runBatch } from "./run.ts";
import { BATCH_PRICE } from "./settle.ts";

/** An item and its answer are kept for this long, in ms: a provider takes a day, twice when the item expires. */
const KEEP_ITEM_MS = 7 * 86_400_000;
/** Jobs of batches are the service's own: no tenant sees them. */
const serviceTenantId = `ten_${"0".repeat(26)}`;
/** The sweep submits a closed batch that another process should have submitted this long ago, in ms. */
const SUBMIT_AFTER_MS = 3_000;
/** Why a chat is answered at once although it may wait. */
export type Ineligible = "streamed" | "widget-key" | "run" | "no-batch-interface" | "budget";

type BatchedAs = {
  jobId: string;
  startedBy?: string | undefined;
  isRetried?: boolean;
  admit?: () => Promise<unknown>;
  message?: BatchItemRecord["message"];
  response?: BatchItemRecord["response"];
};

export type Batches = ReturnType<typeof makeBatches>;

/** Chats that are answered by a provider's batch, at half the price. */
export function makeBatches(deps: BatchDeps) {
  const { gateway, store, jobs, logger } = deps;
  const { submit, ...batchWork } = makeBatchWork(deps);
  const collector = makeCollector(deps, submit);
  const work = withRuns({ ...deps, collector }, batchWork);
  return {
    /**
     * Accepts a chat for the next batch, once however often it is called with the same `jobId`, as a job that waits under it,
     * or says why it cannot be batched. `isRetried`: the caller retries with the same id until accepted. `admit` is called
     * before anything is kept of a chat that can be batched. `message`, `response`: its answer is to be one of that API.
     * @throws AppError `provider_not_configured`, `budget_exhausted`, and what `admit` throws.
     */
    async accept(
      caller: GatewayCaller,
      given: PlannedChat | ForwardedChat,
      { jobId, startedBy, isRetried = false, admit, message, response }: BatchedAs,
    ): Promise<{ job: JobRecord } | { ineligible: Ineligible }> {
      if ("raw" in given) await withGuard(gateway, caller, given);
      const { plan, request, bounds, raw, debug } = await planItem(gateway, caller.tenantId, given);
      const { model, requested, reason } = plan.routing;
      const { provider, key } = toTarget(gateway, plan, model);
      const { batches } = provider;
      if (batches === undefined || (batches !== "own-workers" && model.batch !== true)) {
        return { ineligible: "no-batch-interface" };
      }
      await admit?.();
      const reserved = await gateway.budgets.reserveForLater(caller.tenantId, () => {
        // An item may wait for a day and must not hold the rest of a budget that long: it gets all that it may cost, or none.
        const nanoUsd = Math.ceil(bounds.mostNanoUsd * BATCH_PRICE);
        return { mostNanoUsd: nanoUsd, leastNanoUsd: nanoUsd };
      });
      const now = Date.now();
      const item: BatchItemRecord = {
        _id: jobId,
        tenantId: caller.tenantId,
        keyId: caller.keyId,
        surface: caller.surface,
        group: groupOf(key.keyId, { request, raw }, batches),
        provider: model.provider,
        providerKeyId: key.keyId,
        model: model.id,
        requestedModel: requested,
        reason,
        request: reserved && !raw ? { ...request, maxTokens: bounds.answerFor(bounds.askedNanoUsd) } : request,
        ...defined({ raw, message, response }),
        requestSize: (raw?.body ?? JSON.stringify(request)).length,
        state: "accepted",
        expiries: 0,
        logId: newId("log"),
        ...(reserved && { reserved }),
        ...defined({ debug, origin: caller.origin, requestId: currentRequestId() }),
        createdAt: new Date(now),
        expireAt: new Date(now + KEEP_ITEM_MS),
      };
      // An item is sent only while its job waits, so it may be taken no sooner than that is there.
      const isNew = await store.insertItem(item);
      if (!isNew && reserved) await gateway.budgets.settleLater(caller.tenantId, reserved, 0); // the item has its own
      const { tenantId, keyId } = caller;
      const shown = { title: requested, keyId, ...defined({ startedBy }) }; // nothing of what is said in it
      const job = await jobs.held.hold({ queue: batchQueue, tenantId, jobId, subject: {}, isRetried, ...shown });
      try {
        await store.moveItem(jobId, ["accepted"], { state: "waiting" });
        await collector.add(item);
      } catch (error) {
        // From here on it is accepted, whatever is unavailable.
        logger.warn({ err: error, jobId }, "a chat that waits for a batch is left to the sweep");
      }
      return { job };
    },
    /** Batches at providers. */
    work,
    /** Closes batches whose time has come, and sees to items without a batch. Run it on a schedule. */
    sweep: collector.sweep,
    close: collector.close,
  };
}

type BatchWork = Omit<Work, "run"> & {
  /** Submits the job of a closed batch, unless it exists. */
  submit(batch: WorkRecord): Promise<void>;
};

/** How a closed batch gets its job, and how it ends without it. */
function makeBatchWork({ store, jobs }: Pick<BatchDeps, "store" | "jobs">): BatchWork {
  const work: BatchWork = {
    queue: batchQueue,
    idField: "batchId",
    async submit(batch) {
      const submitted = submitWork(jobs, work, { record: toServiceRecord(batch), isInteractive: false });
      await unlessDuplicate(submitted); // another process may be first
    },
    async find(_tenantId, batchId) {
      const batch = await store.batch(batchId);
      return batch && toServiceRecord(batch);
    },
    async unfinished({ before, limit }) {
      const closed = await store.overdue(["closed"], new Date(Date.now() - SUBMIT_AFTER_MS), limit);
      const submitted = await store.overdue(["submitted"], before, limit);
      return [...closed, ...submitted].map(toServiceRecord);
    },
    touch: ({ _id }) => store.changeBatch(_id, ["closed", "submitted"], { $set: { closeAt: new Date() } }),
    reject: async () => undefined, // the sweep submits it again
    async closeOrphan(batch, job) {
      if (!job) return work.submit(batch);
      if (job.status !== "failed") return;
      // The items of a batch that never reached its provider wait on, for the next one.
      await store.endUnsubmitted(batch._id);
    },
  };
  return work;
}

/** How a batch is run, and how it ends when its job failed for good. */
function withRuns(deps: RunDeps, batchWork: Omit<Work, "run">): Work {
  return {
    ...batchWork,
    async run({ recordId, signal }) {
      await runBatch(deps, recordId, signal);
      return {};
    },
    async closeOrphan(record, job) {
      const batch = await deps.store.batch(record._id);
      const isSent = batch?.submittedAt !== undefined;
      if (isSent && job?.status === "failed") await restartOrFail(deps, batch);
      else await batchWork.closeOrphan(record, job);
    },
  };
}

function toServiceRecord({ _id, jobId }: Pick<BatchRecord, "_id" | "jobId">): WorkRecord {
  return { _id, jobId, tenantId: serviceTenantId };
}
