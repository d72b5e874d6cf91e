import { z } from "zod";
import type { JobChanges } from "../../src/jobs/follow-tenant.ts";
import { jobSummarySchema, jobViewSchema, toJobSummary, toJobView } from "../../src/jobs/job-view.ts";
import type { JobEvent } from "../../src/jobs/jobs.ts";
import { jobKinds } from "../../src/jobs/queues.ts";
import { acceptReserved } from "../../src/jobs/submit.ts";
import { cancelWork, repeatWork, unlessOver } from "../../src/jobs/work.ts";
import { defined } from "../../src/lib/defined.ts";
import { notFound } from "../../src/lib/errors.ts";
import { idSchema, newId } from "../../src/lib/ids.ts";
import type { Platform } from "../../src/platform.ts";
import { chooseCollections, collectionNameSchema } from "../../src/rag/collections.ts";
import type { JobRecord } from "../../src/store/job-record.ts";
import { type JobState, jobStates, openStates } from "../../src/store/job-state.ts";
import { mapPage } from "../../src/store/page.ts";
import { type Caller, maySee, ownKeyOf, rootOf, toStoredCaller } from "../../src/tenancy/roles.ts";
import { filterQuery, listOf, pageQuery } from "../list-query.ts";
import { acceptedSchema, serveJob } from "../prefer.ts";
import { declareRoutes, type SseMessage } from "../route.ts";
import { named } from "../schema-names.ts";
import { formatSseMessage } from "../sse.ts";
import { modelCallErrors } from "./chat.ts";

/** Least time between two batches of a job's events, in ms: many may follow a job that changes all the time. */
const EVERY_MS = 50;

/** Jobs that one call stops or repeats at most, and that one read finds. */
const MANY = 1_000;
const PAGE = 100;

const params = z.object({ id: idSchema("job") });

const { q, ...ofDefinitionAndTime } = filterQuery;

/** Which jobs are listed, stopped or repeated. */
const filter = {
  kind: z.enum(jobKinds).optional(),
  status: z.enum(jobStates).optional(),
  ...ofDefinitionAndTime,
  collection: collectionNameSchema.optional().describe("Jobs on documents of this collection"),
  documentId: idSchema("document").optional().describe("Jobs on this document"),
  startedBy: z.string().min(1).max(200).optional().describe("The subject of the key that asked for it"),
  keyId: idSchema("apiKey").optional(),
  parentJobId: idSchema("job").optional().describe("The jobs that this one has started and waits for"),
};

const manySchema = named("JobFilter", z.strictObject(filter)); // without a text: that may look through all there are
const manyResultSchema = named(
  "ManyJobs",
  z.object({
    done: z.number().int(),
    skipped: z.number().int().describe("Those that had ended meanwhile, or cannot be repeated"),
    hasMore: z.boolean(),
  }),
);

const routes = declareRoutes({ auth: "member", tags: ["Jobs"], bodyLimit: "settings" });

