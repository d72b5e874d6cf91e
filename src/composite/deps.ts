import { notFound } from "../errors.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { ExecutionRecord, ExecutionStore } from "../store/execution-store.ts";
import type { PatternId } from "./patterns.ts";
import type { ProfileId } from "./profiles.ts";
import type { CompositeResult } from "./schemas.ts";

/** What composite runs work with. */
export type CompositeDeps = {
  store: { executions: ExecutionStore };
  jobs: Pick<Jobs, "submit" | "find">;
  gateway: Pick<Gateway, "complete" | "usableModels" | "resolveModel" | "requireBudget">;
};

/** A run as it is recorded here; the store does not know which patterns and profiles there are. */
export type CompositeRun = ExecutionRecord & { pattern: PatternId; profile: ProfileId; result?: CompositeResult };

/** @throws AppError `not_found`. */
export async function findRun(
  { executions }: CompositeDeps["store"],
  tenantId: string,
  executionId: string,
): Promise<CompositeRun> {
  const execution = await executions.get(tenantId, executionId);
  if (!execution) throw notFound("execution");
  return execution as CompositeRun; // as `accept` of composite.ts recorded it
}
