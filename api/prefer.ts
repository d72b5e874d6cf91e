import { z } from "zod";
import { awaitsPerson, toAcceptedView, toJobError } from "../src/jobs/job-outcome.ts";
import { jobKinds } from "../src/jobs/queues.ts";
import { acceptReserved, seekReserved } from "../src/jobs/submit.ts";
import { defined } from "../src/lib/defined.ts";
import { AppError, isOfPart } from "../src/lib/errors.ts";
import { idSchema, newId } from "../src/lib/ids.ts";
import type { JobRecord } from "../src/store/job-record.ts";
import { isFinal, jobStates } from "../src/store/job-state.ts";
import { rootOf } from "../src/tenancy/roles.ts";
import { toAppError } from "./middleware/errors.ts";
import type { HandlerInput, JsonReply } from "./route.ts";
import { named } from "./schema-names.ts";

/** How long a call that is backed by a job waits for the job's end, unless the client names a time. */
export const DEFAULT_WAIT_MS = 30_000;
/** The longest wait; a longer one is shortened to it, as `Preference-Applied` then shows. */
export const MAX_WAIT_MS = 120_000;
/** When a client should poll an unfinished job again, in seconds. */
const POLL_AFTER_SECONDS = 1;

/** The body of a 202; it also has what the job shows as `about`, as `documentId`. */
export const acceptedSchema = named(
  "AcceptedJob",
  z.looseObject({
    jobId: idSchema("job"),
    kind: z.enum(jobKinds),
    status: z.enum(jobStates),
    statusUrl: z.string(),
  }),
);

/**
 * Reads `Prefer` (RFC 7240) as far as it concerns waiting. `wait=N` waits N seconds, also beside `respond-async`, which alone
 * does not wait at all. Unknown and malformed preferences are ignored, as the RFC demands: `applied`, the value of
 * `Preference-Applied`, is undefined then.
 */
export function readPreference(header: string | undefined, defaultWaitMs = DEFAULT_WAIT_MS) {
  const preferences = (header ?? "").split(/[,;]/).map((part) => part.trim().toLowerCase());
  const [wait] = preferences.flatMap((part) => /^wait\s*=\s*"?(\d{1,9})"?$/.exec(part)?.[1] ?? []);
  if (wait !== undefined) {
    const waitMs = Math.min(Number(wait) * 1_000, MAX_WAIT_MS);
    return { waitMs, applied: `wait=${waitMs / 1_000}` };
  }
  if (preferences.includes("respond-async")) return { waitMs: 0, applied: "respond-async" };
  return { waitMs: defaultWaitMs, applied: undefined };
}

/** Fields that every body of a route with a job may have. */
export const withCallback = {
  callback: z
    .strictObject({ url: z.string().min(1).max(8_192) })
    .optional()
    .describe("Notified of the job's end by a signed webhook: `job.completed`, `job.failed` or `job.cancelled`"),
};

type JobCall = HandlerInput<unknown, unknown, { callback?: { url: string } | undefined }>;

type JobService = {
  /** Accepts the work under this id of its job. `isInteractive`: the client waits for it. */
  accept(given: { jobId: string; isInteractive: boolean }): Promise<{ job: JobRecord }>;
  /** Status of the response with the job's result; default 200. */
  status?: number;
  /** How long the call waits when the client names no time; default 30 s. */
  defaultWaitMs?: number;
};

/**
 * Serves a call that is backed by a job: accepts it, or finds the job of an earlier attempt; replies as `replyWithJob`.
 * @throws AppError what `accept` throws, the job's own error, and `source_refused` for the callback's address.
 */
