import type { AnyTool } from "../../src/mcp-tools/tool.ts";
import type { JobRecord } from "../../src/store/job-record.ts";
import { jobStates } from "../../src/store/job-state.ts";
import { canonical, sha256 } from "../canonical-hash.ts";
import type { HandlerInput } from "../route.ts";
import { type Question, questionOf } from "./approval-forms.ts";
import { isObject, RpcFault, rpcCodes } from "./json-rpc.ts";
import { type Dialect, isSince, statelessRevision } from "./revisions.ts";
import { findJob, takeAnswer } from "./tasks.ts";

/**
 * Calls of 2026-07-28 whose run awaits a decision (SEP-2322): the result asks the client's person, and the client calls again
 * with the answer and with the `requestState`, which is the id of the job. That gives no right that `svc_job` does not give:
 * the job is looked up in the caller's tenant, and the decision is checked as any other. The job's record keeps which calls
 * have asked, so that the state continues no other tool, and none with other arguments.
 */

type Request = { dialect: Dialect; params: Readonly<Record<string, unknown>> };
/** A tool's call, with the arguments as the tool takes them. */
type Call = { tool: AnyTool; given: unknown; request: Request };

/** Calls that a job keeps which have asked: that which made it, and those that look at it. */
const MAX_ASKED = 8;
const OF_ANOTHER_CALL = "This requestState is of another call: send it with the same tool and the same arguments.";

const hashOf = ({ tool: { name }, given }: Call) => sha256(canonical([name, given]));

/** What a call is answered whose job awaits a decision. */
export const toAsking = (job: JobRecord, { approvalId, request }: Question) => ({
  resultType: "input_required",
  inputRequests: { [approvalId]: request },
  requestState: job._id,
});

/** The question of a call's job, for a client that can ask its person and takes no task. The call may be made again. */
export async function questionFor(input: HandlerInput, call: Call, job: JobRecord): Promise<Question | null> {
  const { dialect } = call.request;
  const canAsk = isSince(dialect, statelessRevision) && "elicitation" in dialect.capabilities;
  const question = canAsk ? await questionOf(input, job) : null;
  if (question !== null && !isAskedBy(job, call)) {
    const change = { $push: { askedBy: { $each: [hashOf(call)], $slice: -MAX_ASKED } } };
    await input.platform.store.jobs.change({ jobId: job._id, from: jobStates }, change);
  }
  return question;
}

const isAskedBy = ({ askedBy = [] }: JobRecord, call: Call) => askedBy.includes(hashOf(call));

/**
 * The job of a call that is made again, after the answer that it brings has been taken. `isLeft`: its person left the decision
 * to others. Undefined for a call that is made for the first time.
 * @throws RpcFault `params` for a state of another tenant or another call, and for a response that does not fit.
 */
export async function resumeCall(
  input: HandlerInput,
  call: Call,
): Promise<{ job: JobRecord; isLeft: boolean } | undefined> {
  const { dialect, params } = call.request;
  const { requestState, inputResponses = {} } = params;
  if (requestState === undefined || !isSince(dialect, statelessRevision)) return undefined;
  if (!isObject(inputResponses)) throw new RpcFault(rpcCodes.params, "inputResponses must be an object.");
  const job = await findJob(input, requestState, "This requestState is none of yours.");
  if (!isAskedBy(job, call)) throw new RpcFault(rpcCodes.params, OF_ANOTHER_CALL);
  const question = await questionOf(input, job);
  const answer = question === null ? undefined : inputResponses[question.approvalId];
  if (question === null || answer === undefined) return { job, isLeft: false };
  await takeAnswer(input, question.approvalId, answer);
  return { job, isLeft: isObject(answer) && answer.action !== "accept" };
}
