import type { Agents, VisitorLimits } from "../agents/agents.ts";
import type { Composite } from "../composite/composite.ts";
import type { Spent } from "../definitions/runs.ts";
import type { PlannedChat } from "../gateway/chat/plan.ts";
import type { ChatRequest } from "../gateway/chat/request.ts";
import type { ChatDelta } from "../gateway/chat/steps.ts";
import type { PlacedCitation } from "../gateway/citation.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { GatewayCaller } from "../gateway/money/account.ts";
import type { FinishReason } from "../gateway/providers/provider.ts";
import type { JobEvent, Jobs } from "../jobs/jobs.ts";
import type { ReservedJob } from "../jobs/submit.ts";
import type { Work } from "../jobs/work.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { Quotas } from "../tenancy/quotas.ts";
import type { Caller } from "../tenancy/roles.ts";

export type RunModelsDeps = {
  gateway: Pick<Gateway, "plan" | "answer" | "stream" | "ignoredBy" | "countTokens">;
  agents: Pick<
    Agents,
    "accept" | "guard" | "idOf" | "entries" | "askedBy" | "definitionOf" | "regulatedBy" | "list" | "get"
  >;
  composite: Pick<Composite, "accept" | "guard">;
  jobs: Pick<Jobs, "adopt" | "get" | "events" | "cancel" | "inTurn">;
  works: readonly Work[];
  quotas: Pick<Quotas, "check">;
  /** How long a chat waits for its run at most, in ms. */
  waitMs: number;
};

/** Who chats. `runJob`, where a call may be made again, is the job of its run: the repeat finds the run of the first attempt. */
export type ChatCaller = GatewayCaller &
  Pick<Caller, "subject" | "role" | "collections"> & {
    runJob?: ReservedJob | undefined;
    /** Set for a visitor of a page. */
    visitor?: VisitorLimits;
    /** Whether the answer ends when its run asks for approvals: the caller shows them. Else the run is waited for. */
    endsAtApproval?: true;
    /** The run that goes on, where approvals were decided on, instead of a new one. */
    resumes?: Resumed | undefined;
  };

/** A run that goes on: its job, and how many entries of its audit log were shown before. */
export type Resumed = { jobId: string; seen: number };

/** A chat that a run is to answer, and what of it no run takes. */
export type PlannedRun = { run: { caller: ChatCaller; request: ChatRequest }; ignored: readonly string[] };
/** A chat that is planned, with a model or with a run in its place. */
export type PlannedAnswer = PlannedChat | PlannedRun;

/** A run that is to answer a chat. */
export type PreparedRun = {
  /** Throws what refuses it before anything of it is kept. */
  check(): Promise<void>;
  /** Checks and submits it, under this id of its job. */
  accept(jobId: string): Promise<{ job: JobRecord }>;
  /** What happened in the run, as it is read at each event of its job. */
  makeNews(job: JobRecord): (event: JobEvent) => Promise<ChatDelta[]>;
  /** What the run answered, by the result of its job. */
  toAnswer(result: unknown): RunAnswer;
  /** What a run that waits for people has to show, and has used so far. Absent: it never does. */
  toPause?(job: JobRecord): Promise<{ asks: ChatDelta[]; answer: RunAnswer }>;
};
export type RunAnswer = {
  id: string;
  text: string;
  finishReason: FinishReason;
  spent: Spent;
  citations?: PlacedCitation[];
  isPaused?: boolean;
};
