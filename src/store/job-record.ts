import type { GuardCount } from "../guards/rules.ts";
import type { ErrorView } from "../lib/errors.ts";
import type { JobState } from "./job-state.ts";

/** The kind of work that a client sees in `GET /jobs/:id`, as the job's queue names it; the store keeps it as a text. */
export type JobKind = string;

/** Something that happened in a job, for those who follow it; `id` is its event's. */
type JobStep = { id: number; data: Record<string, unknown> };
export type JobProgress = { stage: string; done: number; total: number };

/** A step of a workflow's run: its name, and its path as `2/then/0`; or a tool of an agent's, and the idempotency key of its call. */
export type StepOfRun = { id: string; path: string };

/** A job as it is stored. It holds all that is needed to make its BullMQ job again. */
export type JobRecord = {
  _id: string;
  tenantId: string;
  kind: JobKind;
  queue: string;
  payload: Record<string, unknown>;
  /** Ids of what the job makes, shown in the 202 body, as `{ documentId }`. */
  subject: Record<string, string>;
  /** What it works on, in a few words, and who asked for it; jobs of earlier releases have neither. */
  title?: string;
  startedBy?: string;
  /** The first line of what it was given, where its run keeps that. */
  input?: string;
  /** The key that asked for it: a key that is limited to collections sees its own jobs alone. */
  keyId?: string;
  status: JobState;
  progress: JobProgress;
  /** Whether a caller waits for it: interactive jobs come before bulk. */
  isInteractive: boolean;
  priority: number;
  /** Attempts that have begun. One that was lost with its worker counts too. */
  attempts: number;
  /** Attempts that ended with an error. */
  failures: number;
  /** Attempts that were taken over from a worker that lived on: it had been frozen, or cut off from the store. */
  overtaken?: number;
  /** When attempts that were lost were last taken back. */
  forgivenAt?: Date;
  /** The request that submitted it, itself or by a job; jobs that nobody asked for have none. */
  requestId?: string;
  /** The trace that submitted it, as W3C `traceparent`; its attempts are parts of that. */
  /** Set for one whose end is to be told to webhooks of its tenant, until it was. */
  isAnnounced?: true;
  trace?: string;
  /** How many calls of this service stand behind it; absent for what a client asked for. */
  depth?: number;
  /** The job whose work has submitted it and waits for its end: it is cancelled with that. */
  parentJobId?: string;
  /** The step of that job's run which has started it. */
  parentStep?: StepOfRun;
  /** Inside of how many jobs it was submitted; absent outside of any. */
  nesting?: number;
  /** Of a job with a parent, or with children: since when these may not know of its end. */
  unsettledSince?: Date;
  /** The lease under which its parent was run when a sweep looked: the worker may not have read the end. */
  seenLease?: string;
  createdAt: Date;
  updatedAt: Date;
  startedAt?: Date;
  finishedAt?: Date;
  /** Who runs it now. `token` is new at each claim and fences the earlier holder. */
  lease?: { workerId: string; token: string; expiresAt: Date };
  /** Not before this time; set while a retry waits. */
  notBefore?: Date;
  /** Hashes of the tool calls whose clients were asked for the decision that it awaits. */
  askedBy?: string[];
  cancelRequestedAt?: Date;
  /** When reconcile looks at an open job: a while after it was queued, or when its lease ends. */
  checkAt?: Date;
  /** Of one that has failed or was cancelled: the job that does it again. It is there once `isDone` says so. */
  repeat?: { jobId: string; isDone?: true };
  /** When the store forgets a job that has ended. */
  expireAt?: Date;
  /** The latest steps, in order. */
  steps?: JobStep[];
  /** Sequence number of the last event; each change that is reported to followers has one. */
  lastEventId: number;
  /** What guards have found in its texts, and in those of the request that submitted it; each attempt adds what it finds. */
  guard?: GuardCount[];
  result?: unknown;
  error?: ErrorView;
};
