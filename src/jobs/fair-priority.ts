/** The highest number (least urgent priority) that BullMQ takes. */
const MAX_PRIORITY = 2 ** 21 - 1;
/** Backlog of one tenant up to which its interactive jobs come before all other jobs. */
const BULK_FROM = 100_000;

/**
 * Priority of a job by start-time fair queueing: its tenant's backlog on the queue when it was submitted. A tenant's tenth
 * job thus stands beside every other tenant's tenth, however many the first one loads behind it. Lower is sooner.
 */
export function fairPriority(job: { backlog: number; isInteractive: boolean }): number {
  const position = 1 + Math.max(0, Math.floor(job.backlog));
  if (job.isInteractive) return Math.min(position, BULK_FROM - 1);
  return Math.min(BULK_FROM + position, MAX_PRIORITY);
}