export const jobRoutes = [
  routes.get("/jobs", {
    summary: "Jobs of the tenant, newest first",
    description:
      "Each without its result, which `/jobs/:id` shows. With `q`, a page looks at 5,000 jobs at most: it may have few of them, or " +
      "none, and still a `nextCursor`. A key that is limited to collections sees the jobs alone that it has started.",
    query: pageQuery("job").extend({ ...filter, q }),
    responses: { 200: { description: "A page of jobs", body: listOf(jobSummarySchema) } },
    async result({ query, caller, platform }) {
      const seen = visible(caller, query);
      if (seen === null) return { data: [], nextCursor: null };
      await platform.approvals.expireOverdue(caller.tenantId);
      return mapPage(await platform.jobs.list(caller.tenantId, seen), toJobSummary);
    },
  }),
  routes.get("/jobs/events", {
    summary: "Follow all jobs of the tenant by server-sent events",
    description:
      "An event `job` for each job that has changed, as `GET /jobs` shows it; `refresh` when more have changed than are " +
      "reported: read the list then. Nothing that happened before is repeated, so read the list after you have connected. The " +
      "stream ends when its server stops: connect again.",
    isWatch: true,
    responses: { 200: { description: "The events", events: z.union([jobSummarySchema, z.strictObject({})]) } },
    handler: ({ caller, platform, signal }) => ({
      status: 200,
      events: toChangeMessages(caller, platform.jobs.changes(caller.tenantId, signal)),
      isEager: true,
    }),
  }),
  routes.get("/jobs/:id", {
    summary: "State, progress and result of a job",
    params,
    responses: { 200: { description: "The job", body: jobViewSchema } },
    result: async ({ params: { id }, caller, platform }) => toJobView(await readJob(platform, caller, id)),
  }),
  routes.get("/jobs/:id/events", {
    summary: "Follow a job by server-sent events",
    description:
      "Events `progress` (also when only the status has changed), `step` and, at last, `end` with the job as `GET /jobs/:id` " +
      "shows it. Send `Last-Event-ID` to resume after an interruption.",
    isWatch: true,
    params,
    headers: { "Last-Event-ID": "Number of the last event that was received; the stream resumes after it" },
    responses: { 200: { description: "The events", events: z.unknown() } },
    async handler({ params: { id }, caller, platform, signal, header }) {
      await findJob(platform, caller, id); // an unknown job is a 404, before the stream begins
      const afterId = readEventId(header("last-event-id"));
      const events = platform.jobs.events(caller.tenantId, id, { signal, everyMs: EVERY_MS, ...defined({ afterId }) });
      return { status: 200, events: toMessages(events), isEager: true };
    },
  }),
  routes.post("/jobs/cancel", {
    summary: "Stop many jobs",
    description: `At most ${MANY} of those that fit the filter, the newest first; \`hasMore\` says whether there are others.`,
    body: manySchema,
    example: { kind: "workflow", status: "awaiting" },
    responses: { 200: { description: "How many were told to stop", body: manyResultSchema } },
    result: ({ body, caller, platform }) =>
      withMany(platform, caller, { ...body, states: openStates }, async (jobId) => {
        const cancel = () => cancelWork(platform.jobs, platform.works, { tenantId: caller.tenantId, jobId });
        return (await unlessOver(platform.jobs.inTurn(rootOf(caller), cancel))) !== null;
      }),
  }),
  routes.post("/jobs/retry", {
    summary: "Repeat many jobs that have failed or were cancelled",
    description:
      `At most ${MANY} of those that fit the filter, the newest first, each as \`POST /jobs/:id/retry\` does. Those that cannot be ` +
      "repeated are counted as `skipped`; those that were repeated are passed over, so that a call which is made again starts " +
      "none twice and goes on with the others.",
    body: manySchema,
    example: { kind: "agent", status: "failed" },
    responses: { 200: { description: "How many were started again", body: manyResultSchema } },
    errors: ["quota_exceeded", "too_many_concurrent"],
    result: ({ body, caller, platform }) =>
      withMany(platform, caller, { ...body, states: ["failed", "cancelled"], isRepeated: false }, async (jobId) => {
        return (await unlessOver(repeatOnce(platform, caller, jobId))) !== null;
      }),
  }),
  routes.post("/jobs/:id/retry", {
    summary: "Do again what a job that has failed, or was cancelled, was to do",
    description:
      "A new job, of a workflow's run one that keeps what that has done. 409 for a job in another state, or of a kind that cannot " +
      "be repeated so.",
    params,
    isAsync: true,
    responses: { 202: { description: "The new job", body: acceptedSchema } },
    errors: [...modelCallErrors, "wrong_state"],
    async handler(input) {
      const {
        params: { id },
        caller,
        platform,
      } = input;
      const job = await findJob(platform, caller, id);
      const given = { ...input, body: {} };
      return serveJob(given, {
        async accept({ jobId }) {
          const repeated = await repeat(platform, caller, { job, jobId });
          await platform.jobs.repeated(job, repeated.job._id);
          return repeated;
        },
        defaultWaitMs: 0,
      });
    },
  }),
  routes.post("/jobs/:id/cancel", {
    summary: "Stop a job at its next safe point",
    description: "A queued job is cancelled at once, a running one as soon as it can stop; 409 when it has ended.",
    params,
    responses: { 200: { description: "The job as it is now", body: jobViewSchema } },
    errors: ["wrong_state"],
    async result({ params: { id }, caller, platform }) {
      const { jobs, works } = platform;
      await findJob(platform, caller, id);
      const cancel = () => cancelWork(jobs, works, { tenantId: caller.tenantId, jobId: id });
      return toJobView(await jobs.inTurn(rootOf(caller), cancel));
    },
  }),
];

/** Repeats a job for a caller, under the id of the new one. @throws as `repeatWork`. */
const repeat = (
  { works }: Pick<Platform, "works">,
  caller: Caller,
  { job, jobId }: { job: JobRecord; jobId: string },
): Promise<{ job: JobRecord }> =>
  repeatWork(works, { job, caller: toStoredCaller(caller), jobId, isInteractive: false });

