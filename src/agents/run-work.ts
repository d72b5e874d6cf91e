import { AppError, toErrorView } from "../errors.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { agentRunsQueue } from "../jobs/queues.ts";
import { recordsOf, type Work } from "../jobs/work.ts";
import type { OpenAgentRun } from "../store/agent-run-store.ts";
import { hashRun } from "./audit.ts";
import type { AgentsDeps } from "./deps.ts";
import { executeRun } from "./run.ts";

/** Runs of agents as durable work. */
export function makeAgentWork(deps: AgentsDeps): Work<OpenAgentRun> {
  const records = recordsOf<OpenAgentRun>(deps.store.agentRuns);
  return {
    queue: agentRunsQueue,
    idField: "runId",
    run: (context) => executeRun(deps, context),
    ...records,
    closeOrphan: (run, job) => (job ? close(deps, run, job) : records.reject(run)),
  };
}

/** Ends a run by what its audit trail holds. */
async function close({ store }: AgentsDeps, { tenantId, _id }: OpenAgentRun, job: JobRecord): Promise<void> {
  const run = await store.agentRuns.get(tenantId, _id);
  if (!run) return;
  const entries = await store.audit.list(tenantId, _id);
  const contents = entries.map(({ content }) => content);
  const spent = contents.flatMap((content) => ("spent" in content ? [content.spent] : []));
  await store.agentRuns.finish(tenantId, _id, {
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
