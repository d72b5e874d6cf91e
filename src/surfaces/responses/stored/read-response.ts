import type { Jobs } from "../../../jobs/jobs.ts";
import { notFound } from "../../../lib/errors.ts";
import type { ResponseEventRecord } from "../../../store/response-event-store.ts";
import type { BackgroundResponse, ResponseStore, ShownResponse } from "../../../store/response-store.ts";
import type { ResponseObject } from "../response-schemas.ts";
import type { NumberedEvent } from "../stream.ts";
import { type LogDeps, parseEvents } from "./event-log.ts";
import { toInputItemId } from "./item-ids.ts";
import { readItems, readResponse } from "./records.ts";
import { type Included, toIncluded, toShownItem } from "./views.ts";

/** How a caller reads much: `reserve` sets memory aside, `inTurn` waits for its turn. */
export type Reading = { reserve(bytes: number): void; inTurn: InTurn };
/** Texts of a response above this are read in turn, in bytes. */
export const LARGE_BYTES = 256 << 10;

/** The reads of stored responses, of which each takes what it shows alone. */
export function makeReads(responses: Pick<ResponseStore, "shown" | "withoutTexts" | "texts">) {
  return {
    /** A stored response; with its reasoning where it is to go back, and with what its searches found. @throws AppError `not_found`. */
    async get(tenantId: string, id: string, included: Included = nothingMore): Promise<ResponseObject> {
      return toShown(found(await responses.shown(tenantId, id)), included);
    },
    /** The same when it is the caller's turn, with memory for it set aside. @throws AppError also what `reading` throws. */
    async read(tenantId: string, id: string, { reserve, inTurn, ...included }: Included & Reading) {
      const { bytes } = found(await responses.withoutTexts(tenantId, id));
      const size = bytes.response + bytes.output;
      const read = async () => toShown(found(await responses.shown(tenantId, id)), included);
      if (size <= LARGE_BYTES) return read();
      reserve(size);
      return inTurn(read);
    },
    /** The items of the input of a response, in their order. @throws AppError `not_found`. */
    async inputItems(tenantId: string, id: string, isSealedShown: boolean) {
      const { input } = found((await responses.texts(tenantId, [id], ["input"])).get(id) ?? null);
      return readItems(input).map((item, place) =>
        toShownItem({ id: toInputItemId(id, item, place), item, isSealedShown }),
      );
    },
  };
}

/** @throws AppError `not_found`. */
export function found<T>(record: T | null): T {
  if (record === null) throw notFound("response");
  return record;
}

/** What is shown to those who ask for no more. */
export const nothingMore: Included = { isSealedShown: false, areResultsShown: false };

/** A response as its caller gets it. */
export function toShown(
  record: Pick<ShownResponse, "response" | "output"> & { startedAt?: Date },
  included: Included,
): ResponseObject {
  const response = readResponse(record);
  const { status } = response;
  return {
    ...response,
    status: status === "queued" && record.startedAt !== undefined ? "in_progress" : status,
    output: response.output.map((item) => toIncluded(item, included)),
  };
}

/** An announcement may be lost with Redis; the events are read anyway after this time, in ms. */
const POLL_MS = 2_000;

/** Runs a read of much when it is the caller's turn. */
type InTurn = <T>(read: () => Promise<T>) => Promise<T>;
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