/** The same, once however many calls do it: each finds the job of the others. @throws also as `acceptReserved`. */
async function repeatOnce(platform: Pick<Platform, "jobs" | "works" | "quotas">, caller: Caller, id: string) {
  const { tenantId } = caller;
  const { jobs } = platform;
  const job = await jobs.get(tenantId, id);
  const jobId = await jobs.beginRepeat(job, newId("job"));
  if (jobId === null) throw notFound("job");
  const of = { tenantId, reserved: { jobId, mayBeThere: true, state: "unused" as const } };
  const accept = () => repeat(platform, caller, { job, jobId });
  const repeated = await jobs.inTurn(rootOf(caller), () => acceptReserved(platform, of, accept));
  await jobs.repeated(job, repeated._id); // also of one that a call made which was cut
}

/**
 * A filter for jobs, narrowed to those that the caller may see; null when it is for none of them.
 * @throws AppError as `chooseCollections`
 */
function visible<F extends { collection?: string | undefined; keyId?: string | undefined }>(caller: Caller, asked: F) {
  chooseCollections(caller, asked.collection);
  const keyId = ownKeyOf(caller) ?? asked.keyId;
  return asked.keyId === undefined || asked.keyId === keyId ? { ...asked, keyId } : null;
}

type Many = z.output<typeof manySchema> & { states: readonly JobState[]; isRepeated?: false };

/** Does something with each job that fits a filter, up to a bound; `work` answers whether it had an effect. */
async function withMany(
  { jobs }: Pick<Platform, "jobs">,
  caller: Caller,
  { status, states, ...asked }: Many,
  work: (jobId: string) => Promise<boolean>,
) {
  const result = { done: 0, skipped: 0, hasMore: false };
  const seen = visible(caller, asked);
  if (seen === null) return result;
  const wanted = status === undefined ? states : states.filter((state) => state === status);
  for (const state of wanted) {
    let cursor: string | undefined;
    do {
      const page = { limit: PAGE, ...seen, cursor, status: state };
      const { data, nextCursor } = await jobs.list(caller.tenantId, page);
      for (const { _id } of data) {
        if (result.done + result.skipped >= MANY) return { ...result, hasMore: true };
        if (await work(_id)) result.done += 1;
        else result.skipped += 1;
      }
      cursor = nextCursor ?? undefined;
    } while (cursor !== undefined);
  }
  return result;
}

/** A job that the caller may see. @throws AppError `not_found`, also for one that the caller must not see. */
async function findJob({ jobs }: Pick<Platform, "jobs">, caller: Caller, jobId: string): Promise<JobRecord> {
  const job = await jobs.get(caller.tenantId, jobId);
  if (!maySee(caller, job.keyId)) throw notFound("job");
  return job;
}

/**
 * A job as it is now: one that awaits a decision ends here once the time for that is over, as its run does.
 * @throws AppError `not_found`, also for one that the caller must not see.
 */
export async function readJob(
  platform: Pick<Platform, "jobs" | "approvals">,
  caller: Caller,
  jobId: string,
): Promise<JobRecord> {
  const job = await findJob(platform, caller, jobId);
  if (job.status !== "awaiting") return job;
  await platform.approvals.expireOverdue(caller.tenantId);
  return platform.jobs.get(caller.tenantId, jobId);
}

/** An id that no stream of ours sent counts as none: the stream starts at the first event. */
function readEventId(header: string | undefined): number | undefined {
  return header !== undefined && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}

/** What followers of a tenant are sent of changes that they share: written once, however many follow. */
const written = new WeakMap<JobChanges["jobs"], Buffer>();

function writeJobs(jobs: JobChanges["jobs"]): Buffer {
  const write = () => jobs.map((job) => formatSseMessage({ event: "job", data: toJobSummary(job) })).join("");
  const bytes = written.get(jobs) ?? Buffer.from(write());
  written.set(jobs, bytes);
  return bytes;
}

async function* toChangeMessages(
  caller: Caller,
  changes: AsyncIterable<JobChanges>,
): AsyncGenerator<readonly SseMessage[] | Buffer> {
  const isLimited = ownKeyOf(caller) !== undefined;
  for await (const { jobs, isPartial } of changes) {
    yield writeJobs(isLimited ? jobs.filter(({ keyId }) => maySee(caller, keyId)) : jobs);
    if (isPartial) yield [{ event: "refresh", data: {} }];
  }
}

async function* toMessages(batches: AsyncIterable<readonly JobEvent[]>): AsyncGenerator<readonly SseMessage[]> {
  for await (const events of batches) yield events.map(({ id, type, data }) => ({ id, event: type, data }));
}
