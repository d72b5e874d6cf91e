import { createHash } from "node:crypto";
import { AppError, type ErrorView, toErrorView } from "../../../errors.ts";
import { Postponed } from "../../../jobs/postpone.ts";
import { batchQueue } from "../../../jobs/queues.ts";
import type { FileBatchDocument } from "../../../store/file-store.ts";
import type { JobRecord } from "../../../store/job-record.ts";
import { isFinal } from "../../../store/job-state.ts";
import { fromOpenAi, toCompletion } from "../../chat/openai.ts";
import { toEmbedRequest } from "../../embed.ts";
import type { GatewayCaller } from "../../money/account.ts";
import type { ChatResponse } from "../../schemas.ts";
import type { FileBatchDeps } from "./deps.ts";
import { type BatchEndpoint, type FileLine, readBody, readLines } from "./read-lines.ts";

const SURFACE = "openai-batch";
/** Lines that are taken up at once. */
const LINES_AT_ONCE = 16;
/** The first pause between two looks at the lines, in ms. */
const FIRST_POLL_MS = 1_000;

type Run = { tenantId: string; batchId: string; signal: AbortSignal };

/**
 * Brings a client's batch as far as it gets now: reads its file, makes a job of each line, and when all of them have ended
 * writes their answers into files. Each step can be done twice.
 * @throws Postponed while lines are under way.
 */
export async function runFileBatch(deps: FileBatchDeps, run: Run): Promise<void> {
  const batch = await deps.store.files.findBatch(run.tenantId, run.batchId);
  if (batch === null) return;
  const endpoint = batch.endpoint as BatchEndpoint; // checked when it was made
  const source = await deps.store.sources.read(run.tenantId, batch.inputFileId);
  const { lines, faults } = readLines(source?.toString("utf8") ?? "", endpoint);
  if (batch.status === "validating") {
    if (faults.length > 0) {
      const now = new Date();
      await deps.store.files.changeBatch(batch, ["validating"], {
        $set: { status: "failed", faults, "reachedAt.failed": now },
      });
      return;
    }
    const total = lines.length;
    const validated = await deps.store.files.changeBatch(batch, ["validating"], { $set: { total } });
    if (validated) await takeUp(deps, validated, lines, run.signal);
    await deps.store.files.changeBatch(batch, ["validating"], {
      $set: { status: "in_progress", "reachedAt.in_progress": new Date() },
    });
  }
  await finish(deps, run, lines);
}

/** Makes a job of each line that has none. */
async function takeUp(
  deps: FileBatchDeps,
  batch: FileBatchDocument,
  lines: readonly FileLine[],
  signal: AbortSignal,
): Promise<void> {
  const ids = itemJobIds(batch);
  const there = await deps.statesOf(batch.tenantId, ids);
  const open = [...lines.entries()].filter(([at]) => !isTakenUp(there, ids[at]));
  for (let at = 0; at < open.length; at += LINES_AT_ONCE) {
    signal.throwIfAborted();
    const group = open.slice(at, at + LINES_AT_ONCE);
    await Promise.all(
      group.map(([line, { body }]) => takeUpLine(deps, batch, { jobId: ids[line] ?? "", body, signal })),
    );
  }
}

/** An embedding is made at once, so one that still waits was begun by a worker that died. */
function isTakenUp(there: ReadonlyMap<string, JobRecord["status"]>, jobId: string | undefined): boolean {
  const state = jobId === undefined ? undefined : there.get(jobId);
  return state !== undefined && isFinal(state);
}

async function takeUpLine(
  deps: FileBatchDeps,
  batch: FileBatchDocument,
  { jobId, body, signal }: { jobId: string; body: unknown; signal: AbortSignal },
): Promise<void> {
  const { jobs, batches } = deps;
  const { tenantId, keyId, endpoint } = batch;
  const caller: GatewayCaller = { tenantId, keyId, surface: SURFACE, signal };
  const held = { queue: batchQueue, tenantId, jobId, subject: { batchId: batch._id }, isRetried: true };
  try {
    if (endpoint === "/v1/embeddings") {
      const read = readBody("/v1/embeddings", body);
      if ("problem" in read) throw invalid(read.problem);
      await jobs.held.hold(held);
      const outcome = await deps.embed(caller, toEmbedRequest(read.body));
      await jobs.held.end(jobId, { result: toEmbeddingList(outcome) });
      return;
    }
    const read = readBody("/v1/chat/completions", body);
    if ("problem" in read) throw invalid(read.problem);
    const accepted = await batches.accept(caller, fromOpenAi({ ...read.body, stream: false }), jobId, true);
    if ("ineligible" in accepted) throw invalid(`model: it has no batches (${accepted.ineligible})`);
  } catch (error) {
    if (!(error instanceof AppError) || signal.aborted || error.code === "unavailable") throw error;
    await jobs.held.hold(held);
    await jobs.held.end(jobId, { error: toErrorView(error) });
  }
}

