import { Postponed, Suspended } from "../src/jobs/postpone.ts";
import type { JobRecord } from "../src/store/job-record.ts";
import { beginSpan, failureOf } from "../src/tracing.ts";

/**
 * Runs one try of a job as a part of the trace that submitted it. Where that is, stands on the record and not in BullMQ's job,
 * so that a job which Redis had lost is still found in its request's trace.
 */
export async function traceJob<T>(record: JobRecord, work: () => Promise<T>): Promise<T> {
  const traced = beginSpan({
    name: `${record.queue} process`,
    kind: "CONSUMER",
    parent: { traceparent: record.trace },
    attributes: {
      "messaging.system": "bullmq",
      "messaging.operation.type": "process",
      "messaging.destination.name": record.queue,
      "messaging.message.id": record._id,
      "switchyard.tenant_id": record.tenantId,
      "switchyard.attempt": record.attempts,
    },
  });
  try {
    const result = await traced.run(work);
    traced.end();
    return result;
  } catch (error) {
    const isWaiting = error instanceof Postponed || error instanceof Suspended;
    traced.end(isWaiting ? {} : { failure: failureOf(error) });
    throw error;
  }
}
