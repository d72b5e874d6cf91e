import type { ErrorView } from "../../../lib/errors.ts";
import type { BackgroundResponse } from "../../../store/response-store.ts";
import { failResponse } from "../response.ts";
import type { ResponseObject } from "../response-schemas.ts";
import { endLog, type LogDeps, type LoggedEnd } from "./event-log.ts";
import { readResponse, toTexts } from "./records.ts";

/** What responses in the background end with. `join` adds one to the conversation that it joins. */
export type CloseDeps = LogDeps & {
  join(record: BackgroundResponse, made: Pick<LoggedEnd, "response" | "kept">): Promise<void>;
};

/** Records how a response in the background has ended; false when that stood fixed already, or it is deleted. */
export async function finishResponse(
  { store, join }: CloseDeps,
  record: BackgroundResponse,
  { response, kept, bytes: events, error }: LoggedEnd & { error?: ErrorView },
): Promise<boolean> {
  // Before its end is recorded: what joined twice is there once, and what did not join would be missing from then on.
  if (response.status === "completed" || response.status === "incomplete") await join(record, { response, kept });
  const texts = toTexts(response, kept);
  const { total } = record;
  return store.responses.finish(record, {
    ...texts,
    bytes: { ...texts.bytes, input: record.bytes.input, events },
    total: { items: total.items + kept.length, bytes: total.bytes + texts.bytes.output },
    ...(error ? { error } : {}),
  });
}

/** Ends an open response from outside of its work, unless its events say that it has ended: then as they say. */
export async function closeResponse(
  deps: CloseDeps,
  record: BackgroundResponse,
  why: "cancelled" | ErrorView,
): Promise<void> {
  const begun = readResponse(record);
  const isCancelled = why === "cancelled";
  const closed: ResponseObject = isCancelled ? { ...begun, status: "cancelled" } : failResponse(begun, why);
  const end = record.isStreamed ? await endLog(deps, record, closed) : { response: closed, kept: [], bytes: 0 };
  const hasFailed = !isCancelled && end.response.status === "failed";
  if (await finishResponse(deps, record, { ...end, ...(hasFailed ? { error: why } : {}) }))
    deps.notify({ _id: record.jobId, tenantId: record.tenantId });
}
