import type { Jobs } from "../jobs/jobs.ts";
import type { Logger } from "../observe/logger.ts";
import type { Rag } from "../rag/rag.ts";
import type { Store } from "../store/store.ts";
import type { GuardPolicies } from "../tenancy/guard-policies.ts";
import type { Quotas } from "../tenancy/quotas.ts";

/** The dependencies of this folder's functions. */
export type VectorStoreDeps = {
  store: Pick<Store, "documents" | "collections" | "files" | "chunks" | "vectorStoreBatches">;
  rag: Rag;
  jobs: Pick<Jobs, "cancel">;
  guards: Pick<GuardPolicies, "take">;
  quotas: Pick<Quotas, "check">;
  /** The files of `/v1/files`, which batches read too. */
  batches: {
    files: {
      /** @throws AppError `wrong_state` while a batch reads it. */
      requireUnused(tenantId: string, fileId: string): Promise<void>;
      removeFile(tenantId: string, fileId: string): Promise<void>;
      removeExpired(tenantId: string, fileId: string): Promise<void>;
    };
  };
  logger: Logger;
};
