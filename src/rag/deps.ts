import type { Gateway } from "../gateway/gateway.ts";
import type { Pace } from "../isolation/pace.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { GuardedFetch } from "../net/guarded-fetch.ts";
import type { Logger } from "../observe/logger.ts";
import type { Store } from "../store/store.ts";
import type { GuardPolicies } from "../tenancy/guard-policies.ts";
import type { Quotas } from "../tenancy/quotas.ts";
import type { EmbeddingModels } from "./embedding-models.ts";
import type { ParsePool } from "./parse-in-child.ts";

/** The dependencies of this folder's functions. */
export type RagDeps = {
  store: Pick<Store, "documents" | "chunks" | "sources" | "tenants" | "collections" | "reindexes">;
  jobs: Pick<Jobs, "submit" | "get" | "find" | "cancel">;
  gateway: Pick<
    Gateway,
    | "embed"
    | "complete"
    | "plan"
    | "answer"
    | "stream"
    | "rerank"
    | "findJudge"
    | "findWriter"
    | "defaultEmbeddingModel"
    | "checkEmbeddingModel"
    | "isSemantic"
  >;
  embeddingModels: EmbeddingModels;
  quotas: Pick<Quotas, "check">;
  guards: Pick<GuardPolicies, "take" | "forCall" | "requireClear">;
  fetcher: GuardedFetch;
  parser: ParsePool;
  /** Turns for removals and deep searches, so that many of one tenant let other tenants go first. */
  pace: Pace;
  logger: Logger;
};
