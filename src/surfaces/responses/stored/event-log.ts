import { AppError } from "../../../lib/errors.ts";
import { sizeInWords } from "../../../lib/size-in-words.ts";
import type { ResponseEventRecord, ResponseEventStore } from "../../../store/response-event-store.ts";
import type { BackgroundResponse, ResponseStore } from "../../../store/response-store.ts";
import { Overtaken } from "../../../store/store-errors.ts";
import type { OutputItem, ResponseEvent, ResponseObject } from "../response-schemas.ts";
import type { NumberedEvent } from "../stream.ts";
import { readOutput } from "./records.ts";

/** Events are written this often, in ms, or once they have so many bytes. */
const WRITE_EVERY_MS = 250;
const MAX_BATCH_BYTES = 256 << 10;
/** Most bytes of the events of one response. */
const MAX_BYTES = 8 << 20;
/** Attempts to write an end after all other events; each fails only when others wrote meanwhile. */
const MAX_TURNS = 50;

export type LogDeps = {
  store: { responses: ResponseStore; responseEvents: ResponseEventStore };
  /** Called when there are new events. */
  notify(job: { _id: string; tenantId: string }): void;
};

/** How the recorded events of a response end: with what it is then, and its items as they are kept. */
export type LoggedEnd = { response: ResponseObject; kept: OutputItem[]; bytes: number };

/**
 * Continues the events of a response. After an attempt that was cut, its unfinished items are ended as incomplete, and the
 * items of this one come after them: so what clients gathered stays valid. `begun` is the response as it begins.
 */
export async function openLog(deps: LogDeps, record: BackgroundResponse, begun: ResponseObject) {
  const { tenantId, _id: responseId } = record;
  const past: NumberedEvent[] = [];
  let last: ResponseEventRecord | undefined;
  for await (const one of deps.store.responseEvents.read(tenantId, responseId, 0)) {
    past.push(...parseEvents(one));
    last = one;
  }
  const { events: closing, items } = closeUnfinished(past);
  const first: ResponseEvent[] = past.length === 0 ? toFirstEvents(begun) : closing;
  return {
    /** How it ended, when an earlier attempt wrote that and died. */
    end: last && endOf(last, begun),
    /** Items that earlier attempts have begun. */
    items,
    writer: makeWriter(deps, record, { last, first: [...first, { type: "response.in_progress", response: begun }] }),
  };
}

const toFirstEvents = (begun: ResponseObject): ResponseEvent[] => {
  const response = { ...begun, status: "queued" as const };
  return [
    { type: "response.created", response },
    { type: "response.queued", response },
  ];
};

/** Writes events in turn, some together. @throws Overtaken when another worker wrote in their place. */
function makeWriter(
  deps: LogDeps,
  record: BackgroundResponse,
  { last, first }: { last: ResponseEventRecord | undefined; first: ResponseEvent[] },
) {
  let pending = first;
  let pendingBytes = 0;
  let place = { from: last?.to ?? 0, bytes: last?.bytes ?? 0 };
  let writing = Promise.resolve();
  const failed = new AbortController();
  const append = async (events: readonly ResponseEvent[], kept?: OutputItem[]) => {
    const written = toRecord(record, { events, ...place, kept });
    if (written.bytes > MAX_BYTES) {
      const message = `The events of a response in the background have ${sizeInWords(MAX_BYTES)} at most.`;
      throw new AppError("provider_failed", message);
    }
    if (!(await deps.store.responseEvents.append(written))) throw new Overtaken("This response");
    place = { from: written.to, bytes: written.bytes };
    deps.notify({ _id: record.jobId, tenantId: record.tenantId });
  };
  const write = (kept?: OutputItem[]) => {
    if (pending.length === 0) return writing;
    const events = pending;
    pending = [];
    pendingBytes = 0;
    writing = writing.then(() => append(events, kept));
    writing.catch((error: unknown) => failed.abort(error)); // the next write gets it too
    return writing;
  };
  const timer = setInterval(() => void write(), WRITE_EVERY_MS);
  return {
    /** Aborts when events could not be written. */
    signal: failed.signal,
    /** Takes the place after all other events: from now on an earlier attempt that lives is refused. */
    begin: () => write(),
    async add(events: readonly ResponseEvent[]): Promise<void> {
      for (const event of events) {
        pendingBytes += "delta" in event ? event.delta.length : 0;
        addTo(pending, event);
      }
      failed.signal.throwIfAborted();
      if (pendingBytes > MAX_BATCH_BYTES) await write();
    },
    /** Writes the event that ends the response; nothing can follow it. Returns the bytes of all events. */
    async end(event: ResponseEvent, kept: OutputItem[]): Promise<number> {
      pending.push(event);
      await write(kept);
      return place.bytes;
    },
    close: () => clearInterval(timer),
  };
}

/** Adds an event; what a model adds to the same text meanwhile is one event. */
function addTo(events: ResponseEvent[], event: ResponseEvent): void {
  const last = events.at(-1);
  if (last && "delta" in last && "delta" in event && last.type === event.type && last.item_id === event.item_id) {
    events[events.length - 1] = { ...last, delta: last.delta + event.delta };
  } else events.push(event);
}

type NewEvents = { events: readonly ResponseEvent[]; from: number; bytes: number; kept?: OutputItem[] | undefined };

