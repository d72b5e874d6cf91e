import { z } from "zod";
import { defined } from "../../lib/defined.ts";
import { AppError, invalidRequest } from "../../lib/errors.ts";
import { derivedId } from "../../lib/ids.ts";
import { Waiting } from "../pauses.ts";
import { commonFields, MAX_STEP_MS, type StepWork, stepKind, stepMs, template } from "./step.ts";

/** How long an event is waited for, in ms, unless the step says. */
const DEFAULT_EVENT_MS = 7 * 86_400_000;

const schema = z
  .strictObject({
    type: z.literal("wait"),
    ...commonFields,
    ms: stepMs,
    until: template.optional().describe("A time in ISO 8601, 30 days ahead at most"),
    event: z.string().min(1).max(200).optional().describe("The name of an event, as in `POST /events/:name`"),
    match: z.record(z.string(), z.unknown()).optional().describe("Fields that the event's data must have"),
    timeoutMs: stepMs.describe("Of an event; default 7 days. Then the step fails with `timeout`"),
  })
  .refine(({ ms, until, event }) => [ms, until, event].filter((one) => one !== undefined).length === 1, {
    message: "has exactly one of ms, until and event",
  })
  .refine(({ event, match, timeoutMs }) => event !== undefined || (match === undefined && timeoutMs === undefined), {
    message: "has match and timeoutMs for an event alone",
  });
type Wait = z.output<typeof schema>;

/** Waits for a time or an event, and holds nothing meanwhile. */
export const wait = stepKind<Wait>({
  schema,
  summary: "ms, until or event; match?, timeoutMs? of an event",
  fields: ({ until, match }) => [
    ...(until === undefined ? [] : [{ at: "until", value: until, kind: "text" as const }]),
    ...(match === undefined ? [] : [{ at: "match", value: match, kind: "value" as const }]),
  ],
  hasOwnTime: true,
  attempts: 1,
  stub(work, filled) {
    const { event } = work.step;
    const { match, until: at } = toWait(work, filled);
    const until = at.toISOString();
    const output = event === undefined ? { until } : { event, eventId: null, data: match ?? {} };
    return { output, call: { waitsFor: defined({ event, match, until }) } };
  },
  async run(work) {
    const { deps, run, place, step, attempt } = work;
    const { tenantId } = run;
    const waitId = derivedId("wait", { at: run.createdAt, from: `${run._id}:${place.path}:${attempt}` });
    const { match, until } = toWait(work, await work.fill());
    const { event: name } = step;
    const about = { tenantId, jobId: run.jobId, waitId, until };
    const found = await deps.waits.begin({ ...about, ...(name === undefined ? {} : { event: { name, match } }) });
    const isOver = async () => (await deps.store.waits.get(tenantId, waitId))?.status !== "pending";
    const at = name === undefined ? found.expiresAt.getTime() : Number.POSITIVE_INFINITY;
    if (found.status === "pending" && at > Date.now()) throw new Waiting(isOver, at);
    if (found.status === "expired") {
      throw new AppError("timeout", `The event ${name} did not come in time.`, { details: { event: name } });
    }
    if (name === undefined) return { output: { until: found.expiresAt.toISOString() } };
    const data: unknown = JSON.parse(found.data ?? "null");
    return { output: { event: name, eventId: found.eventId ?? null, data } };
  },
});

function toWait({ step, startedAt, place }: StepWork<Wait>, filled: Record<string, unknown>) {
  const { ms = step.timeoutMs ?? DEFAULT_EVENT_MS } = step;
  const match = filled.match as Record<string, unknown> | undefined; // a field of objects keeps its form
  if (step.until === undefined) return { match, until: new Date(startedAt.getTime() + ms) };
  const until = new Date(String(filled.until).trim());
  const aheadMs = until.getTime() - startedAt.getTime();
  const invalid = (message: string) => invalidRequest(`${place.field}.until`, message);
  if (Number.isNaN(aheadMs)) throw invalid("It is no time in ISO 8601.");
  if (aheadMs > MAX_STEP_MS) throw invalid("It is more than 30 days ahead.");
  return { match, until };
}
