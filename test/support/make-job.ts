import { newId } from "../../src/lib/ids.ts";
import type { JobRecord } from "../../src/store/job-record.ts";

/** The record of a job that waits, in which these fields have other values. */
export function makeJob(fields: Partial<JobRecord> = {}): JobRecord {
  return {
    _id: newId("job"),
    tenantId: "ten_jobs",
    kind: "ingestion",
    queue: "ingestion",
    payload: {},
    subject: {},
    status: "queued",
    progress: { stage: "queued", done: 0, total: 1 },
    isInteractive: false,
    priority: 1,
    attempts: 0,
    failures: 0,
    lastEventId: 0,
    createdAt: new Date(0),
    updatedAt: new Date(0),
    ...fields,
  };
}
