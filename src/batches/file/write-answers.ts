import type { ChatResponse } from "../../gateway/schemas.ts";
import type { Jobs } from "../../jobs/jobs.ts";
import type { ErrorView } from "../../lib/errors.ts";
import { expiryAfter, type FileBatchRecord } from "../../store/file-store.ts";
import type { JobRecord } from "../../store/job-record.ts";
import type { JobState } from "../../store/job-state.ts";
import type { Store } from "../../store/store.ts";
import { toCompletion } from "../../surfaces/chat-completions/openai.ts";
import { type FileLine, messagesEndpoint } from "./read-lines.ts";

type AnswerDeps = { store: Pick<Store, "files" | "sources">; jobs: Pick<Jobs, "find"> };

/** The requests of a batch with the jobs that answered them, in their order. `failure`: why those without an end have none. */
type Answered = {
  batch: FileBatchRecord;
  lines(): AsyncIterable<FileLine>;
  jobIdOf(place: number): string;
  stateOf: ReadonlyMap<string, JobState>;
  failure?: ErrorView;
};

/** Writes the answers of a batch into its files, as those of its endpoint are. Can be done twice. */
export async function writeAnswers(deps: AnswerDeps, answered: Answered): Promise<void> {
  if (answered.batch.endpoint === messagesEndpoint) return writeResults(deps, answered);
  await writeFile(deps, answered, { kind: "output", state: "completed", toLine: toAnswer });
  await writeFile(deps, answered, { kind: "error", state: "failed", toLine: toError });
}

type Head = { id: string; custom_id: string };

function toAnswer(head: Head, job: JobRecord, { endpoint }: FileBatchRecord) {
  const isChat = endpoint === "/v1/chat/completions";
  const body = isChat ? toCompletion(job.result as ChatResponse) : job.result; // as its item's end stored it
  return { ...head, response: { status_code: 200, request_id: job._id, body }, error: null };
}

function toError(head: Head, job: JobRecord) {
  const { code = "internal", message = "The request failed." } = job.error ?? {};
  const known = code === "unknown_model" ? "model_not_found" : code; // as OpenAI's clients know it
  return { ...head, response: null, error: { code: known, message } };
}

type Part = {
  kind: "output" | "error";
  /** The state of the jobs that are in this file. */
  state: JobState;
  toLine(head: Head, job: JobRecord, batch: FileBatchRecord): object;
};

/** Writes one of the files, unless it would be empty. */
async function writeFile(deps: AnswerDeps, answered: Answered, { kind, state, toLine }: Part): Promise<void> {
  const { batch, stateOf } = answered;
  if (![...stateOf.values()].includes(state)) return;
  const { _id: batchId, tenantId, keyId, [`${kind}FileId` as const]: _id } = batch;
  const lines = async function* () {
    for await (const { jobId, customId } of withJobs(answered)) {
      if (stateOf.get(jobId) !== state) continue;
      const job = await deps.jobs.find(tenantId, jobId);
      if (job) yield toLine({ id: `batch_req_${jobId.slice(4)}`, custom_id: customId }, job, batch);
    }
  };
  const bytes = await writeLines(deps.store.sources, { batch, fileId: _id, lines: lines() });
  const filename = `${batchId}_${kind}.jsonl`;
  const createdAt = new Date();
  const about = { keyId, filename, purpose: "batch_output" as const, bytes, createdAt };
  await deps.store.files.ensure({ _id, tenantId, ...about, ...expiryAfter(createdAt, batch.outputExpiresAfter) });
}

/** The requests with the ids of their jobs. */
async function* withJobs({
  batch,
  lines,
  jobIdOf,
}: Pick<Answered, "batch" | "lines" | "jobIdOf">): AsyncGenerator<{ jobId: string; customId: string }> {
  let place = 0;
  for await (const { customId } of lines()) {
    if (place === batch.total) return;
    yield { jobId: jobIdOf(place++), customId };
  }
}

/** Each worker writes the same, but for the second of an answer's `created`. */
function writeLines(
  sources: Store["sources"],
  { batch, fileId, lines }: { batch: FileBatchRecord; fileId: string; lines: AsyncIterable<object> },
): Promise<number> {
  const bytes = async function* () {
    for await (const line of lines) yield Buffer.from(`${JSON.stringify(line)}\n`, "utf8");
  };
  return sources.ensureStream(batch.tenantId, fileId, { chunks: bytes(), ownerId: batch._id });
}

/** What became of a request for a message; its error is in our form, which the surface turns into Anthropic's. */
export type MessageResult =
  | { type: "succeeded"; message: unknown }
  | { type: "errored"; error: ErrorView; jobId: string }
  | { type: "canceled" }
  | { type: "expired" };

/** The results of a batch of messages: one for each request, whatever became of it. */
async function writeResults(deps: AnswerDeps, { batch, failure, ...answered }: Answered): Promise<void> {
  const { tenantId, outputFileId: fileId } = batch;
  const counts = { succeeded: 0, errored: 0, canceled: 0, expired: 0 };
  const results = async function* () {
    for await (const { jobId, customId } of withJobs({ batch, ...answered })) {
      const result = toResult(jobId, await deps.jobs.find(tenantId, jobId), failure);
      counts[result.type] += 1;
      yield { custom_id: customId, result };
    }
  };
  await writeLines(deps.store.sources, { batch, fileId, lines: results() });
  const { succeeded: completed, errored, expired } = counts;
  await deps.store.files.changeBatch(batch, [batch.status, "finalizing"], {
    $set: { completed, failed: errored + expired, expired },
  });
}

function toResult(jobId: string, job: JobRecord | null, failure: ErrorView | undefined): MessageResult {
  if (job?.status === "completed") return { type: "succeeded", message: job.result };
  if (job?.status === "failed" && Object(job.error?.details).code === "batch_expired") return { type: "expired" };
  const error = job?.status === "failed" ? job.error : failure;
  return error === undefined || job?.status === "cancelled" ? { type: "canceled" } : { type: "errored", error, jobId };
}
