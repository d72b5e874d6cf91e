import type { Jobs } from "../../../jobs/jobs.ts";
import type { FileStore } from "../../../store/file-store.ts";
import type { JobState } from "../../../store/job-state.ts";
import type { SourceStore } from "../../../store/source-store.ts";
import type { EmbedOutcome, EmbedRequest } from "../../embed.ts";
import type { GatewayCaller } from "../../money/account.ts";
import type { Batches } from "../provider/batches.ts";

/** What files and their batches work with. `pollMs`: longest pause between two looks at the lines. */
export type FileBatchDeps = {
  store: { files: FileStore; sources: SourceStore };
  jobs: Jobs;
  batches: Pick<Batches, "accept">;
  embed(caller: GatewayCaller, request: EmbedRequest): Promise<EmbedOutcome>;
  pollMs: number;
  statesOf(tenantId: string, jobIds: readonly string[]): Promise<Map<string, JobState>>;
};
