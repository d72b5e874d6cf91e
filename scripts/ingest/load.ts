import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type ApiResponse, at, type IngestClient, type JobView } from "./client.ts";
import type { Item } from "./find-items.ts";
import type { Entry, Manifest } from "./manifest.ts";
import { makePace } from "./pace.ts";
import { type JobWatch, watchJobs } from "./watch-jobs.ts";

/** Attempts of one call while the server is busy, unavailable or failing. */
const MAX_ATTEMPTS = 12;
/** Waits between two attempts, in ms: doubled each time, half of it at random. */
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 15_000;

export type Outcome = "done" | "failed" | "stopped";
export type LoadDeps = {
  client: IngestClient;
  manifest: Manifest;
  concurrency: number;
  /** Aborts when the user wants to stop: submitted items stay accepted, and the next run resumes there. */
  signal: AbortSignal;
  onEnd(item: Item, outcome: Outcome, entry: Entry | undefined): void;
  /** Called with the number that go at once, when it changes. */
  onPace(limit: number): void;
};

/** Whether an earlier run has loaded this very version of an item. */
export function isLoaded(manifest: Manifest, { id, fingerprint }: Item): boolean {
  const entry = manifest.find(id);
  return entry?.state === "done" && entry.fingerprint === fingerprint;
}

/** How many noted documents are looked for before a load. */
const LOOKED_FOR = 5;

/**
 * Whether the manifest was written for another data folder or tenant at the same address: the API has none of the documents
 * that it notes as loaded last. One that is gone proves nothing, because people delete documents.
 */
export async function isOfAnotherTenant(client: IngestClient, manifest: Manifest): Promise<boolean> {
  const ids = manifest.lastLoaded(LOOKED_FOR).flatMap(({ documentId }) => documentId ?? []);
  const answers = await Promise.all(ids.map((id) => client.document(id)));
  return answers.length > 0 && answers.every(({ status }) => status === 404);
}

/** Loads items, `concurrency` at once at most, each until its job has ended; every step is in the manifest before the next. */
export async function loadItems(deps: LoadDeps, items: readonly Item[]): Promise<void> {
  const pace = makePace(deps.concurrency);
  const onRejected = (response: ApiResponse) => {
    pace.onRejected(response.retryAfterMs ?? FIRST_WAIT_MS);
    deps.onPace(pace.limit());
  };
  const watch = watchJobs(deps.client, onRejected);
  const stop = () => watch.stop();
  deps.signal.addEventListener("abort", stop, { once: true });
  if (deps.signal.aborted) stop();
  const queue = items.values();
  const work = async () => {
    for (const item of queue) {
      const outcome = await loadItem({ ...deps, pace, watch, onRejected }, item);
      deps.onEnd(item, outcome, deps.manifest.find(item.id));
      if (deps.signal.aborted) return;
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(deps.concurrency, items.length) }, work));
  } finally {
    deps.signal.removeEventListener("abort", stop);
    watch.stop();
  }
}

type ItemDeps = LoadDeps & {
  pace: ReturnType<typeof makePace>;
  watch: JobWatch;
  onRejected(response: ApiResponse): void;
};

async function loadItem(deps: ItemDeps, item: Item): Promise<Outcome> {
  const { manifest, watch, pace, signal } = deps;
  const leave = await pace.enter(signal);
  if (!leave) return "stopped";
  try {
    const before = manifest.find(item.id);
    const isSame = before?.fingerprint === item.fingerprint;
    const failures = isSame ? before.failures : 0;
    const { id, fingerprint } = item;
    const accepted = isSame && before.state === "accepted" ? before.jobId : undefined;
    const submitted = accepted === undefined ? await submit(deps, item, failures) : { jobId: accepted };
    if (submitted === undefined) return "stopped";
    if ("reason" in submitted) {
      manifest.write({ id, fingerprint, state: "failed", reason: submitted.reason, failures: failures + 1 });
      return "failed";
    }
    const { jobId } = submitted;
    // The document of the version before is replaced, once the new one is there.
    const former = isSame ? undefined : before?.documentId;
    const kept = former === undefined ? {} : { documentId: former };
    if (accepted === undefined) manifest.write({ id, fingerprint, state: "accepted", jobId, failures, ...kept });
    const job = await watch.end(jobId);
    if (signal.aborted && job === undefined) return "stopped";
    return await settle(deps, item, { jobId, job, failures, former: former ?? formerOf(before) });
  } finally {
    leave();
  }
}

/** An accepted item that a run left behind still knows the document that it replaces. */
const formerOf = (entry: Entry | undefined) => (entry?.state === "accepted" ? entry.documentId : undefined);

type Ended = { jobId: string; job: JobView | undefined; failures: number; former: string | undefined };

async function settle(deps: ItemDeps, item: Item, { jobId, job, failures, former }: Ended): Promise<Outcome> {
  const { manifest, client } = deps;
  const about = { id: item.id, fingerprint: item.fingerprint, jobId };
  if (job?.status !== "completed" || !job.result) {
    const reason = job?.error
      ? `${job.error.code}: ${job.error.message}`
      : `the job is ${job?.status ?? "not known any more"}`;
    const kept = former === undefined ? {} : { documentId: former };
    manifest.write({ ...about, ...kept, state: "failed", reason, failures: failures + 1 });
    return "failed";
  }
  const { documentId, chunks } = job.result;
  manifest.write({ ...about, state: "done", documentId, chunks, failures: 0 });
  // A URL keeps its document; a changed file has a new one. When this is cut, the old one stays: found twice, never lost.
  if (former !== undefined && former !== documentId) await client.removeDocument(former);
  return "done";
}

/** Submits until the server has taken or refused the item; undefined when the user stops before. */
async function submit(
  deps: ItemDeps,
  item: Item,
  failures: number,
): Promise<{ jobId: string } | { reason: string } | undefined> {
  const { client, pace, signal } = deps;
  const key = createHash("sha256").update(`${item.id}\n${item.fingerprint}\n${failures}`).digest("hex");
  let response: ApiResponse | undefined;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    if (signal.aborted) return undefined;
    try {
      response = await client.submit(item, `ingest-${key}`);
    } catch (error) {
      return { reason: error instanceof Error ? error.message : String(error) };
    }
    const jobId = at(response.body, "jobId") ?? at(at(at(response.body, "error"), "details"), "jobId");
    if (response.status < 300 && response.status > 0 && typeof jobId === "string") {
      pace.onAccepted();
      deps.onPace(pace.limit());
      return { jobId };
    }
    if (!mayPass(response)) break;
    if (response.status === 429) deps.onRejected(response);
    const waitMs = Math.min(FIRST_WAIT_MS * 2 ** attempt, MAX_WAIT_MS) * (0.5 + Math.random() / 2);
    await delay(Math.max(waitMs, response.retryAfterMs ?? 0), undefined, { signal }).catch(() => undefined); // a stop ends it
  }
  return { reason: response?.message ?? "it was not submitted" };
}

/** Whether the same call may succeed later: no answer, too much at once, still running under its key, or the server's fault. */
function mayPass({ status, body }: ApiResponse): boolean {
  return status === 0 || status === 429 || status >= 500 || at(at(body, "error"), "code") === "idempotency_in_progress";
}
