import { z } from "zod";
import type { CallLimit } from "../gateway/money/account.ts";
import type { Usage } from "../gateway/providers/provider.ts";
import type { Jobs } from "../jobs/jobs.ts";
import { AppError, type ErrorView, notFound, toErrorView } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import type { JobRecord, StepOfRun } from "../store/job-record.ts";
import { isFinal, type JobState } from "../store/job-state.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import { bytesOfRun, type CountedRun } from "../store/run-use.ts";
import type { Quotas } from "../tenancy/quotas.ts";
import { type Caller, ownKeyOf, rootOf, toStoredCaller } from "../tenancy/roles.ts";

/**
 * A run to accept; its job gets `jobId`, or an id of its own. `isInteractive`: the caller waits for it. `parentJobId`: the job that
 * waits for its end, and `parentStep` the step of its run that does.
 */
export type RunRequest<B> = {
  caller: Caller;
  body: B;
  isInteractive: boolean;
  jobId?: string;
  parentJobId?: string;
  parentStep?: StepOfRun;
  /** The budgets, by their ids, that bound it and all that it starts: those of the runs that have started it. */
  boundBy?: readonly string[];
};

/** How a run is accepted whose job another run starts, and waits for. */
export type ChildRequest = Required<Omit<RunRequest<unknown>, "body" | "boundBy">> &
  Pick<RunRequest<unknown>, "boundBy">;

/** What the record of every run that is about to be accepted has. */
export function newRun({ caller, jobId = newId("job"), boundBy }: RunRequest<unknown>) {
  const { tenantId } = caller;
  const now = new Date();
  const common = { tenantId, jobId, caller: toStoredCaller(caller), isOpen: true as const };
  return { ...common, ...(boundBy && { boundBy }), createdAt: now, updatedAt: now };
}

/** Where a run reports its approvals, by what its request says of its end. */
export const callbackOf = ({ caller, body }: RunRequest<{ callback?: { url: string } | undefined }>) =>
  body.callback && { url: body.callback.url, owner: rootOf(caller) };

/** Takes a run of its tenant's quotas. @throws AppError `quota_exceeded`. */
export async function takeRun(quotas: Pick<Quotas, "check">, run: { tenantId: string }): Promise<void> {
  await quotas.check(run.tenantId, "runs");
  await quotas.check(run.tenantId, "runBytes", bytesOfRun(run));
}

/** The state of a run that has not ended, by the state of its job. */
export function openRunState(job: JobState | undefined): "queued" | "running" | "failed" | "cancelled" {
  switch (job) {
    case "running":
    case "awaiting":
    case "completed": // the run's own end is about to be written
      return "running";
    case "queued":
    case "cancelled":
      return job;
    case "failed":
    case undefined:
      return "failed";
    default:
      return job satisfies never;
  }
}

/**
 * Whether a run may have ended after it was read, when its job was read later: the end of a run and its last step are
 * written before the end of its job. Such a run is to be read again.
 */
export function mayHaveEnded(run: { end?: unknown }, job: JobRecord | null): boolean {
  return run.end === undefined && job !== null && isFinal(job.status);
}

/** Which runs a list is of; `toSummary` gets the state of the job of each run that has not ended. */
type RunList<Q, R, S> = {
  what: "agent" | "workflow";
  runs: { list(tenantId: string, id: string, query: Q & { keyId: string | undefined }): Promise<Page<R>> };
  definitions: { get(tenantId: string, id: string): Promise<unknown> };
  toSummary(run: R, job: JobState | undefined): S;
};

/** Lists the runs of an agent or a workflow, newest first, also of one that is deleted; those alone that the caller may see. Throws AppError `not_found`. */
export function makeRunList<Q extends PageQuery, R extends { jobId: string; end?: unknown }, S>(
  jobs: Pick<Jobs, "statesOf">,
  { what, runs, definitions, toSummary }: RunList<Q, R, S>,
) {
  return async (caller: Caller, id: string, query: Q): Promise<Page<S>> => {
    const { tenantId } = caller;
    const page = await runs.list(tenantId, id, { ...query, keyId: ownKeyOf(caller) });
    const hasRuns = page.data.length > 0 || query.cursor !== undefined;
    if (!hasRuns && !(await definitions.get(tenantId, id))) throw notFound(what);
    const open = page.data.flatMap(({ end, jobId }) => (end === undefined ? [jobId] : []));
    const states = await jobs.statesOf(tenantId, open);
    return mapPage(page, (run) => toSummary(run, states.get(run.jobId)));
  };
}

/** The error of a run whose job ended without it. */
export function errorOf({ error }: JobRecord, what: "job" | "run" = "job"): ErrorView {
  return error ?? toErrorView(new AppError("cancelled", `The ${what} was cancelled.`));
}

/** What a step, a call or a run used. `outputTokens` are those of `tokens` that models wrote; older records have no count of them. */
export type Spent = { tokens: number; outputTokens?: number | undefined; costUsd: number };

/** How views show `outputTokens`. */
export const outputTokensSchema = z.number().int().min(0).optional().describe("Those of the tokens that models wrote");

/** What a model call used. */
export const spentOf = ({ usage, costUsd }: { usage: Usage; costUsd: number }) => {
  const { inputTokens, outputTokens } = usage;
  return { tokens: inputTokens + outputTokens, outputTokens, costUsd };
};

/** The sum, to billionths of a USD, as the ledger counts. */
export function sumSpent(all: readonly Spent[]) {
  const sum = { tokens: 0, outputTokens: 0, costUsd: 0 };
  for (const { tokens, outputTokens = 0, costUsd } of all) {
    sum.tokens += tokens;
    sum.outputTokens += outputTokens;
    sum.costUsd += costUsd;
  }
  return { ...sum, costUsd: Math.round(sum.costUsd * 1e9) / 1e9 };
}

export type UsageTracker = ReturnType<typeof makeUsageTracker>;

/**
 * Counts what a step of a run uses: its model calls by `limit`, which bounds them as the run is bound, all else by `add`. `onAdd`
 * counts it elsewhere too.
 */
export function makeUsageTracker({ boundBy }: Pick<CountedRun, "boundBy">, onAdd?: (spent: Spent) => void) {
  let total = sumSpent([]);
  const add = (spent: Spent) => {
    total = sumSpent([total, spent]);
    onAdd?.(spent);
  };
  const limit: CallLimit = { boundBy, spend: (call) => add(spentOf(call)) };
  return { limit, add, spent: () => total };
}

/** Most characters of a line that stands for a text. */
const MAX_LENGTH = 200;
/** Fields of an object that are looked at. */
const MAX_FIELDS = 8;

/**
 * The first line of a text that holds more than blanks, cut at 200 characters; of an object its fields with their first lines.
 * Undefined if there is none.
 */
export function firstLine(value: unknown): string | undefined {
  const line = typeof value === "string" ? lineOf(value) : toFields(value);
  return line === "" ? undefined : line;
}

const lineOf = (text: string): string =>
  text.trimStart().slice(0, MAX_LENGTH).split(/\r?\n/, 1).join("").trimEnd().toWellFormed();

function toFields(value: unknown): string {
  if (typeof value !== "object" || value === null) return value === undefined ? "" : lineOf(String(value));
  const fields = Object.entries(value).slice(0, MAX_FIELDS);
  const texts = fields.map(([name, field]) => `${name}: ${typeof field === "object" ? "…" : lineOf(String(field))}`);
  return lineOf(texts.join(", "));
}
