import type { Composite } from "../composite/composite.ts";
import type { RunRequest, Spent } from "../definitions/runs.ts";
import type { ToolNames } from "../definitions/tool-names.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { Waits } from "../jobs/waits.ts";
import type { Egress } from "../net/egress.ts";
import type { Logger } from "../observe/logger.ts";
import type { Rag } from "../rag/rag.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { Store } from "../store/store.ts";
import type { GuardPolicies } from "../tenancy/guard-policies.ts";
import type { Quotas } from "../tenancy/quotas.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { Webhooks } from "../webhooks/webhooks.ts";
import type { Evaluator } from "./evaluator.ts";

/** Agents, as far as steps need them: they stand on a higher floor. */
type AgentsOfSteps = {
  /** The id of an agent of the tenant, by its id or its name; undefined when there is none. */
  find(tenantId: string, by: { agentId?: string | undefined; name?: string | undefined }): Promise<string | undefined>;
  accept(request: {
    caller: Caller;
    agentId: string;
    body: {
      input: string;
      context?: Record<string, unknown>;
      budget?: { maxTokens?: number | undefined; maxCostUsd?: number | undefined; timeoutMs?: number | undefined };
    };
    isInteractive: boolean;
    jobId: string;
    parentJobId: string;
    boundBy?: readonly string[];
  }): Promise<{ job: JobRecord }>;
  /** What a run that has ended has used. */
  spentOf(tenantId: string, runId: string): Promise<Spent | undefined>;
};

/** What workflows work with. */
export type WorkflowsDeps = {
  store: Pick<Store, "workflows" | "workflowRuns" | "approvals" | "callbacks" | "definitionVersions" | "waits">;
  jobs: Pick<Jobs, "submit" | "find" | "statesOf" | "cancel" | "held" | "expectChildren" | "repeated">;
  waits: Pick<Waits, "wake" | "begin">;
  agents: AgentsOfSteps;
  composite: Pick<Composite, "accept" | "spentOf">;
  /** Accepts a run of a workflow. Throws as `accept` of `workflows.ts`. */
  accept(request: RunRequest<{ input?: unknown }> & { workflowId: string }): Promise<{ job: JobRecord }>;
  /** Cancels a job of any kind, and closes its record. Throws when it has ended. */
  cancelJob(place: { tenantId: string; jobId: string }): Promise<unknown>;
  gateway: Pick<Gateway, "complete" | "findModel" | "resolveModel">;
  rag: Pick<Rag, "query" | "requireCollections">;
  webhooks: Pick<Webhooks, "deliver">;
  /** Whether an address may be called at all. */
  egress: Pick<Egress, "check">;
  quotas: Pick<Quotas, "check">;
  guards: Pick<GuardPolicies, "take">;
  toolNames: ToolNames;
  evaluator: Omit<Evaluator, "close">;
  logger: Logger;
};
