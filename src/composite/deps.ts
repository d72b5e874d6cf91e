import type { Gateway } from "../gateway/gateway.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { ExecutionStore } from "../store/execution-store.ts";

/** What composite runs work with. */
export type CompositeDeps = {
  store: { executions: ExecutionStore };
  jobs: Pick<Jobs, "submit" | "find">;
  gateway: Pick<Gateway, "complete" | "usableModels" | "resolveModel" | "findModel" | "budget">;
};
