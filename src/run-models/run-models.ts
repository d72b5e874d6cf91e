import type { ChatOutcome } from "../gateway/chat/outcome.ts";
import type { ChatRequest } from "../gateway/chat/request.ts";
import { type AnsweredChat, type ChatDelta, type ChatEvent, toReasoningText } from "../gateway/chat/steps.ts";
import type { StreamEnd } from "../gateway/chat/stream.ts";
import { estimatePrompt } from "../gateway/count-prompt.ts";
import { settingFields } from "../gateway/providers/model.ts";
import { AGENT, isRunModel } from "../gateway/run-model-names.ts";
import { AWAITING_APPROVAL, toJobError } from "../jobs/job-outcome.ts";
import type { JobEvent } from "../jobs/jobs.ts";
import { acceptReserved } from "../jobs/submit.ts";
import { cancelWork } from "../jobs/work.ts";
import { defined } from "../lib/defined.ts";
import { AppError, invalidRequest, isCancel } from "../lib/errors.ts";
import type { JobRecord } from "../store/job-record.ts";
import { toStoreError } from "../store/store-errors.ts";
import { prepareAgentRun } from "./agent-run.ts";
import { prepareCompositeRun, screenComposite } from "./composite-run.ts";
import { toConversation } from "./conversation.ts";
import type { ChatCaller, PlannedAnswer, PlannedRun, PreparedRun, RunAnswer, RunModelsDeps } from "./deps.ts";
import { findRunModel, listRunModels } from "./list.ts";
import { isRegulatedModel } from "./names.ts";

/** Most characters of steps that one answer shows; all of them are in the trail of the run. */
const MAX_SHOWN = 1_000_000;

export type Chat = ReturnType<typeof makeChat>;

/**
 * Chats with a model, or with an agent or a pattern in its place: `agent:<agentId or name>`, `composite:<pattern>[:<profile>]`.
 * Those are durable runs, as on their own routes. All other chats go to the gateway as they are.
 */
export function makeChat(deps: RunModelsDeps) {
  const { gateway } = deps;
  const plan = async (caller: ChatCaller, request: ChatRequest): Promise<PlannedAnswer> =>
    isRunModel(request.model) ? planRun(caller, request) : gateway.plan(caller, request);
  /**
   * As `answer` of the gateway. A caller that leaves ends the waiting and not the run; a signal that aborts with `cancelled`
   * cancels it.
   * @throws AppError as the gateway; as the route of the run; the run's own; `timeout` for one that takes longer than is waited.
   */
  const answer = async (chat: PlannedAnswer): Promise<AnsweredChat> =>
    "run" in chat ? completeRun(deps, chat) : gateway.answer(chat);
  return {
    /** As `plan` of the gateway. @throws AppError as it; `invalid_request` for a chat that no run takes. */
    plan,
    answer,
    /** As `stream` of the gateway. An empty batch comes as soon as a run is accepted. Throws as `answer`. */
    stream: (chat: PlannedAnswer): AsyncIterable<ChatEvent[]> =>
      "run" in chat ? streamRun(deps, chat) : gateway.stream(chat),
    /** Plans a chat and answers it. Throws as both do. */
    complete: async (caller: ChatCaller, request: ChatRequest) => answer(await plan(caller, request)),
    /** See `ignoredBy` of the gateway. @throws AppError `invalid_request`. */
    ignoredBy: async (tenantId: string, request: ChatRequest): Promise<string[]> =>
      isRunModel(request.model) ? ignoredByRun(request) : gateway.ignoredBy(tenantId, request),
    /** See `countTokens` of the gateway; what a run reads besides the chat is not counted. Throws the same. */
    countTokens: async (tenantId: string, request: ChatRequest): Promise<number> =>
      isRunModel(request.model) ? estimatePrompt(request) : gateway.countTokens(tenantId, request),
    /**
     * What comes before anything of a chat with a regulated profile is kept, were it a hash: its guard.
     * @throws AppError `compliance_blocked`, `invalid_request`, `unknown_model`, `unavailable`.
     */
    screen: screenComposite,
    /**
     * Refuses what a run would refuse, for callers that keep something of a chat before it is made. Chats with models pass.
     * @throws AppError `unknown_model`, `invalid_request`, `compliance_blocked`, `unavailable`.
     */
    async check(caller: ChatCaller, request: ChatRequest): Promise<void> {
      if (!isRunModel(request.model)) return;
      requireStrict(request);
      await (await prepare(deps, caller, request)).check();
    },
    /** Whether chats with this model are screened, and nothing of them but the answer is kept. @throws AppError `unknown_model`. */
    isRegulated: isRegulatedModel,
    /** See `listRunModels`. */
    listRuns: (tenantId: string) => listRunModels(deps, tenantId),
    /** See `findRunModel`. @throws AppError `invalid_request`. */
    findRun: (tenantId: string, model: string) => findRunModel(deps, tenantId, model),
  };
}