const invalid = (problem: string) => new AppError("invalid_request", problem);

function toEmbeddingList({ embeddings, model, inputTokens }: Awaited<ReturnType<FileBatchDeps["embed"]>>) {
  return {
    object: "list",
    data: embeddings.map((vector, index) => ({ object: "embedding", index, embedding: Array.from(vector) })),
    model,
    usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
  };
}

/** Writes the answers when every line has ended, else counts those that have. */
async function finish(deps: FileBatchDeps, { tenantId, batchId }: Run, lines: readonly FileLine[]): Promise<void> {
  const { files } = deps.store;
  const batch = await files.findBatch(tenantId, batchId);
  if (batch === null || batch.status === "completed" || batch.status === "cancelled") return;
  const ids = itemJobIds(batch);
  const states = [...(await deps.statesOf(tenantId, ids)).values()];
  const completed = states.filter((state) => state === "completed").length;
  const failed = states.filter((state) => state === "failed").length;
  const counted = await files.changeBatch(batch, [batch.status], { $set: { completed, failed } });
  const isCancelled = batch.status === "cancelling";
  const expected = isCancelled ? states.length : ids.length; // a cancelled batch makes no more jobs
  if (states.filter(isFinal).length < expected) {
    const ageMs = Date.now() - batch.createdAt.getTime();
    throw new Postponed(Math.min(Math.max(FIRST_POLL_MS, ageMs / 10), deps.pollMs));
  }
  if (counted === null) throw new Postponed(FIRST_POLL_MS); // it is being cancelled just now
  await files.changeBatch(batch, ["in_progress"], {
    $set: { status: "finalizing", "reachedAt.finalizing": new Date() },
  });
  await writeAnswers(deps, batch, ids, lines);
  const end = isCancelled ? "cancelled" : "completed";
  await files.changeBatch(batch, ["finalizing", "cancelling"], {
    $set: { status: end, [`reachedAt.${end}`]: new Date() },
  });
}

async function writeAnswers(
  deps: FileBatchDeps,
  batch: FileBatchDocument,
  ids: readonly string[],
  lines: readonly FileLine[],
): Promise<void> {
  const answers: string[] = [];
  const errors: string[] = [];
  for (const [at, jobId] of ids.entries()) {
    const job = await deps.jobs.find(batch.tenantId, jobId);
    const customId = lines[at]?.customId;
    if (!job) continue; // the batch was cancelled before this line had its job
    const head = { id: `batch_req_${jobId.slice(4)}`, custom_id: customId };
    if (job.status === "completed") {
      const body = batch.endpoint === "/v1/embeddings" ? job.result : toCompletion(job.result as ChatResponse); // as it was kept by the batch
      answers.push(JSON.stringify({ ...head, response: { status_code: 200, request_id: jobId, body }, error: null }));
    } else if (job.status === "failed") {
      errors.push(JSON.stringify({ ...head, response: null, error: toLineError(job.error) }));
    }
  }
  await writeFile(deps, batch, batch.outputFileId, answers);
  await writeFile(deps, batch, batch.errorFileId, errors);
}

function toLineError(error: ErrorView | undefined) {
  return { code: error?.code ?? "internal", message: error?.message ?? "The request failed." };
}

async function writeFile(
  { store: { files, sources } }: FileBatchDeps,
  batch: FileBatchDocument,
  fileId: string,
  lines: readonly string[],
): Promise<void> {
  if (lines.length === 0) return;
  const { tenantId } = batch;
  const bytes = Buffer.from(`${lines.join("\n")}\n`, "utf8");
  await sources.remove(tenantId, fileId); // what a worker that died had written of it
  await sources.write(tenantId, fileId, bytes);
  const isOutput = fileId === batch.outputFileId;
  await files.ensure({
    _id: fileId,
    tenantId,
    filename: `${batch._id}_${isOutput ? "output" : "error"}.jsonl`,
    purpose: "batch_output",
    bytes: bytes.length,
    createdAt: new Date(),
  });
}

/** The jobs of a batch's items, in their order. */
export function itemJobIds({ _id, total }: Pick<FileBatchDocument, "_id" | "total">): string[] {
  return Array.from({ length: total }, (_, place) => itemJobId(_id, place));
}

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** The id of the job of an item: always the same, so that an item which is picked up again makes no second job. */
function itemJobId(batchId: string, place: number): string {
  const hash = createHash("sha256").update(`${batchId}:${place}`).digest();
  const random = Array.from(hash.subarray(0, 16), (byte) => alphabet[byte & 31]).join("");
  return `job_${batchId.slice(-26, -16)}${random}`; // the batch's time, and then what distinguishes its items
}