export async function serveJob(input: JobCall, service: JobService): Promise<JsonReply> {
  const preference = readPreference(input.header("prefer"), service.defaultWaitMs);
  const { platform, caller, body } = input;
  if (body.callback) await platform.callbacks.admit(caller, body.callback.url);
  const isInteractive = preference.waitMs > 0;
  const job = await acceptOnce(input, (jobId) => service.accept({ jobId, isInteractive }));
  // Only now: a refused call leaves nothing behind. The repeat of a call that was cut in between gets here too.
  if (body.callback) await platform.callbacks.expect(caller, job._id, body.callback.url).catch(throwFor(job));
  return replyWithJob(input, job, { status: service.status ?? 200, preference });
}

/** Throws an error of a call whose job was accepted, and goes on, with the ids of that. */
const throwFor =
  (job: JobRecord) =>
  (thrown: unknown): never => {
    const { code, message, retryable, retryAfterMs } = toAppError(thrown);
    const about = { details: { jobId: job._id, ...job.subject }, ...defined({ retryAfterMs }) };
    throw new AppError(code, `${message} The job was accepted, and goes on.`, { ...about, retryable, cause: thrown });
  };

/** Accepts a call's work in its tenant's turn, or finds the job of an earlier attempt. Throws as `acceptReserved`. */
export function acceptOnce(
  input: Pick<HandlerInput, "platform" | "caller" | "reservation">,
  accept: (jobId: string) => Promise<{ job: JobRecord }>,
): Promise<JobRecord> {
  const { platform, caller, reservation } = input;
  const of = { tenantId: caller.tenantId, reserved: reservation };
  return platform.jobs.inTurn(rootOf(caller), () => acceptReserved(platform, of, accept));
}

/**
 * The id for the job of a call, or the job itself when an earlier attempt of the same call stopped between accepting and
 * responding. So a call that is repeated with its `Idempotency-Key` makes one job, at whatever point its process died.
 */
export async function reserveJob(
  input: Pick<HandlerInput, "platform" | "caller" | "reservation">,
): Promise<{ job: JobRecord } | { jobId: string }> {
  const { platform, caller, reservation } = input;
  if (!reservation) return { jobId: newId("job") };
  const job = await seekReserved(platform.jobs, caller.tenantId, reservation);
  return job === null ? { jobId: reservation.jobId } : { job };
}

/**
 * Replies with the result of `job` when it completes in time, with its error when it fails in time, and otherwise with 202
 * and where to follow it, also when the store or Redis is unavailable. A client that disconnects ends the waiting, never the job;
 * its repeat with the same `Idempotency-Key` gets the address to follow the job at.
 * @throws AppError the job's own error; `wrong_state` when it was cancelled.
 */
export async function replyWithJob(
  input: Pick<HandlerInput, "platform" | "caller" | "signal" | "checkpoint" | "reservation">,
  job: JobRecord,
  { status, preference }: { status: number; preference: ReturnType<typeof readPreference> },
): Promise<JsonReply> {
  const { waitMs, applied } = preference;
  const headers = defined({ "preference-applied": applied });
  const accepted = toAcceptedReply(job, headers);
  if (waitMs === 0) return accepted;
  const { platform, caller, signal } = input;
  let record = job;
  try {
    await input.checkpoint(accepted);
    record = await platform.jobs.wait(caller.tenantId, job._id, { timeoutMs: waitMs, signal, isEnough: awaitsPerson });
  } catch (error) {
    // The client has left, but may repeat its call; or we cannot wait now, but the job is accepted.
    if (!signal.aborted && !isOfPart(toAppError(error))) throw error;
  }
  if (!isFinal(record.status)) return toAcceptedReply(record, headers);
  if (record.status === "completed") return { status, headers, body: record.result };
  if (input.reservation) input.reservation.state = "failed";
  throw toJobError(record);
}

/** 202 with the job's ids, and where to follow it. */
function toAcceptedReply(job: JobRecord, headers: Record<string, string> = {}): JsonReply {
  const body = toAcceptedView(job);
  const polling = { location: body.statusUrl, "retry-after": String(POLL_AFTER_SECONDS) };
  return { status: 202, headers: { ...polling, ...headers }, body };
}
