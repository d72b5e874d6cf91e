import type { ToolNames } from "../definitions/tool-names.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { Waits } from "../jobs/waits.ts";
import type { Egress } from "../net/egress.ts";
import type { Logger } from "../observe/logger.ts";
import type { Rag } from "../rag/rag.ts";
import type { Store } from "../store/store.ts";
import type { GuardPolicies } from "../tenancy/guard-policies.ts";
import type { Quotas } from "../tenancy/quotas.ts";
import type { Webhooks } from "../webhooks/webhooks.ts";
import type { Evaluator } from "./evaluator.ts";

/** What workflows work with. */
export type WorkflowsDeps = {
  store: Pick<Store, "workflows" | "workflowRuns" | "approvals" | "callbacks" | "definitionVersions">;
  jobs: Pick<Jobs, "submit" | "find" | "statesOf" | "cancel" | "held">;
  waits: Pick<Waits, "wake">;
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
