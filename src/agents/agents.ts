import { AppError, notFound, toErrorView } from "../errors.ts";
import { newId } from "../ids.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { isFinal } from "../jobs/job-state.ts";
import type { OpenAgentRun } from "../store/agent-run-store.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import type { Caller } from "../tenancy/roles.ts";
import { acceptRun } from "./accept-run.ts";
import { hashRun } from "./audit.ts";
import { type Definitions, makeDefinitions } from "./definitions.ts";
import type { AgentsDeps } from "./deps.ts";
import { executeRun } from "./run.ts";
import type { RunContext } from "./run-context.ts";
import { toRunSummary, toRunView } from "./run-view.ts";
import type { RunInput, RunResult, RunSummary, RunView } from "./schemas.ts";

/** Runs that one sweep looks at. */
const SWEPT = 100;

export type RunQuery = PageQuery & { sessionId?: string | undefined };

/** Agents and their runs, bound to what they work with. */
export type Agents = Definitions & {
  /**
   * Takes a run in: records it and submits its job, under `jobId` when given.
   * @throws AppError `not_found`, `provider_not_configured`, `budget_exhausted`, `unavailable`.
   */
  accept(
    caller: Caller,
    agentId: string,
    body: RunInput,
    isInteractive: boolean,
    jobId?: string,
  ): Promise<{ job: JobRecord; runId: string }>;
  /** The work of a job. */
  execute(context: RunContext): Promise<RunResult>;
  /** A run with its audit trail; `agentId` when it must be of that agent. @throws AppError `not_found`. */
  runOf(tenantId: string, runId: string, agentId?: string): Promise<RunView>;
  /** An agent's runs, newest first, also of one that is deleted. */
  runs(tenantId: string, agentId: string, query: RunQuery): Promise<Page<RunSummary>>;
  /** Closes runs, untouched for `olderThanMs` (30,000), whose job ended without them; answers how many it looked at. */
  sweep(olderThanMs?: number): Promise<number>;
};

export function makeAgents(deps: AgentsDeps): Agents {
  const { agentRuns, audit, agents } = deps.store;
  return {
    ...makeDefinitions(deps),
    accept: (caller, agentId, body, isInteractive, jobId = newId("job")) =>
      acceptRun(deps, { caller, agentId, body, isInteractive, jobId }),
    execute: (context) => executeRun(deps, context),
    async runOf(tenantId, runId, agentId) {
      const run = await agentRuns.get(tenantId, runId);
      if (!run || (agentId !== undefined && run.agentId !== agentId)) throw notFound("run");
      // The entries after the run: else one that ends in between would seem to have too many.
      const [job, entries] = await Promise.all([deps.jobs.find(tenantId, run.jobId), audit.list(tenantId, runId)]);
      return toRunView(run, entries, job);
    },
    async runs(tenantId, agentId, query) {
      const page = await agentRuns.list(tenantId, agentId, query);
      if (page.data.length === 0 && query.cursor === undefined && !(await agents.get(tenantId, agentId))) {
        throw notFound("agent");
      }
      const open = page.data.filter(({ end }) => end === undefined);
      const jobStates = await deps.jobs.statesOf(
        tenantId,
        open.map(({ jobId }) => jobId),
      );
      return mapPage(page, (run) => toRunSummary(run, jobStates.get(run.jobId)));
    },
    async sweep(olderThanMs = 30_000) {
      const open = await agentRuns.unfinished({ before: new Date(Date.now() - olderThanMs), limit: SWEPT });
      for (const run of open) await closeIfOver(deps, run);
      return open.length;
    },
  };
}

/** A run whose job was cancelled while it waited, was given up, or was never accepted. */
async function closeIfOver({ store: { agentRuns, audit }, jobs }: AgentsDeps, open: OpenAgentRun): Promise<void> {
  const { tenantId, _id, jobId } = open;
  const job = await jobs.find(tenantId, jobId);
  if (!job) await agentRuns.remove(tenantId, _id);
  else if (!isFinal(job.status)) await agentRuns.touch(tenantId, _id);
  else {
    const run = await agentRuns.get(tenantId, _id);
    if (!run) return;
    const entries = await audit.list(tenantId, _id);
    const contents = entries.map(({ content }) => content);
    const spent = contents.flatMap((content) => ("spent" in content ? [content.spent] : []));
    await agentRuns.finish(tenantId, _id, {
      status: job.status === "failed" ? "failed" : "cancelled",
      output: "",
      error: job.error ?? toErrorView(new AppError("cancelled", "The job was cancelled.")),
      steps: contents.filter(({ kind }) => kind === "intention" || kind === "answer").length,
      tokensUsed: spent.reduce((sum, { tokens }) => sum + tokens, 0),
      costUsd: spent.reduce((sum, { costUsd }) => sum + costUsd, 0),
      entries: entries.length,
      head: entries.at(-1)?.hash ?? hashRun(run),
      finishedAt: new Date(),
    });
  }
}
