import type { ErrorView } from "../../../errors.ts";
import type { Jobs } from "../../../jobs/jobs.ts";
import type { FileBatchDocument } from "../../../store/file-store.ts";
import type { JobRecord } from "../../../store/job-record.ts";
import type { Store } from "../../../store/store.ts";
import { toCompletion } from "../../chat/openai.ts";
import type { ChatResponse } from "../../schemas.ts";
import { type FileLine, messagesEndpoint } from "./read-lines.ts";

type AnswerDeps = { store: Pick<Store, "files" | "sources">; jobs: Pick<Jobs, "find"> };

/** The requests of a batch with the jobs that answered them, in their order. `failure`: why those without an end have none. */
type Answered = {
  batch: FileBatchDocument;
  lines: readonly FileLine[];
  jobIds: readonly string[];
  failure?: ErrorView;
};

/** Writes the answers of a batch into its files, as those of its endpoint are. Can be done twice. */
export async function writeAnswers(deps: AnswerDeps, answered: Answered): Promise<void> {
  if (answered.batch.endpoint === messagesEndpoint) return writeResults(deps, answered);
  const { batch, lines, jobIds } = answered;
  const answers: string[] = [];
  const errors: string[] = [];
  for (const [place, jobId] of jobIds.entries()) {
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
  { files, sources }: AnswerDeps["store"],
  batch: FileBatchDocument,
  kind: "output" | "error",
  lines: readonly string[],
): Promise<void> {
  if (lines.length === 0) return;
  const { _id: batchId, tenantId, keyId, [`${kind}FileId` as const]: _id } = batch;
  const bytes = await writeLines(sources, { tenantId, fileId: _id, lines });
  const filename = `${batchId}_${kind}.jsonl`;
  await files.ensure({ _id, tenantId, keyId, filename, purpose: "batch_output", bytes, createdAt: new Date() });
}

async function writeLines(
  sources: Store["sources"],
  { tenantId, fileId, lines }: { tenantId: string; fileId: string; lines: readonly string[] },
): Promise<number> {
  const bytes = Buffer.from(`${lines.join("\n")}\n`, "utf8");
  await sources.ensure(tenantId, fileId, bytes); // each worker writes the same, but for the second of an answer's `created`
  return bytes.length;
}

/** What became of a request for a message; its error is in our form, which the surface turns into Anthropic's. */
export type MessageResult =
  | { type: "succeeded"; message: unknown }
  | { type: "errored"; error: ErrorView; jobId: string }
  | { type: "canceled" }
  | { type: "expired" };

/** The results of a batch of messages: one for each request, whatever became of it. */
async function writeResults(deps: AnswerDeps, { batch, lines, jobIds, failure }: Answered): Promise<void> {
  const { tenantId, outputFileId: fileId } = batch;
  const counts = { succeeded: 0, errored: 0, canceled: 0, expired: 0 };
  const results: string[] = [];
  for (const [place, { customId }] of lines.entries()) {
    const jobId = jobIds[place] ?? "";
    const result = toResult(jobId, await deps.jobs.find(tenantId, jobId), failure);
    counts[result.type] += 1;
    results.push(JSON.stringify({ custom_id: customId, result }));
  }
  await writeLines(deps.store.sources, { tenantId, fileId, lines: results });
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
