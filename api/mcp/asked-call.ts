import type { JobRecord } from "../../src/store/job-record.ts";
import type { HandlerInput } from "../route.ts";
import { type Question, questionOf } from "./approval-forms.ts";
import { isObject, RpcFault, rpcCodes } from "./json-rpc.ts";
import { type Dialect, isSince, statelessRevision } from "./revisions.ts";
import { findJob, takeAnswer } from "./tasks.ts";

/**
 * Calls of 2026-07-28 whose run awaits a decision (SEP-2322): the result asks the client's person, and the client calls again
 * with the answer and with the `requestState`, which is the id of the job. That gives no right that `svc_job` does not give:
 * the job is looked up in the caller's tenant, and the decision is checked as any other.
 */

type Request = { dialect: Dialect; params: Readonly<Record<string, unknown>> };

/** What a call is answered whose job awaits a decision. */
export const toAsking = (job: JobRecord, { approvalId, request }: Question) => ({
  resultType: "input_required",
  inputRequests: { [approvalId]: request },
  requestState: job._id,
});

/** The question of a job, for a client that can ask its person and takes no task. */
export async function questionFor(input: HandlerInput, dialect: Dialect, job: JobRecord): Promise<Question | null> {
  const canAsk = isSince(dialect, statelessRevision) && "elicitation" in dialect.capabilities;
  return canAsk ? questionOf(input, job) : null;
}

/**
 * The job of a call that is made again, after the answer that it brings has been taken. `isLeft`: its person left the decision
 * to others. Undefined for a call that is made for the first time.
 * @throws RpcFault `params` for a state that is none of the tenant's, and for an answer that does not fit.
 */
export async function resumeCall(
  input: HandlerInput,
  { dialect, params: { requestState, inputResponses = {} } }: Request,
): Promise<{ job: JobRecord; isLeft: boolean } | undefined> {
  if (requestState === undefined || !isSince(dialect, statelessRevision)) return undefined;
  if (!isObject(inputResponses)) throw new RpcFault(rpcCodes.params, "inputResponses must be an object.");
  const job = await findJob(input, requestState, "This requestState is none of yours.");
  const question = await questionOf(input, job);
  const answer = question === null ? undefined : inputResponses[question.approvalId];
  if (question === null || answer === undefined) return { job, isLeft: false };
  await takeAnswer(input, question.approvalId, answer);
  return { job, isLeft: isObject(answer) && answer.action !== "accept" };
}
