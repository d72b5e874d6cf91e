import { setTimeout as delay } from "node:timers/promises";
import { type ApiResponse, at, type DocumentView, type IngestClient, type JobView } from "./client.ts";

/** Between two looks, in ms; longer while nothing changes. */
const FIRST_LOOK_MS = 150;
const MAX_LOOK_MS = 2_000;
/** Newest jobs of one look, and jobs that are asked for one by one because the lists do not have them. */
const PAGE = 200;
const SINGLES = 20;

const ended = new Set(["completed", "failed", "cancelled"]);

export type JobWatch = {
  /** Resolves with the job when it has ended; with undefined when the watch stops first, or the server has forgotten it. */
  end(jobId: string): Promise<JobView | undefined>;
  stop(): void;
};

/**
 * Watches many jobs with few calls: a list of jobs, one of the documents that they made, and a few single calls for those
 * that the lists do not hold.
 */
export function watchJobs(client: IngestClient, onRejected: (response: ApiResponse) => void): JobWatch {
  const pending = new Map<string, (job: JobView | undefined) => void>();
  const stopping = new AbortController();
  let isLooking = false;

  const settle = (job: JobView): boolean => {
    const resolve = pending.get(job.jobId);
    if (!resolve || !ended.has(job.status)) return false;
    pending.delete(job.jobId);
    resolve(job);
    return true;
  };
  const look = async (): Promise<boolean> => {
    const asked = [...pending.keys()]; // one that comes while we look is for the next look
    const response = await client.jobs(PAGE);
    const listed = at(response.body, "data");
    if (!Array.isArray(listed)) {
      onRejected(response);
      return false;
    }
    const jobs = (listed as JobView[]).filter(({ jobId }) => pending.has(jobId)); // the shape that the interface promises
    const made = await findDocuments(jobs);
    const known = jobs.flatMap((job) => {
      if (job.status !== "completed") return [job];
      const document = made.get(job.jobId);
      return document === undefined ? [] : [{ ...job, result: document }];
    });
    const hasEnded = known.map(settle).includes(true);
    const seen = new Set(known.map(({ jobId }) => jobId));
    const others = asked.filter((jobId) => pending.has(jobId) && !seen.has(jobId)).slice(0, SINGLES);
    const singles = await Promise.all(others.map((jobId) => lookAtOne(jobId)));
    return hasEnded || singles.includes(true);
  };
  /** The documents that these jobs made, as far as they are among the newest. */
  const findDocuments = async (jobs: readonly JobView[]): Promise<Map<string, DocumentView>> => {
    if (!jobs.some(({ status }) => status === "completed")) return new Map();
    const { body } = await client.documents(PAGE);
    const documents = Array.isArray(body) ? (body as DocumentView[]) : []; // as above
    return new Map(documents.map((document) => [document.jobId, document]));
  };
  const lookAtOne = async (jobId: string): Promise<boolean> => {
    const response = await client.job(jobId);
    if (response.status === 200) return settle(response.body as JobView); // as above
    if (response.status !== 404) return false;
    pending.get(jobId)?.(undefined);
    return pending.delete(jobId);
  };
  const keepLooking = async () => {
    let waitMs = FIRST_LOOK_MS;
    while (pending.size > 0 && !stopping.signal.aborted) {
      await delay(waitMs, undefined, { signal: stopping.signal }).catch(() => undefined); // a stop ends the pause
      if (stopping.signal.aborted) break;
      waitMs = (await look()) ? FIRST_LOOK_MS : Math.min(waitMs * 1.5, MAX_LOOK_MS);
    }
    isLooking = false;
  };
  return {
    end: (jobId) =>
      new Promise((resolve) => {
        if (stopping.signal.aborted) return resolve(undefined);
        pending.set(jobId, resolve);
        if (isLooking) return;
        isLooking = true;
        void keepLooking();
      }),
    stop() {
      stopping.abort();
      for (const resolve of pending.values()) resolve(undefined);
      pending.clear();
    },
  };
}
