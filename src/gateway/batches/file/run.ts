import { AppError, isBudgetExhausted, isOfPart, toErrorView } from "../../../errors.ts";
import { forEachConcurrent } from "../../../for-each-concurrent.ts";
import { hashDigits } from "../../../ids.ts";
import type { Jobs } from "../../../jobs/jobs.ts";
import { batchQueue } from "../../../jobs/queues.ts";
import { Rescheduled } from "../../../jobs/reschedule.ts";
import type { FileBatchDocument, FileBatchFault, FileBatchState } from "../../../store/file-store.ts";
import { isFinal } from "../../../store/job-state.ts";
import type { Store } from "../../../store/store.ts";
import { fromOpenAi, toCompletion } from "../../chat/openai.ts";
import { type EmbedOutcome, type EmbedRequest, toEmbeddingList, toEmbedRequest } from "../../embed.ts";
import type { GatewayCaller } from "../../money/account.ts";
import type { BudgetRejection } from "../../money/budget.ts";
import type { ChatResponse } from "../../schemas.ts";
import type { Batches } from "../provider/batches.ts";
import { type BatchEndpoint, type FileLine, readBody, readLines } from "./read-lines.ts";

/** What files and their batches work with. `pollMs`: longest pause between two looks at the items. */
export type FileBatchDeps = {
  store: Pick<Store, "files" | "sources" | "jobs">;
  jobs: Jobs;
  batches: Pick<Batches, "accept">;
  embed(caller: GatewayCaller, request: EmbedRequest): Promise<EmbedOutcome>;
  pollMs: number;
};

const SURFACE = "openai-batch";
/** Items that are submitted at once. */
const ITEMS_AT_ONCE = 16;
/** The first pause between two looks at the items, in ms. */
const FIRST_POLL_MS = 1_000;
/** How long after its creation a batch waits for room in its tenant's budget, in ms: its completion window. */
const WINDOW_MS = 86_400_000;

type Run = { tenantId: string; batchId: string; signal: AbortSignal };

/** Moves a batch on to a state from one of some others; null when it is in none of them. */
export function moveBatch(
  files: Store["files"],
  batch: FileBatchDocument,
  from: readonly FileBatchState[],
  to: { status: FileBatchState; faults?: FileBatchFault[] },
): Promise<FileBatchDocument | null> {
  const now = new Date();
  return files.changeBatch(batch, from, { $set: { ...to, updatedAt: now, [`reachedAt.${to.status}`]: now } });
}

/**
 * Advances a client's batch as far as possible now: reads its file, makes a job of each line, and when all have ended writes
 * their answers into files. Each step can be done twice.
 * @throws Rescheduled while items are under way.
 */
export async function runFileBatch(deps: FileBatchDeps, run: Run): Promise<void> {
  const { files, sources } = deps.store;
  const batch = await files.findBatch(run.tenantId, run.batchId);
  if (batch === null) return;
  const endpoint = batch.endpoint as BatchEndpoint; // checked when it was made
  const source = await sources.read(run.tenantId, batch.inputFileId);
  const { lines, faults } = readLines(source?.toString("utf8") ?? "", endpoint);
  if (batch.status === "validating") {
    if (faults.length > 0) return void (await moveBatch(files, batch, ["validating"], { status: "failed", faults }));
    const total = lines.length;
    const validated = await files.changeBatch(batch, ["validating"], { $set: { total } });
    if (validated) await submitItems(deps, { batch: validated, lines, signal: run.signal });
    await moveBatch(files, batch, ["validating"], { status: "in_progress" });
  } else if (batch.status === "in_progress") {
    await submitItems(deps, { batch, lines, signal: run.signal });
  }
  await finish(deps, run, lines);
}

type Submission = { batch: FileBatchDocument; lines: readonly FileLine[]; signal: AbortSignal };

/**
 * Makes a job of each line that has none, as far as the budget has room for them. While the batch is validated also of each
 * line whose job has not ended: an embedding's that waits was begun by a worker that died.
 */
async function submitItems(deps: FileBatchDeps, { batch, lines, signal }: Submission): Promise<void> {
  const ids = itemJobIds(batch);
  const states = await deps.store.jobs.statesOf(batch.tenantId, ids);
  const isRepeated = batch.status === "validating";
  const open = ids.flatMap((jobId, place) => {
    const state = states.get(jobId);
    const isOpen = state === undefined || (isRepeated && !isFinal(state));
    return isOpen ? [{ jobId, body: lines[place]?.body }] : [];
  });
  let hasRoom = true;
  await forEachConcurrent(open, ITEMS_AT_ONCE, async (item) => {
    signal.throwIfAborted();
    if (hasRoom && !(await submitItem(deps, batch, { ...item, signal }))) hasRoom = false;
  });
}

/** Whether calls under way may leave room in the budget for what it had none for, within the batch's time. */
function mayFitLater(error: AppError, { createdAt }: FileBatchDocument): boolean {
  if (!isBudgetExhausted(error) || Date.now() - createdAt.getTime() > WINDOW_MS) return false;
  const { reservedUsd, leftUsd, neededUsd } = error.details as BudgetRejection; // as the budget's own rejections have
  return reservedUsd > 0 || leftUsd >= neededUsd; // what was reserved may have been released since
}

