import type { Composite } from "../composite/composite.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { GuardedRequest } from "../net/guarded-request.ts";
import type { Rag } from "../rag/rag.ts";
import type { Store } from "../store/store.ts";
import type { Quotas } from "../tenancy/quotas.ts";
import type { Workflows } from "../workflows/workflows.ts";

/** What agents work with. */
export type AgentsDeps = {
  store: Pick<Store, "agents" | "agentRuns" | "audit" | "workflows">;
  jobs: Pick<Jobs, "submit" | "find" | "statesOf" | "wait" | "cancel">;
  gateway: Pick<Gateway, "complete" | "findModel" | "resolveModel" | "budget">;
  rag: Pick<Rag, "query">;
  composite: Pick<Composite, "accept">;
  workflows: Pick<Workflows, "start" | "runOf" | "get">;
  /** How tools reach the outside. */
  outside: GuardedRequest;
  quotas: Pick<Quotas, "check">;
};
