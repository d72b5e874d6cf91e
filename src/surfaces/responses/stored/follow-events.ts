import type { Jobs } from "../../../jobs/jobs.ts";
import type { ResponseEventRecord } from "../../../store/response-event-store.ts";
import type { BackgroundResponse } from "../../../store/response-store.ts";
import type { NumberedEvent } from "../stream.ts";
import { type LogDeps, parseEvents } from "./event-log.ts";

/** An announcement may be lost with Redis; the events are read anyway after this time, in ms. */
const POLL_MS = 2_000;

/** Runs a read of much when it is the caller's turn. */
export type InTurn = <T>(read: () => Promise<T>) => Promise<T>;
export type FollowOptions = { after: number; signal: AbortSignal; inTurn?: InTurn };

type FollowDeps = Pick<LogDeps, "store"> & Pick<Jobs, "watch">;

/** The events of a response after number `after`, those of one record together, until its end. Any process can continue them. */
export async function* followEvents(
  { store, watch }: FollowDeps,
  { tenantId, _id: responseId, jobId }: Pick<BackgroundResponse, "tenantId" | "_id" | "jobId">,
  { after, signal, inTurn = (read) => read() }: FollowOptions,
): AsyncGenerator<NumberedEvent[]> {
  let next = after + 1;
  const changes = await watch(tenantId, jobId);
  try {
    for (;;) {
      // Read first: when it has ended by now, all of its events are there.
      const isOpen = (await store.responses.about(tenantId, responseId))?.isOpen === true;
      const records = store.responseEvents.read(tenantId, responseId, next)[Symbol.asyncIterator]();
      try {
        for (let page = await readNext(records, { next, inTurn }); page !== null; ) {
          next = page.next;
          yield page.events;
          if (page.isEnd) return;
          page = await readNext(records, { next, inTurn });
        }
      } finally {
        await records.return?.();
      }
      if (!isOpen) return;
      await changes.next(POLL_MS, signal);
    }
  } finally {
    changes.stop();
  }
}

/** The events of the next record from number `next` on; null when there is none now. */
function readNext(records: AsyncIterator<ResponseEventRecord>, { next, inTurn }: { next: number; inTurn: InTurn }) {
  return inTurn(async () => {
    const { value: record, done } = await records.next();
    if (done) return null;
    const events = parseEvents(record).filter(({ sequence_number: number }) => number >= next);
    return { events, next: record.to, isEnd: record.kept !== undefined };
  });
}
