import { slotJobId } from "../jobs/slots.ts";
import { sweepEach } from "../jobs/sweep-each.ts";
import { unlessOver, type Work } from "../jobs/work.ts";
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

/**
 * Refreshes documents whose time has come. Any number of processes may run it: the job of a time has an id of its own, and is
 * there before the document goes on to its next time, so that each time is taken once and none is lost.
 */
export async function sweepRefreshes(deps: RagDeps & { work: Work }): Promise<void> {
  const { documents } = deps.store;
  const taken = new Map<string, number>();
  await sweepEach(await documents.dueForRefresh({ before: new Date(), limit: SWEPT }), async (document) => {
    const { tenantId, _id, refreshAt = new Date() } = document;
    const jobId = slotJobId(_id, refreshAt);
    const job = await deps.jobs.find(tenantId, document.jobId);
    const isTaken = document.jobId === jobId;
    const count = (taken.get(tenantId) ?? 0) + 1;
    taken.set(tenantId, count);
    const later = () => documents.setRefresh(document, { at: new Date(Date.now() + jittered(WAIT_MS)) });
    const isAtWork = job !== null && !isFinal(job.status) && !isTaken;
    if (count > SWEPT_OF_TENANT || isAtWork) return void (await later());
    const { at, failures } = toNext(document, isTaken);
    const isGivenUp = at === undefined && document.refreshEveryHours !== undefined;
    let { jobId: lastJobId } = document;
    if (!isGone(document) && !isGivenUp && !(isTaken && job !== null)) {
      await deps.quotas.check(tenantId, "openJobs");
      const caller = { tenantId, keyId: document.keyId, subject: "schedule" };
      const given = { caller, jobId, isInteractive: false };
      if (!(await unlessOver(refreshDocument(deps, document, given)))) return; // another process, or a new source, was faster
      lastJobId = jobId;
    }
    await documents.setRefresh({ ...document, jobId: lastJobId }, { at, failures });
  });
}

/** When a document is refreshed after this time, and how often in a row that has failed. Never: it failed too often, or has no interval. */
function toNext({ refreshEveryHours, refreshJobId, ...document }: DocumentRecord, isTaken: boolean) {
  const hasFailed = !isTaken && document.error !== undefined && refreshJobId === document.jobId;
  const before = document.refreshFailures ?? 0;
  const failures = hasFailed ? before + 1 : isTaken ? before : 0;
  const isRead = refreshEveryHours !== undefined && failures < MAX_FAILURES;
  return { failures, at: isRead ? nextRefresh(refreshEveryHours) : undefined };
}

/** Documents that one step marks, and steps of one refresh. */
const MARKED = 1_000;
const MAX_STEPS = 1_000;

/** Has each document of a collection that has a URL read again soon, at the pace of `sweepRefreshes`. Returns how many. */
export async function refreshCollection({ store }: RagDeps, tenantId: string, name: string): Promise<number> {
  let count = 0;
  let after: string | undefined = "";
  for (let step = 0; step < MAX_STEPS && after !== undefined; step += 1) {
    const { marked, next }: { marked: number; next: string | undefined } = await store.documents.markForRefresh(
      tenantId,
      { name, after, limit: MARKED },
    );
    count += marked;
    after = next;
  }
  return count;
}
