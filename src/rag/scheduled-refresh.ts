import { sweepEach } from "../jobs/sweep-each.ts";
import type { Work } from "../jobs/work.ts";
import { newId } from "../lib/ids.ts";
import { jittered } from "../lib/jitter.ts";
import { type DocumentRecord, isGone } from "../store/document-record.ts";
import { isFinal } from "../store/job-state.ts";
import { refreshDocument } from "./accept-document.ts";
import type { RagDeps } from "./deps.ts";
import { nextRefresh } from "./refresh-times.ts";

/** Documents that one sweep looks at, and those of one tenant that it refreshes. */
const SWEPT = 200;
const SWEPT_OF_TENANT = 20;
/** How long further documents of such a tenant wait, in ms, so that the next sweep comes to others. */
const WAIT_MS = 5 * 60_000;
/** Refreshes in a row that may fail; then no more are begun. */
const MAX_FAILURES = 5;

/** Refreshes documents whose time has come. Any number of processes may run it: each time of a document is taken once. */
export async function sweepRefreshes(deps: RagDeps & { work: Work }): Promise<void> {
  const { documents } = deps.store;
  const taken = new Map<string, number>();
  await sweepEach(await documents.dueForRefresh({ before: new Date(), limit: SWEPT }), async (document) => {
    const { tenantId, refreshEveryHours = 1 } = document;
    const count = (taken.get(tenantId) ?? 0) + 1;
    taken.set(tenantId, count);
    const later = () => documents.setRefresh(document, { at: new Date(Date.now() + jittered(WAIT_MS)) });
    if (count > SWEPT_OF_TENANT || (await isAtWork(deps, document))) return void (await later());
    const hasFailed = document.error !== undefined && document.refreshJobId === document.jobId;
    const failures = hasFailed ? (document.refreshFailures ?? 0) + 1 : 0;
    const at = failures < MAX_FAILURES ? nextRefresh(refreshEveryHours) : undefined;
    if (!(await documents.setRefresh(document, { at, failures })) || !at || isGone(document)) return;
    await deps.quotas.check(tenantId, "openJobs");
    const caller = { tenantId, keyId: document.keyId, subject: "schedule" };
    await refreshDocument(deps, document, { caller, jobId: newId("job"), isInteractive: false });
  });
}

/** Whether a job of the document has not ended. */
async function isAtWork({ jobs }: Pick<RagDeps, "jobs">, { tenantId, jobId }: DocumentRecord): Promise<boolean> {
  const job = await jobs.find(tenantId, jobId);
  return job !== null && !isFinal(job.status);
}
