import { isRegulated } from "../composite/profiles.ts";
import {
  callbackOf,
  errorOf,
  firstLine,
  makeRunList,
  mayHaveEnded,
  newRun,
  type RunRequest,
  sumSpent,
  takeRun,
} from "../definitions/runs.ts";
import { agentRunsQueue } from "../jobs/queues.ts";
import { defineWork, recordsOf, submitWork, type Work } from "../jobs/work.ts";
import { defined } from "../lib/defined.ts";
import { notFound } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import type { AgentRunRecord, OpenAgentRun } from "../store/agent-run-store.ts";
import type { AuditEntry } from "../store/audit-store.ts";
import type { JobRecord } from "../store/job-record.ts";
import { type Caller, fromStoredCaller, maySee, starterOf } from "../tenancy/roles.ts";
import { withdrawApprovals } from "./approve-call.ts";
import { hashRun } from "./audit.ts";
import { makeAgentDefinitions } from "./definitions.ts";
import type { AgentsDeps } from "./deps.ts";
import { executeRun } from "./run.ts";
import { makeRunUsage } from "./run-usage.ts";
import { toRunSummary, toRunView } from "./run-view.ts";
import { DEFAULT_RUN_MS, type RunInput, type RunView } from "./schemas.ts";
import { guardTexts, isSearch, profilesOf } from "./tools.ts";

/** A run of an agent to accept. */
type AgentRunRequest = RunRequest<RunInput & { callback?: { url: string } | undefined }> & {
  agentId: string;
  visitor?: VisitorLimits | undefined;
};

/** A run that a visitor of a page asks for has the agent's search alone, and answers of so many tokens at most. */
export type VisitorLimits = { maxTokens: number };

export type Agents = ReturnType<typeof makeAgents>;

/** Agents and their runs, bound to what they work with. */
export function makeAgents(deps: AgentsDeps) {
  const { agentRuns, audit, agents } = deps.store;
  const accept = async (request: AgentRunRequest): Promise<{ job: JobRecord }> => {
    const record = await toRun(deps, request);
    await takeRun(deps.quotas, record);
    await agentRuns.ensure(record);
    const { isInteractive, parentJobId, parentStep, caller } = request;
    const { agentId } = record;
    const shown = { title: record.definition.name, input: firstLine(record.input) };
    const about = { ...shown, ...starterOf(caller), subject: { agentId }, parentJobId, parentStep };
    return { job: await submitWork(deps.jobs, work, { record, isInteractive, ...about }) };
  };
  const work = makeAgentWork(deps, accept);
  return {
    ...makeAgentDefinitions(deps),
    /**
     * Records a run of an agent as it is now, then submits its job.
     * @throws AppError `not_found`, `compliance_blocked`, `provider_not_configured`, `provider_key_unreadable`, `budget_exhausted`,
     * `quota_exceeded`, `unavailable`.
     */
    accept,
    work,
    /** A run with its audit log; `agentId` when it must be of that agent. @throws AppError `not_found`. */
    async runOf(caller: Caller, runId: string, agentId?: string): Promise<RunView> {
      const { tenantId } = caller;
      const run = await agentRuns.get(tenantId, runId);
      if (!run || (agentId !== undefined && run.agentId !== agentId) || !maySee(caller, run.caller.keyId))
        throw notFound("run");
      // The entries after the run: else one that ends in between would seem to have too many.
      const [job, entries] = await Promise.all([deps.jobs.find(tenantId, run.jobId), audit.list(tenantId, runId)]);
      if (!mayHaveEnded(run, job)) return toRunView(run, entries, job);
      const ended = (await agentRuns.get(tenantId, runId)) ?? run;
      return toRunView(ended, await audit.list(tenantId, runId), job);
    },
    /** The id of an agent of the tenant, by its id or its name; undefined when there is none. */
    async find(tenantId: string, { agentId, name }: { agentId?: string | undefined; name?: string | undefined }) {
      if (agentId !== undefined) return (await agents.get(tenantId, agentId))?._id;
      return name === undefined ? undefined : (await agents.idsNamed(tenantId, name, 1))[0];
    },
    /** What a run that has ended has used. */
    async spentOf(tenantId: string, runId: string) {
      const { end } = (await agentRuns.get(tenantId, runId)) ?? {};
      return end && { tokens: end.tokensUsed, costUsd: end.costUsd };
    },
    /** Guards a run as `accept` does. @throws AppError `not_found`, `compliance_blocked`, `unavailable`. */
    guard: async (request: AskedRun) => void (await findGuarded(deps, request)),
    /** The calls that a run, and those that it has called, ask people to approve; and what the run has used so far. */
    async askedBy(tenantId: string, runId: string) {
      const run = await agentRuns.get(tenantId, runId);
      const ids = (run?.awaiting ?? []).flatMap(({ approvalId }) => approvalId ?? []);
      const found = await Promise.all(ids.map((id) => deps.store.approvals.get(tenantId, id)));
      const asked = found.flatMap((approval) => {
        if (approval?.kind !== "agent" || approval.status !== "pending") return [];
        return [{ id: approval._id, name: approval.toolName, arguments: approval.arguments }];
      });
      return { asked, spent: spentIn(await audit.list(tenantId, runId)) };
    },
    /** What the audit log of a run has from the place `from` on. */
    entries: audit.list,
    /** The first regulated profile that an agent's tools use. @throws AppError `not_found`. */
    async regulatedBy(tenantId: string, agentId: string) {
      const agent = await agents.get(tenantId, agentId);
      if (!agent) throw notFound("agent");
      return profilesOf(agent.definition.tools).find(isRegulated);
    },
    runs: makeRunList(deps.jobs, { what: "agent", runs: agentRuns, definitions: agents, toSummary: toRunSummary }),
  };
}

