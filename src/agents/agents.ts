import { notFound } from "../errors.ts";
import { newId } from "../ids.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import type { Work } from "../jobs/work.ts";
import type { OpenAgentRun } from "../store/agent-run-store.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import type { Caller } from "../tenancy/roles.ts";
import { acceptRun } from "./accept-run.ts";
import { type Definitions, makeDefinitions } from "./definitions.ts";
import type { AgentsDeps } from "./deps.ts";
import { toRunSummary, toRunView } from "./run-view.ts";
import { makeAgentWork } from "./run-work.ts";
import type { RunInput, RunSummary, RunView } from "./schemas.ts";

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
  work: Work<OpenAgentRun>;
  /** A run with its audit trail; `agentId` when it must be of that agent. @throws AppError `not_found`. */
  runOf(tenantId: string, runId: string, agentId?: string): Promise<RunView>;
  /** An agent's runs, newest first, also of one that is deleted. */
  runs(tenantId: string, agentId: string, query: RunQuery): Promise<Page<RunSummary>>;
};

export function makeAgents(deps: AgentsDeps): Agents {
  const { agentRuns, audit, agents } = deps.store;
  const work = makeAgentWork(deps);
  return {
    ...makeDefinitions(deps),
    accept: (caller, agentId, body, isInteractive, jobId = newId("job")) =>
      acceptRun({ ...deps, work }, { caller, agentId, body, isInteractive, jobId }),
    work,
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
  };
}
