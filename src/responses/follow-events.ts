import type { NumberedEvent } from "../gateway/responses/stream.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { BackgroundResponse } from "../store/response-store.ts";
import { type LogDeps, parseEvents } from "./event-log.ts";

/** An announcement may be lost with Redis; the events are read anyway after this time, in ms. */
const POLL_MS = 2_000;

type FollowDeps = Pick<LogDeps, "store"> & Pick<Jobs, "watch">;

/** The events of a response after number `after`, those of one record together, until its end. Any process can continue them. */
export async function* followEvents(
  { store, watch }: FollowDeps,
  { tenantId, _id: responseId, jobId }: Pick<BackgroundResponse, "tenantId" | "_id" | "jobId">,
  { after, signal }: { after: number; signal: AbortSignal },
): AsyncGenerator<NumberedEvent[]> {
  let next = after + 1;
  const changes = await watch(tenantId, jobId);
  try {
    for (;;) {
      // Read first: when it has ended by now, all of its events are there.
      const isOpen = (await store.responses.about(tenantId, responseId))?.isOpen === true;
      for await (const record of store.responseEvents.read(tenantId, responseId, next)) {
        const events = parseEvents(record).filter(({ sequence_number: number }) => number >= next);
        next = record.to;
        yield events;
        if (record.kept !== undefined) return;
      }
      if (!isOpen) return;
      await changes.next(POLL_MS, signal);
    }
  } finally {
    changes.stop();
  }
}
