import type { ChunkRecord } from "../../../src/store/chunk.ts";
import { chunkCollection } from "../../../src/store/chunk-store.ts";
import { type DocumentRecord, documentCollection } from "../../../src/store/document-record.ts";
import type { JobRecord } from "../../../src/store/job-record.ts";
import { isFinal } from "../../../src/store/job-state.ts";
import { jobCollection } from "../../../src/store/job-store.ts";
import { about, type Check, countText, type Evidence } from "./evidence.ts";
import type { Accepted } from "./load.ts";
import { ticketIn } from "./tickets.ts";
import { jobWorks } from "./work.ts";

export type JobOf = (accepted: Accepted) => JobRecord | undefined;
/** The jobs that an accepted one has started. */
export type ChildrenOf = (accepted: Accepted) => readonly JobRecord[];

/** Codes of failures that the world outside is the cause of: its provider is busy, or breaks off, now and then. */
const externalFailures = new Set(["provider_failed", "provider_timeout", "provider_rate_limited"]);

/** The promises about jobs and what they make. */
export async function checkJobs(
  evidence: Evidence,
): Promise<{ checks: Check[]; jobOf: JobOf; childrenOf: ChildrenOf }> {
  const { db, load } = evidence;
  const records = await db.collection<JobRecord>(jobCollection.name).find().toArray();
  const byId = new Map(records.flatMap((job) => [job._id, ...Object.values(job.subject)].map((id) => [id, job])));
  const jobOf: JobOf = ({ id }) => byId.get(id);
  const known = new Set(load.accepted.flatMap((accepted) => jobOf(accepted)?._id ?? []));
  const children = Map.groupBy(records, ({ parentJobId = "" }) => parentJobId);
  const childrenOf: ChildrenOf = (accepted) => children.get(jobOf(accepted)?._id ?? "none") ?? [];
  const found = load.accepted.map((accepted) => ({ accepted, job: jobOf(accepted) }));
  // The platform's own jobs, which collect the lines of batches, are of no tenant.
  const isOfTenant = new Set(evidence.tenants.map(({ tenantId }) => tenantId));
  const isKnown = ({ _id, parentJobId = _id, kind }: JobRecord) => known.has(parentJobId) || kind === "event";
  const others = records.filter((job) => isOfTenant.has(job.tenantId) && !isKnown(job));
  return {
    jobOf,
    childrenOf,
    checks: [
      {
        promise: "every accepted job ends, once",
        found: `${found.length} accepted: ${countText(found.map(({ job }) => job?.status ?? "lost"))}`,
        breaches: found.flatMap(({ accepted, job }) => judgeEnd(accepted, job) ?? []),
      },
      {
        promise: "a job that completed has its own result, a failed one its reason outside",
        found: countText(found.flatMap(({ job }) => (job?.status === "failed" ? [`${job.error?.code}`] : []))),
        breaches: found.flatMap(({ accepted, job }) => judgeResult(accepted, job) ?? []),
      },
      {
        promise: "no job but those that were accepted completes",
        found: `${others.length} refused`,
        breaches: others
          .filter(({ status, error }) => status !== "failed" || error?.code !== "unavailable")
          .map((job) => `${job._id} on ${job.queue}, which was reported to no client, is ${job.status}`),
      },
      await checkDocuments(evidence, jobOf),
    ],
  };
}

function judgeEnd(accepted: Accepted, job: JobRecord | undefined): string | undefined {
  if (!job) return `${about(accepted)} no longer exists`;
  if (job.tenantId !== accepted.tenant.tenantId) return `${about(accepted)} belongs to another tenant`;
  if (!isFinal(job.status)) return `${about(accepted)} is still ${job.status} (${job.progress.stage})`;
  const { end } = accepted;
  if (end && (end.status !== job.status || end.finishedAt !== job.finishedAt?.toISOString())) {
    return `${about(accepted)} had ended ${end.status}, and ended again ${job.status}`;
  }
  return undefined;
}

function judgeResult(accepted: Accepted, job: JobRecord | undefined): string | undefined {
  if (job?.status === "completed" && !jobWorks[accepted.work].isRight(job.result, accepted.ticket)) {
    return `${about(accepted)} has another result: ${JSON.stringify(job.result).slice(0, 200)}`;
  }
  if (job?.status === "failed" && !externalFailures.has(job.error?.code ?? "")) {
    return `${about(accepted)} failed by our own fault: ${JSON.stringify(job.error)}`;
  }
  return job?.status === "cancelled" ? `${about(accepted)} is cancelled, which no client asked for` : undefined;
}

/** Each accepted document exists once, with exactly its own chunks; nothing else exists. */
async function checkDocuments({ db, tenants, load }: Evidence, jobOf: JobOf): Promise<Check> {
  const all = await db.collection<DocumentRecord>(documentCollection.name).find().toArray();
  const reported = new Set(load.accepted.flatMap((accepted) => jobOf(accepted)?.subject.documentId ?? []));
  // A call that was refused may leave a document behind that says so, and that no list shows unless it is asked for.
  const documents = all.filter(({ _id, status }) => status !== "failed" || reported.has(_id));
  const chunks = await db
    .collection<ChunkRecord>(chunkCollection.name)
    .find({ version: { $gt: 0 } })
    .project<Pick<ChunkRecord, "documentId" | "tenantId">>({ documentId: 1, tenantId: 1 })
    .toArray();
  const chunksOf = Map.groupBy(chunks, ({ documentId }) => documentId);
  const breaches: string[] = [];
  for (const tenant of tenants) {
    const titles = documents
      .filter(({ tenantId }) => tenantId === tenant.tenantId)
      .map(({ title }) => ticketIn(title) ?? title);
    const accepted = load.accepted.filter((one) => one.tenant === tenant && one.work === "ingestion");
    const there = new Map([...Map.groupBy(titles, (title) => title)].map(([title, all]) => [title, all.length]));
    for (const one of accepted) {
      const times = there.get(one.ticket) ?? 0;
      const isRight = times === 1 || (times === 0 && jobOf(one)?.status !== "completed");
      if (!isRight) breaches.push(`document ${one.ticket} is there ${times} times`);
      there.delete(one.ticket);
    }
    for (const title of there.keys()) breaches.push(`document ${title} is there, and was never accepted`);
  }
  for (const { _id, title, status, chunks: count, tenantId } of documents) {
    const rows = chunksOf.get(_id) ?? [];
    if (status !== "indexed") breaches.push(`document ${title} is ${status}`);
    if (rows.length !== count) breaches.push(`document ${title} has ${rows.length} chunks in the store for ${count}`);
    if (rows.some((row) => row.tenantId !== tenantId)) breaches.push(`document ${title} has chunks of another tenant`);
    chunksOf.delete(_id);
  }
  for (const id of chunksOf.keys()) breaches.push(`chunks of ${id} are left, which is gone`);
  return {
    promise: "every accepted document is there once, whole",
    found: `${documents.length} documents, ${chunks.length} chunks; ${all.length - documents.length} failed ones of calls that were refused`,
    breaches,
  };
}
