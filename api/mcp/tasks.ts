import { toJobError } from "../../src/jobs/job-outcome.ts";
import { toProgressView } from "../../src/jobs/job-view.ts";
import { cancelWork } from "../../src/jobs/work.ts";
import { AppError, isOfPart } from "../../src/lib/errors.ts";
import type { JobRecord } from "../../src/store/job-record.ts";
import { isFinal } from "../../src/store/job-state.ts";
import { toAppError, toErrorBody } from "../middleware/errors.ts";
import type { HandlerInput, StreamReply } from "../route.ts";
import { readJob } from "../routes/jobs.ts";
import { decideBy, type Question, questionOf } from "./approval-forms.ts";
import { isObject, RpcFault, type RpcId, rpcCodes, rpcError, rpcResult } from "./json-rpc.ts";
import { toContent, toFailure } from "./results.ts";
import { type Dialect, isSince, statelessRevision, tasksExtension } from "./revisions.ts";

/**
 * Tasks are jobs: the id of a task is its job's, its state is read off the job's record. So any process serves them, and they
 * last as long as the job does. 2025-11-25 has them in its core (basic/utilities/tasks), 2026-07-28 as the extension
 * io.modelcontextprotocol/tasks (SEP-2663).
 */

/** How often a client should ask for a task, in ms. */
const POLL_INTERVAL_MS = 1_000;
const relatedTaskKey = "io.modelcontextprotocol/related-task";

type Params = Readonly<Record<string, unknown>>;
type Request = { params: Params; dialect: Dialect };

const isStateless = (dialect: Dialect) => isSince(dialect, statelessRevision);

/** What a server says of its tasks when it names its capabilities. */
export function taskCapabilities({ revision }: Pick<Dialect, "revision">) {
  if (revision === statelessRevision) return { extensions: { [tasksExtension]: {} } };
  return revision === "2025-11-25" ? { tasks: { cancel: {}, requests: { tools: { call: {} } } } } : {};
}

const extensionsOf = ({ capabilities }: Dialect) => (isObject(capabilities.extensions) ? capabilities.extensions : {});

/** Whether the client of a call takes a task for its result: `after` a wait, or `now`. */
export function takesTask({ params, dialect }: Request): "after" | "now" | undefined {
  if (isStateless(dialect)) return tasksExtension in extensionsOf(dialect) ? "after" : undefined;
  return dialect.revision === "2025-11-25" && isObject(params.task) ? "now" : undefined;
}

/** The result of a call whose job continues as a task. */
export function toCreated(dialect: Dialect, job: JobRecord): Record<string, unknown> {
  const task = toTask(dialect, job, null);
  return isStateless(dialect) ? { ...task, resultType: "task" } : { task };
}

function toTask(dialect: Dialect, job: JobRecord, question: Question | null) {
  const { _id: taskId, createdAt, updatedAt, expireAt } = job;
  const progress = toProgressView(job);
  const lifeMs = expireAt === undefined ? null : expireAt.getTime() - createdAt.getTime();
  const times = { createdAt: createdAt.toISOString(), lastUpdatedAt: updatedAt.toISOString() };
  const status = statusOf(job, question);
  const endedEarly = job.status === "completed" && progress.stage !== "completed";
  const message = endedEarly ? `The run was ${progress.stage}.` : statusMessages[status];
  const statusMessage = message ?? `${progress.stage}, ${progress.done} of ${progress.total}`;
  const about = { taskId, status, statusMessage, ...times };
  if (isStateless(dialect)) return { ...about, ttlMs: lifeMs, pollIntervalMs: POLL_INTERVAL_MS };
  return { ...about, ttl: lifeMs, pollInterval: POLL_INTERVAL_MS };
}

const statusMessages: Partial<Record<string, string>> = {
  input_required: "A decision is awaited, by this client or at /approvals.",
  completed: "The job has ended.",
  failed: "The job failed.",
  cancelled: "The job was cancelled.",
};

/** A tool that failed has completed with an error for its result; `failed` is a task that the service failed. */
function statusOf(job: JobRecord, question: Question | null) {
  if (!isFinal(job.status)) return question === null ? "working" : "input_required";
  if (job.status !== "failed") return job.status === "completed" ? "completed" : "cancelled";
  return isOfService(toJobError(job)) ? "failed" : "completed";
}

const isOfService = (error: AppError) => error.code === "internal" || isOfPart(error);

/** The outcome of a job that has ended, as the call would have returned it; of one that was cancelled none. */
function outcomeOf({ requestId }: HandlerInput, dialect: Dialect, job: JobRecord) {
  if (job.status === "cancelled") return {};
  if (job.status === "completed") return { result: complete(dialect, toContent(dialect, job.result, job.kind)) };
  const error = toJobError(job);
  if (!isOfService(error)) return { result: complete(dialect, toFailure(error, requestId)) };
  return { error: { code: rpcCodes.internal, message: error.message, data: toErrorBody(error, requestId).error } };
}

const complete = (dialect: Dialect, result: object) =>
  isStateless(dialect) ? { resultType: "complete", ...result } : result;

