import { newId } from "../../../ids.ts";
import type { JobRecord } from "../../../jobs/job-record.ts";
import { batchQueue } from "../../../jobs/queues.ts";
import type { Work } from "../../../jobs/work.ts";
import type { BatchLineDocument } from "../../../store/batch-store.ts";
import { toCompletionRequest } from "../../chat/complete.ts";
import { compressChat } from "../../chat/compress.ts";
import { planChat } from "../../chat/plan.ts";
import type { ChatRequest } from "../../chat/request.ts";
import type { GatewayCaller } from "../../money/account.ts";
import { boundChat } from "../../money/prices.ts";
import { toTarget } from "../../resilience/target.ts";
import { makeBatchWork } from "./batch-work.ts";
import { makeCollector } from "./collect.ts";
import { BATCH_PRICE, type BatchDeps } from "./deps.ts";
import { runBatch } from "./run.ts";

/** A line and its answer are kept so long after it was accepted, in ms: a provider takes a day, twice when it expires. */
const KEEP_LINE_MS = 7 * 86_400_000;
/** Why a chat is answered at once although it may wait. */
export type Ineligible = "streamed" | "no-batch-interface";

/** Chats that are answered by a provider's batch, at half the price. */
export type Batches = {
  /**
   * Accepts a chat for the next batch, once however often it is asked for the same `jobId`, as a job that waits under it, or
   * tells why it cannot be batched. `isRetried`: the caller retries with the same id until accepted.
   * @throws AppError as planning a chat does, and `budget_exhausted`.
   */
  accept(
    caller: GatewayCaller,
    request: ChatRequest,
    jobId: string,
    isRetried?: boolean,
  ): Promise<{ job: JobRecord } | { ineligible: Ineligible }>;
  /** Batches at providers. */
  work: Work;
  /** Closes batches whose time has come, and sees to lines without a batch. Run it on a schedule. */
  sweep(): Promise<void>;
  close(): void;
};

export function makeBatches(deps: BatchDeps): Batches {
  const { gateway, store, jobs, logger } = deps;
  const { submit, ...batchWork } = makeBatchWork(deps);
  const collector = makeCollector(deps, submit);
  const work: Work = {
    ...batchWork,
    async run({ recordId, signal }) {
      await runBatch({ ...deps, collector }, recordId, signal);
      return {};
    },
  };
  return {
    async accept(caller, given, jobId, isRetried = false) {
      const request = given.options?.compress === true ? compressChat(given).request : given;
      const plan = await planChat(gateway, caller.tenantId, request);
      const { model, requested, reason } = plan.routing;
      const {
        provider: { batches },
        key,
      } = toTarget(gateway, plan, model);
      if (batches === undefined || (batches !== "own-workers" && model.batch !== true)) {
        return { ineligible: "no-batch-interface" };
      }
      const wireRequest = toCompletionRequest(request, model);
      const bounds = boundChat(model, wireRequest);
      const reserved = await gateway.budgets.reserveForLater(caller.tenantId, () => {
        // A line may wait for a day, and must not hold the rest of a budget for so long: it gets all that it asks for, or none.
        const nanoUsd = Math.ceil(bounds.askedNanoUsd * BATCH_PRICE);
        return { mostNanoUsd: nanoUsd, leastNanoUsd: nanoUsd };
      });
      const now = Date.now();
      const line: BatchLineDocument = {
        _id: jobId,
        tenantId: caller.tenantId,
        keyId: caller.keyId,
        surface: caller.surface,
        // A provider wants one model a batch; the key's id tells the provider and, for a customer's own, the tenant.
        group: `${key.keyId}/${model.id}`,
        provider: model.provider,
        providerKeyId: key.keyId,
        model: model.id,
        requestedModel: requested,
        reason,
        request: reserved ? { ...wireRequest, maxTokens: bounds.answerFor(bounds.askedNanoUsd) } : wireRequest,
        state: "accepted",
        expiries: 0,
        logId: newId("log"),
        ...(reserved === undefined ? {} : { reserved }),
        createdAt: new Date(now),
        expireAt: new Date(now + KEEP_LINE_MS),
      };
      // A line is sent only while its job waits, so it may be taken no sooner than that is there.
      const isNew = await store.insertLine(line);
      if (!isNew && reserved) await gateway.budgets.settleLater(caller.tenantId, reserved, 0); // the line has its own
      const { tenantId } = caller;
      const job = await jobs.held.hold({ queue: batchQueue, tenantId, jobId, subject: {}, isRetried });
      try {
        await store.moveLine(jobId, ["accepted"], { state: "waiting" });
        await collector.add(line);
      } catch (error) {
        // From here on it is accepted, whatever is away.
        logger.warn({ err: error, jobId }, "a chat that waits for a batch is left to the sweep");
      }
      return { job };
    },
    work,
    sweep: () => collector.sweep(),
    close: () => collector.close(),
  };
}