function planRun(caller: ChatCaller, request: ChatRequest): PlannedRun {
  requireStrict(request);
  // Said before it is accepted: a stream begins after its reply is there.
  if (caller.runJob && !caller.resumes) caller.runJob.state = "sought";
  return { run: { caller, request }, ignored: ignoredByRun(request) };
}

async function completeRun(deps: RunModelsDeps, chat: PlannedRun): Promise<AnsweredChat> {
  const steps: ChatDelta[] = [];
  let text = "";
  let end: StreamEnd | undefined;
  for await (const batch of streamRun(deps, chat)) {
    for (const event of batch) {
      if (event.type === "end") end = event;
      else if (event.type === "text-delta") text += event.text;
      else steps.push(event);
    }
  }
  if (end === undefined) throw new TypeError("a run has ended without its end");
  const { type: _type, ...outcome } = end;
  const reasoning = steps.map(toReasoningText).join("");
  return { ...outcome, text, steps, ...(reasoning === "" ? {} : { reasoning }) };
}

async function prepare(deps: RunModelsDeps, caller: ChatCaller, request: ChatRequest): Promise<PreparedRun> {
  return (request.model.startsWith(AGENT) ? prepareAgentRun : prepareCompositeRun)(deps, caller, request);
}

async function* streamRun(deps: RunModelsDeps, { run: { caller, request } }: PlannedRun): AsyncGenerator<ChatEvent[]> {
  const beganAt = performance.now();
  const run = await prepare(deps, caller, request);
  const job = await submitOnce(deps, caller, run);
  yield []; // it is accepted: the head may go out
  try {
    const answer = yield* followRun(deps, { caller, run, job });
    const end = toEnd(answer, request.model, performance.now() - beganAt);
    yield answer.isPaused ? [end] : [{ type: "text-delta", text: answer.text }, end];
  } catch (error) {
    const lost = toStoreError(error);
    throw lost === undefined ? error : outOfSight(lost, job);
  }
}

/** The steps of a run as they happen; returns its answer. */
async function* followRun(
  deps: RunModelsDeps,
  { caller, run, job }: { caller: ChatCaller; run: PreparedRun; job: JobRecord },
): AsyncGenerator<ChatDelta[], RunAnswer> {
  const readNews = run.makeNews(job);
  let left = MAX_SHOWN;
  for await (const event of follow(deps, caller, job)) {
    const deltas = await readNews(event);
    left -= JSON.stringify(deltas).length;
    if (deltas.length > 0 && left >= 0) yield deltas;
    if (run.toPause && caller.endsAtApproval && isAtApproval(event)) {
      const { asks, answer } = await run.toPause(job);
      if (asks.length === 0) continue; // they were decided on just now
      yield asks;
      return { ...answer, isPaused: true };
    }
  }
  const ended = await deps.jobs.get(caller.tenantId, job._id);
  if (ended.status !== "completed") {
    if (caller.runJob) caller.runJob.state = "failed";
    throw toJobError(ended);
  }
  return run.toAnswer(ended.result);
}

function isAtApproval({ type, data }: JobEvent): boolean {
  const { status, stage } = Object(data);
  return type === "progress" && status === "awaiting" && stage === AWAITING_APPROVAL;
}