/** Makes the job of a line; false when it has to wait for room in the budget. */
async function submitItem(
  deps: FileBatchDeps,
  batch: FileBatchDocument,
  { jobId, body, signal }: { jobId: string; body: unknown; signal: AbortSignal },
): Promise<boolean> {
  const { jobs, batches } = deps;
  const { tenantId, keyId, endpoint } = batch;
  const caller: GatewayCaller = { tenantId, keyId, surface: SURFACE, signal };
  const held = { queue: batchQueue, tenantId, jobId, subject: { batchId: batch._id }, isRetried: true };
  try {
    if (endpoint === "/v1/embeddings") {
      const wanted = readBody("/v1/embeddings", body);
      await jobs.held.hold(held);
      const outcome = await deps.embed(caller, toEmbedRequest(wanted));
      await jobs.held.end(jobId, { result: toEmbeddingList(outcome, wanted.encoding_format) });
      return true;
    }
    const chat = fromOpenAi(readBody("/v1/chat/completions", body));
    const accepted = await batches.accept(caller, chat, { jobId, isRetried: true });
    if ("ineligible" in accepted)
      throw new AppError("invalid_request", `model: it has no batches (${accepted.ineligible})`);
  } catch (error) {
    if (!(error instanceof AppError) || signal.aborted || isOfPart(error)) throw error;
    if (endpoint === "/v1/chat/completions" && mayFitLater(error, batch)) return false;
    await jobs.held.hold(held);
    await jobs.held.end(jobId, { error: toErrorView(error) });
  }
  return true;
}

/** Writes the answers when every item has ended, else counts those that have. */
async function finish(deps: FileBatchDeps, { tenantId, batchId }: Run, lines: readonly FileLine[]): Promise<void> {
  const { files } = deps.store;
  const batch = await files.findBatch(tenantId, batchId);
  if (batch === null || batch.status === "completed" || batch.status === "cancelled") return;
  const ids = itemJobIds(batch);
  const states = [...(await deps.store.jobs.statesOf(tenantId, ids)).values()];
  const completed = states.filter((state) => state === "completed").length;
  const failed = states.filter((state) => state === "failed").length;
  const counted = await files.changeBatch(batch, [batch.status], { $set: { completed, failed } });
  const isCancelled = batch.status === "cancelling";
  const expected = isCancelled ? states.length : ids.length; // a cancelled batch makes no more jobs
  if (states.filter(isFinal).length < expected) {
    const ageMs = Date.now() - batch.createdAt.getTime();
    throw new Rescheduled(Math.min(Math.max(FIRST_POLL_MS, ageMs / 10), deps.pollMs));
  }
  if (counted === null) throw new Rescheduled(FIRST_POLL_MS); // it is being cancelled just now
  await moveBatch(files, batch, ["in_progress"], { status: "finalizing" });
  await writeAnswers(deps, batch, lines);
  await moveBatch(files, batch, ["finalizing", "cancelling"], { status: isCancelled ? "cancelled" : "completed" });
}

async function writeAnswers(deps: FileBatchDeps, batch: FileBatchDocument, lines: readonly FileLine[]): Promise<void> {
  const answers: string[] = [];
  const errors: string[] = [];
  for (const [place, jobId] of itemJobIds(batch).entries()) {
    const job = await deps.jobs.find(batch.tenantId, jobId);
    if (!job) continue; // the batch was cancelled before this line had its job
    const head = { id: `batch_req_${jobId.slice(4)}`, custom_id: lines[place]?.customId };
    if (job.status === "completed") {
      const isChat = batch.endpoint === "/v1/chat/completions";
      const body = isChat ? toCompletion(job.result as ChatResponse) : job.result; // as its item's end stored it
      answers.push(JSON.stringify({ ...head, response: { status_code: 200, request_id: jobId, body }, error: null }));
    } else if (job.status === "failed") {
      const { code = "internal", message = "The request failed." } = job.error ?? {};
      errors.push(JSON.stringify({ ...head, response: null, error: { code, message } }));
    }
  }
  await writeFile(deps.store, batch, "output", answers);
  await writeFile(deps.store, batch, "error", errors);
}

async function writeFile(
  { files, sources }: FileBatchDeps["store"],
  batch: FileBatchDocument,
  kind: "output" | "error",
  lines: readonly string[],
): Promise<void> {
  if (lines.length === 0) return;
  const { _id: batchId, tenantId, [`${kind}FileId` as const]: _id } = batch;
  const bytes = Buffer.from(`${lines.join("\n")}\n`, "utf8");
  await sources.remove(tenantId, _id); // what a worker that died had written of it
  await sources.write(tenantId, _id, bytes);
  const filename = `${batchId}_${kind}.jsonl`;
  await files.ensure({ _id, tenantId, filename, purpose: "batch_output", bytes: bytes.length, createdAt: new Date() });
}

/** The jobs of a batch's items, in their order: always the same, so that an item picked up again makes no second job. */
export function itemJobIds({ _id, total }: Pick<FileBatchDocument, "_id" | "total">): string[] {
  const head = `job_${_id.slice(-26, -16)}`; // the batch's time
  return Array.from({ length: total }, (_, place) => head + hashDigits(`${_id}:${place}`));
}
