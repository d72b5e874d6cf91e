import { z } from "zod";
import { idSchema, newId } from "../src/ids.ts";
import { jobKinds } from "../src/jobs/define-queue.ts";
import { toAcceptedView, toJobError } from "../src/jobs/job-outcome.ts";
import type { JobRecord } from "../src/jobs/job-record.ts";
import { isFinal, jobStates } from "../src/jobs/job-state.ts";
import { toAppError } from "./middleware/errors.ts";
import type { HandlerInput, JsonReply } from "./route.ts";

/** How long a call that is backed by a job waits for its end, when the client names no time. */
export const DEFAULT_WAIT_MS = 30_000;
/** The longest wait that a client may ask for; a longer one is shortened to it, and said so. */
export const MAX_WAIT_MS = 120_000;
/** When a client should look at an unfinished job again, in seconds. */
const POLL_AFTER_SECONDS = 1;

/** The body of a 202; ids of what is being made, as `documentId`, stand beside these fields. */
export const acceptedSchema = z.looseObject({
  jobId: idSchema("job"),
  kind: z.enum(jobKinds),
  status: z.enum(jobStates),
  statusUrl: z.string(),
});

export type Preference = {
  /** How long to wait for the job, in ms; 0 answers at once. */
  waitMs: number;
  /** Value of `Preference-Applied`; none when the client preferred nothing that we know. */
  applied: string | undefined;
};

/**
 * Reads `Prefer` (RFC 7240) as far as it concerns waiting. `wait=N` (seconds) waits so long, also beside `respond-async`,
 * which alone does not wait at all. Preferences that we do not know, or cannot read, are ignored, as the RFC wants it.
 */
export function readPreference(header: string | undefined): Preference {
  const preferences = (header ?? "").split(/[,;]/).map((part) => part.trim().toLowerCase());
  const wait = preferences
    .map((part) => /^wait\s*=\s*"?(\d{1,9})"?$/.exec(part)?.[1])
    .find((text) => text !== undefined);
  if (wait !== undefined) {
    const waitMs = Math.min(Number(wait) * 1_000, MAX_WAIT_MS);
    return { waitMs, applied: `wait=${waitMs / 1_000}` };
  }
  if (preferences.includes("respond-async")) return { waitMs: 0, applied: "respond-async" };
  return { waitMs: DEFAULT_WAIT_MS, applied: undefined };
}

/** What a body that makes a job may ask for besides. */
export const withCallback = {
  callback: z
    .object({ url: z.string().min(1).max(8_192) })
    .optional()
    .describe("Told of the job's end by a signed webhook: `job.completed`, `job.failed` or `job.cancelled`"),
};

type Reserving = Pick<HandlerInput, "platform" | "caller" | "reservation">;

/**
 * The id for the job of a call, or the job itself when an earlier try of the same call was cut between accepting and
 * answering. So a call that is repeated with its `Idempotency-Key` makes one job, whenever its process died. An address that
 * is to be told of the job's end is noted before the job is accepted.
 * @throws AppError `source_refused` for such an address.
 */
export async function reserveJob(
  input: Reserving,
  callback?: { url: string },
): Promise<{ job: JobRecord } | { jobId: string }> {
  const reserved = await findReserved(input);
  if (callback && "jobId" in reserved) {
    await input.platform.callbacks.expect(input.caller.tenantId, reserved.jobId, callback.url);
  }
  return reserved;
}

async function findReserved({
  platform,
  caller,
  reservation,
}: Reserving): Promise<{ job: JobRecord } | { jobId: string }> {
  if (!reservation?.mayBeTaken) return { jobId: reservation?.jobId ?? newId("job") };
  const job = await platform.jobs.find(caller.tenantId, reservation.jobId);
  if (job === null) return { jobId: reservation.jobId };
  const wasRefused = job.status === "failed" && job.attempts === 0;
  return wasRefused ? { jobId: newId("job") } : { job };
}

type Waiting = Pick<HandlerInput, "platform" | "caller" | "signal" | "header" | "checkpoint">;

/**
 * Answers a call that is backed by `job`: with `toReply` of the finished record when it completes in time, with its error
 * when it fails in time, else with 202 and where to look, also when a part that waiting takes is away. A cancelled job is a
 * 409. A client that leaves while we wait ends the waiting, never the job; its repeat with the same `Idempotency-Key` is
 * told where to look.
 * @throws AppError the job's own error; `wrong_state` when it was cancelled.
 */
export async function replyWithJob(
  input: Waiting,
  job: JobRecord,
  toReply: (record: JobRecord) => JsonReply = (record) => ({ status: 201, body: record.result }),
): Promise<JsonReply> {
  const { waitMs, applied } = readPreference(input.header("prefer"));
  const headers: Record<string, string> = applied === undefined ? {} : { "preference-applied": applied };
  const accepted = toAcceptedReply(job, headers);
  if (waitMs === 0) return accepted;
  const record = await waitForJob(input, job, { waitMs, accepted });
  if (!isFinal(record.status)) return toAcceptedReply(record, headers);
  if (record.status === "completed") {
    const reply = toReply(record);
    return { ...reply, headers: { ...headers, ...reply.headers } };
  }
  throw toJobError(record);
}

async function waitForJob(
  input: Waiting,
  job: JobRecord,
  { waitMs: timeoutMs, accepted }: { waitMs: number; accepted: JsonReply },
): Promise<JobRecord> {
  const { platform, caller, signal } = input;
  try {
    await input.checkpoint(accepted);
    return await platform.jobs.wait(caller.tenantId, job._id, { timeoutMs, signal });
  } catch (error) {
    if (signal.aborted) return job; // nobody listens any more, but a repeat of the call will
    if (toAppError(error).code === "unavailable") return job; // we cannot wait just now, but it is accepted
    throw error;
  }
}

/** 202 with the job's ids, and where to follow it. */
export function toAcceptedReply(job: JobRecord, headers: Record<string, string> = {}): JsonReply {
  const body = toAcceptedView(job);
  return {
    status: 202,
    headers: { location: body.statusUrl, "retry-after": String(POLL_AFTER_SECONDS), ...headers },
    body,
  };
}
