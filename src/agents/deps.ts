import type { Composite } from "../composite/composite.ts";
import type { ToolNames } from "../definitions/tool-names.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { Waits } from "../jobs/waits.ts";
import type { Egress } from "../net/egress.ts";
import type { Rag } from "../rag/rag.ts";
import type { Store } from "../store/store.ts";
import type { GuardPolicies } from "../tenancy/guard-policies.ts";
import type { Quotas } from "../tenancy/quotas.ts";
import type { Evaluator } from "../workflows/evaluator.ts";
import type { Workflows } from "../workflows/workflows.ts";
import type { Credentials } from "./credentials.ts";

/** What agents work with. */
export type AgentsDeps = {
  store: Pick<
    Store,
    "agents" | "agentRuns" | "audit" | "approvals" | "callbacks" | "workflows" | "definitionVersions" | "documents"
  >;
  jobs: Pick<Jobs, "submit" | "find" | "statesOf" | "expectChildren">;
  waits: Pick<Waits, "begin" | "isOver">;
  /** Evaluates the rules of approvals. */
  evaluator: Pick<Evaluator, "holds" | "checkRules">;
  gateway: Pick<Gateway, "complete" | "findModel" | "resolveModel" | "requireBudget" | "runBudgets">;
  rag: Pick<Rag, "query" | "requireCollections">;
  composite: Pick<Composite, "accept" | "spentOf">;
  workflows: Pick<Workflows, "accept" | "runOf" | "get">;
  /** How tools call other servers. */
  egress: Egress;
  credentials: Credentials;
  toolNames: ToolNames;
  quotas: Pick<Quotas, "check">;
  guards: Pick<GuardPolicies, "take" | "requireClear">;
};