/** `tasks/get`. @throws RpcFault `params` for a task that the tenant does not have. */
export async function getTask(input: HandlerInput, { params, dialect }: Request): Promise<Record<string, unknown>> {
  const job = await findTask(input, params);
  if (!isStateless(dialect)) return toTask(dialect, job, await questionOf(input, job));
  if (isFinal(job.status)) return { ...toTask(dialect, job, null), ...outcomeOf(input, dialect, job) };
  const question = "elicitation" in dialect.capabilities ? await questionOf(input, job) : null;
  const task = toTask(dialect, job, question);
  return question === null ? task : { ...task, inputRequests: { [question.approvalId]: question.request } };
}

/** `tasks/update`: what is not awaited is ignored. @throws RpcFault `params`, also for a decision of another role. */
export async function updateTask(input: HandlerInput, { params }: Request): Promise<Record<string, unknown>> {
  const job = await findTask(input, params);
  const { inputResponses } = params;
  if (!isObject(inputResponses)) throw new RpcFault(rpcCodes.params, "inputResponses must be an object.");
  const question = await questionOf(input, job);
  const answer = question && inputResponses[question.approvalId];
  if (question && answer !== undefined) await takeAnswer(input, question.approvalId, answer);
  return {};
}

/** `tasks/cancel`. @throws RpcFault `params`; before 2026-07-28 also for a task that has ended. */
export async function cancelTask(input: HandlerInput, { params, dialect }: Request): Promise<Record<string, unknown>> {
  const { platform, caller } = input;
  const { _id: jobId } = await findTask(input, params);
  try {
    const job = await cancelWork(platform.jobs, platform.works, { tenantId: caller.tenantId, jobId });
    return isStateless(dialect) ? {} : toTask(dialect, job, null);
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "wrong_state") throw error;
    if (isStateless(dialect)) return {};
    throw new RpcFault(rpcCodes.params, "The task has ended already.");
  }
}

/**
 * `tasks/result` of 2025-11-25: waits for the end of a task, as a stream, on which it asks the client's person for the decisions
 * that the task awaits. What the person says comes as a response of its own, whose id is the approval's.
 */
export async function streamResult(input: HandlerInput, id: RpcId, { params, dialect }: Request): Promise<StreamReply> {
  const { _id: taskId } = await findTask(input, params);
  const _meta = { [relatedTaskKey]: { taskId } };
  async function* events() {
    for await (const next of followTask(input, taskId)) {
      if (!("status" in next)) {
        const { method, params: form } = next.request;
        yield [{ data: { jsonrpc: "2.0", id: next.approvalId, method, params: { ...form, _meta } } }];
        continue;
      }
      const { result, error } = { result: undefined, error: undefined, ...outcomeOf(input, dialect, next) };
      if (error) yield [{ data: rpcError(id, error.code, error.message, error.data) }];
      else if (result) yield [{ data: rpcResult(id, { ...result, _meta }) }];
      else yield [{ data: rpcError(id, rpcCodes.params, "The task was cancelled.") }];
    }
  }
  const toErrorEvent: StreamReply["toErrorEvent"] = (error) => ({
    data: rpcError(id, rpcCodes.internal, error.message, error),
  });
  return { status: 200, events: events(), isEager: true, toErrorEvent };
}

/** Each question of a task once, and at last its job as it ended. */
async function* followTask(input: HandlerInput, taskId: string): AsyncGenerator<Question | JobRecord> {
  const { platform, caller, signal } = input;
  const asked = new Set<string>();
  for (;;) {
    let question: Question | null = null;
    const isEnough = async (job: JobRecord) => {
      question = await questionOf(input, job);
      return question !== null && !asked.has(question.approvalId);
    };
    const job = await platform.jobs.wait(caller.tenantId, taskId, { signal, isEnough });
    if (isFinal(job.status)) return yield job;
    const found = question as Question | null; // the compiler does not see that `isEnough` set it
    if (found) {
      asked.add(found.approvalId);
      yield found;
    }
  }
}

/** Takes what a person said to a question. One that was answered before, or is over, needs no other answer. */
export async function takeAnswer(input: HandlerInput, approvalId: string, answer: unknown): Promise<void> {
  try {
    await decideBy(input, approvalId, answer);
  } catch (thrown) {
    const error = toAppError(thrown);
    if (error.code === "wrong_state" || error.code === "not_found") return;
    if (isOfService(error)) throw error;
    throw new RpcFault(rpcCodes.params, error.message, { data: toErrorBody(error, input.requestId).error });
  }
}

const findTask = (input: HandlerInput, { taskId }: Params) => findJob(input, taskId, "There is no such task.");

/** The job of an id that a client sent. @throws RpcFault `params` with `missing`, the same for another tenant's as for none. */
export async function findJob({ platform, caller }: HandlerInput, id: unknown, missing: string): Promise<JobRecord> {
  if (typeof id !== "string") throw new RpcFault(rpcCodes.params, missing);
  try {
    return await readJob(platform, caller, id);
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "not_found") throw error;
    throw new RpcFault(rpcCodes.params, missing);
  }
}

/** @throws RpcFault `missingCapability` unless the client of a request of 2026-07-28 declares the extension. */
export function requireTasks(dialect: Dialect): void {
  if (!isStateless(dialect) || tasksExtension in extensionsOf(dialect)) return;
  throw new RpcFault(rpcCodes.missingCapability, "Declare the extension of tasks in the client's capabilities.", {
    data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } },
    status: 400,
  });
}