/** Submits the run, or finds it when an earlier attempt at the same call did. */
async function submitOnce(deps: RunModelsDeps, caller: ChatCaller, { accept }: PreparedRun): Promise<JobRecord> {
  const { tenantId, runJob, resumes } = caller;
  if (resumes) return deps.jobs.get(tenantId, resumes.jobId);
  return deps.jobs.inTurn(tenantId, () => acceptReserved(deps, { tenantId, reserved: runJob }, accept));
}

/** The events of a run's job, for as long as is waited. */
async function* follow(
  { jobs, works, waitMs }: RunModelsDeps,
  { tenantId, signal }: ChatCaller,
  job: JobRecord,
): AsyncGenerator<JobEvent> {
  const overdue = new AbortController();
  const timer = setTimeout(() => overdue.abort(tooLong(job, waitMs)), waitMs);
  const until = AbortSignal.any([signal, overdue.signal]);
  try {
    for await (const events of jobs.events(tenantId, job._id, { signal: until })) yield* events;
    until.throwIfAborted();
  } catch (error) {
    // A caller that leaves may come back for the run; one that cancels wants no more of it.
    if (isCancel(signal.reason)) await cancelWork(jobs, works, { tenantId, jobId: job._id }).catch(() => undefined);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

const idOf = ({ _id, subject: { runId, executionId } }: JobRecord) => runId ?? executionId ?? _id;

function tooLong(job: JobRecord, waitMs: number): AppError {
  return new AppError("timeout", `${idOf(job)} did not end within ${waitMs / 1_000} s. ${whereItEnds(job)}`, {
    details: { jobId: job._id, ...job.subject },
  });
}

/** The error of a store that is unavailable while a run is followed. */
function outOfSight({ code, message, retryAfterMs }: AppError, job: JobRecord): AppError {
  return new AppError(code, `${message} ${idOf(job)} was accepted before. ${whereItEnds(job)}`, {
    details: { jobId: job._id, ...job.subject },
    ...defined({ retryAfterMs }),
  });
}

const whereItEnds = ({ _id }: JobRecord) => `It goes on: GET /jobs/${_id} shows how it ends.`;

function toEnd({ id, finishReason, spent, citations }: RunAnswer, model: string, totalMs: number): StreamEnd {
  const { tokens, outputTokens = 0, costUsd } = spent;
  const by: Pick<ChatOutcome, "provider" | "routing"> = {
    provider: "switchyard",
    routing: { requested: model, model, provider: "switchyard", reason: "named" },
  };
  return {
    type: "end",
    ...by,
    logId: id,
    model,
    toolCalls: [],
    finishReason,
    usage: { inputTokens: tokens - outputTokens, outputTokens },
    costUsd,
    ...(citations && { citations }),
    cached: false,
    timingsMs: { total: totalMs, provider: totalMs },
  };
}

/** Most names that a response lists of what is left out. */
const MAX_IGNORED = 20;

/** Settings of a chat that a run has of its own, and their names in a request. */
const settings = {
  ...settingFields,
  temperature: "temperature",
  topP: "top_p",
  maxTokens: "max_tokens",
  tools: "tools",
  toolChoice: "tool_choice",
  responseFormat: "response_format",
  stop: "stop",
  effort: "reasoning_effort",
  reasoningSummary: "reasoning.summary",
} as const satisfies Partial<Record<keyof ChatRequest, string>>;
const names = Object.entries(settings) as [keyof typeof settings, string][]; // the literal has no other keys

/** What of a chat its run does not use: an agent and a pattern have settings and tools of their own. */
function ignoredByRun(request: ChatRequest): string[] {
  const ignored = names.flatMap(([setting, name]) => (request[setting] === undefined ? [] : [name]));
  const { compress, cache, cacheTtlSeconds } = request.options ?? {};
  if (compress || cache || cacheTtlSeconds !== undefined) ignored.push("x-svc-options");
  return [...ignored, ...toConversation(request).ignored].slice(0, MAX_IGNORED);
}

/** @throws AppError `invalid_request` where a caller wants no setting to be left out. */
function requireStrict(request: ChatRequest): void {
  if (request.options?.strict !== true) return;
  const [first] = ignoredByRun(request);
  if (first !== undefined) throw invalidRequest(first, `${request.model.slice(0, 100)} takes no ${first}.`);
}