function toRecord(
  { tenantId, _id: responseId, expireAt }: BackgroundResponse,
  { events, from, bytes, kept }: NewEvents,
): Omit<ResponseEventRecord, "_id"> {
  const text = JSON.stringify(events.map((event, n) => ({ ...event, sequence_number: from + n })));
  const keptText = kept && JSON.stringify(kept);
  const total = bytes + Buffer.byteLength(text) + Buffer.byteLength(keptText ?? "");
  return {
    tenantId,
    responseId,
    from,
    to: from + events.length,
    events: text,
    bytes: total,
    expireAt,
    ...(keptText === undefined ? {} : { kept: keptText }),
  };
}

/** The events of a record, as `toRecord` wrote them. */
export const parseEvents = ({ events }: ResponseEventRecord) => JSON.parse(events) as NumberedEvent[];

/** How the events end, with `erased` where that was erased; undefined while others may follow. */
function endOf(last: ResponseEventRecord, erased: ResponseObject): LoggedEnd | undefined {
  if (last.kept === undefined) return undefined;
  const end = parseEvents(last).at(-1);
  if (end === undefined || !("response" in end)) return { response: erased, kept: [], bytes: last.bytes };
  return { response: end.response, kept: readOutput(last.kept), bytes: last.bytes };
}

/** OpenAI has no event for a response that was cancelled, and its client refuses events that it does not know. */
const endTypes = {
  completed: "response.completed",
  incomplete: "response.incomplete",
  failed: "response.failed",
  cancelled: "response.incomplete",
} as const;

/** The event with which a response ends. */
function toEndEvent(response: ResponseObject): ResponseEvent {
  const { status } = response;
  if (status === "queued" || status === "in_progress") throw new TypeError("A response that ends has another status");
  return { type: endTypes[status], response };
}

/** Ends the events of a response from outside of its job, unless they have ended; returns how they end. */
export async function endLog(deps: LogDeps, record: BackgroundResponse, response: ResponseObject): Promise<LoggedEnd> {
  const { tenantId, _id: responseId } = record;
  const { responseEvents } = deps.store;
  for (let turn = 0; turn < MAX_TURNS; turn += 1) {
    const last = await responseEvents.last(tenantId, responseId);
    const ended = last && endOf(last, response);
    if (ended) return ended;
    const begun = { ...response, status: "queued" as const, completed_at: null, error: null };
    const events = [...(last ? [] : toFirstEvents(begun)), toEndEvent(response)];
    const written = toRecord(record, { events, from: last?.to ?? 0, bytes: last?.bytes ?? 0, kept: [] });
    if (!(await responseEvents.append(written))) continue;
    deps.notify({ _id: record.jobId, tenantId: record.tenantId });
    return { response, kept: [], bytes: written.bytes };
  }
  throw new AppError("unavailable", "The events of the response are written all the time.", { retryable: true });
}

type Unfinished = Map<number, OutputItem>;

/**
 * The events that end the items of an attempt that was cut, as incomplete, and how many items its events have begun. Clients
 * refuse items that have no end, and others in the places of earlier ones.
 */
function closeUnfinished(events: readonly ResponseEvent[]): { events: ResponseEvent[]; items: number } {
  const unfinished: Unfinished = new Map();
  let items = 0;
  for (const event of events) {
    if (!("output_index" in event)) continue;
    items = Math.max(items, event.output_index + 1);
    if (event.type === "response.output_item.added") unfinished.set(event.output_index, event.item);
    else if (event.type === "response.output_item.done") unfinished.delete(event.output_index);
    else grow(unfinished, event);
  }
  const closing = [...unfinished].map(([output_index, item]): ResponseEvent => {
    return { type: "response.output_item.done", output_index, item: toIncomplete(item) };
  });
  return { events: closing, items };
}

function toIncomplete(item: OutputItem): OutputItem {
  if (item.type === "reasoning" || item.type === "mcp_approval_request") return item;
  if (item.type === "mcp_call") return { ...item, status: "failed", error: "The attempt was cut." };
  return { ...item, status: "incomplete" };
}

/** Adds to an item what one of its events says of it. */
function grow(unfinished: Unfinished, event: Extract<ResponseEvent, { output_index: number; item_id: string }>): void {
  const item = unfinished.get(event.output_index);
  const set = (grown: OutputItem) => void unfinished.set(event.output_index, grown);
  if (item?.type === "message") {
    if (event.type === "response.content_part.added") set({ ...item, content: [event.part] });
    if (event.type === "response.output_text.delta") {
      set({ ...item, content: item.content.map((part) => ({ ...part, text: part.text + event.delta })) });
    }
    if (event.type === "response.output_text.annotation.added") {
      const cite = (part: (typeof item.content)[number]) => [...part.annotations, event.annotation];
      set({ ...item, content: item.content.map((part) => ({ ...part, annotations: cite(part) })) });
    }
  } else if (item?.type === "reasoning") {
    if (event.type === "response.reasoning_summary_part.added") set({ ...item, summary: [event.part] });
    if (event.type === "response.reasoning_summary_text.delta") {
      set({ ...item, summary: item.summary.map((part) => ({ ...part, text: part.text + event.delta })) });
    }
  } else if (item?.type === "function_call" && event.type === "response.function_call_arguments.delta") {
    set({ ...item, arguments: item.arguments + event.delta });
  } else if (item?.type === "mcp_call" && event.type === "response.mcp_call_arguments.delta") {
    set({ ...item, arguments: item.arguments + event.delta });
  } else if (item?.type === "custom_tool_call" && event.type === "response.custom_tool_call_input.delta") {
    set({ ...item, input: item.input + event.delta });
  }
}