const spentIn = (entries: readonly AuditEntry[]) =>
  sumSpent(entries.flatMap(({ content }) => ("spent" in content ? [content.spent] : [])));

/** The record of a run that is about to be accepted, after all that can be refused now was checked. */
async function toRun(deps: AgentsDeps, request: AgentRunRequest): Promise<AgentRunRecord> {
  const { agentId } = request;
  const { tenantId } = request.caller;
  const { agent, body } = await findGuarded(deps, request);
  const { definition, version: agentVersion } = agent;
  const { input, history, sessionId, context: given, budget } = body;
  const context = given && JSON.stringify(given);
  const model = await deps.gateway.resolveModel(tenantId, definition.model);
  await deps.gateway.requireBudget(tenantId, [model], request.caller);
  return defined({
    _id: newId("run"),
    ...newRun(request),
    agentId,
    agentVersion,
    definition: request.visitor ? forVisitor(definition, request.visitor) : definition,
    input: input.toWellFormed(),
    history: history?.map(({ role, content }) => ({ role, content: content.toWellFormed() })),
    sessionId,
    context: context?.toWellFormed(),
    limits: { timeoutMs: DEFAULT_RUN_MS, ...defined(budget ?? {}) },
    depth: 1,
    callback: callbackOf(request),
  });
}

type AskedRun = Pick<AgentRunRequest, "agentId" | "body"> & { caller: { tenantId: string; keyId: string } };

/**
 * The agent of a run, whose guards let its texts pass, and these as the tenant's guards let them be kept.
 * @throws AppError `not_found`, `compliance_blocked`, `unavailable`.
 */
async function findGuarded(deps: AgentsDeps, { caller: { tenantId, keyId }, agentId, body }: AskedRun) {
  const agent = await deps.store.agents.get(tenantId, agentId);
  if (!agent) throw notFound("agent");
  const { input, history = [], sessionId, context, callback } = body;
  const said = Object.fromEntries(history.map(({ content }, at) => [`history[${at}].content`, content]));
  const given = { sessionId, context: context && JSON.stringify(context), "callback.url": callback?.url };
  guardTexts(agent.definition.tools, { ...said, input, ...defined(given) });
  const whose = { tenantId, keyId, agentId };
  await deps.guards.requireClear(whose, "input", { sessionId });
  const texts = defined({ input, history: body.history, context });
  return { agent, body: { ...body, ...(await deps.guards.take(whose, "input", texts)) } };
}

function forVisitor(definition: AgentRunRecord["definition"], { maxTokens: most }: VisitorLimits) {
  const { tools, maxTokens = most } = definition;
  return { ...definition, tools: tools.filter(isSearch), maxTokens: Math.min(maxTokens, most) };
}

/** Runs of agents as durable work. */
function makeAgentWork(deps: AgentsDeps, accept: (request: AgentRunRequest) => Promise<{ job: JobRecord }>): Work {
  const { agentRuns, audit } = deps.store;
  const records = recordsOf<OpenAgentRun>(agentRuns);
  return defineWork<OpenAgentRun>({
    queue: agentRunsQueue,
    idField: "runId",
    run: (context) => executeRun(deps, context),
    ...records,
    /** By the agent as it is now. */
    async repeat({ tenantId, _id }, { caller, ...request }) {
      const old = await agentRuns.get(tenantId, _id);
      if (!old) throw notFound("run");
      const { agentId, input, history, sessionId, context, limits: budget } = old;
      const given = context === undefined ? undefined : JSON.parse(context);
      const body = defined({ input, history, sessionId, context: given, budget });
      return accept({ ...request, caller: fromStoredCaller(tenantId, caller), agentId, body });
    },
    /** Ends the run by what its audit log holds. */
    async closeOrphan(open, job) {
      if (!job) return void (await records.reject(open));
      const { tenantId, _id } = open;
      const run = await agentRuns.get(tenantId, _id);
      if (!run) return;
      await withdrawApprovals(deps.store, run);
      for (const inner of run.suspendedRuns ?? []) await agentRuns.touch(tenantId, inner); // the next sweep ends them
      const entries = await audit.list(tenantId, _id);
      const contents = entries.map(({ content }) => content);
      const { tokens, outputTokens, costUsd } = spentIn(entries);
      await agentRuns.finish(tenantId, _id, {
        status: job.status === "failed" ? "failed" : "cancelled",
        output: "",
        error: errorOf(job),
        steps: contents.filter(({ kind }) => kind === "intention" || kind === "answer").length,
        tokensUsed: tokens,
        outputTokens,
        costUsd,
        entries: entries.length,
        head: entries.at(-1)?.hash ?? hashRun(run),
        finishedAt: new Date(),
      });
      await makeRunUsage(run, deps.gateway).closeBudgets();
    },
  });
}
