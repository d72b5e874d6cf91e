import { createHash, randomUUID } from "node:crypto";
import { type ApiResponse, at, type IngestClient, type JobView, type Warning } from "./client.ts";
import type { Item } from "./item.ts";
import type { Manifest, NewEntry } from "./manifest.ts";
import { makePace } from "./pace.ts";
import { tryAgain } from "./try-again.ts";
import { codeOf, hashOf } from "./walk-folder.ts";
import { type JobWatch, watchJobs } from "./watch-jobs.ts";

/** Wait after a rejection that names no time, in ms. */
const REJECTED_WAIT_MS = 500;

/** What became of an item. */
export type Outcome =
  | { kind: "done"; warnings: readonly Warning[] }
  | { kind: "failed"; reason: string }
  | { kind: "stopped" };
type LoadDeps = {
  client: IngestClient;
  manifest: Manifest;
  concurrency: number;
  /** Aborts when the user wants to stop: submitted items stay accepted, and the next run resumes there. */
  signal: AbortSignal;
  onEnd(item: Item, outcome: Outcome): void;
  /** Called with the number that go at once, when it changes. */
  onPace(limit: number): void;
};

/** Loads items, `concurrency` at once at most, each until its job has ended; every step is in the manifest before the next. */
export async function loadItems(deps: LoadDeps, items: readonly Item[]): Promise<void> {
  const pace = makePace(deps.concurrency);
  const onRejected = (waitMs: number) => {
    pace.onRejected(waitMs);
    deps.onPace(pace.limit());
  };
  const watch = watchJobs(deps.client, ({ retryAfterMs }) => onRejected(retryAfterMs ?? REJECTED_WAIT_MS));
  const stop = () => watch.stop();
  deps.signal.addEventListener("abort", stop, { once: true });
  if (deps.signal.aborted) stop();
  const queue = items.values();
  const work = async () => {
    for (const item of queue) {
      deps.onEnd(item, await loadItem({ ...deps, pace, watch, onRejected }, item));
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
  onRejected(waitMs: number): void;
};

async function loadItem(deps: ItemDeps, item: Item): Promise<Outcome> {
  const { manifest, pace, signal } = deps;
  const leave = await pace.enter(signal);
  if (!leave) return { kind: "stopped" };
  try {
    const before = manifest.find(item.id);
    const isAccepted = before?.state === "accepted" && before.fingerprint === item.fingerprint;
    const accepted = isAccepted ? before : await begin(deps, item, before);
    if ("kind" in accepted) return accepted;
    const job = await deps.watch.end(accepted.jobId ?? "");
    if (signal.aborted && job === undefined) return { kind: "stopped" };
    return await settle(deps, accepted, job);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error; // the system has codes
    return { kind: "failed", reason: `the file cannot be read: ${codeOf(error)}` };
  } finally {
    leave();
  }
}

/**
 * Notes that an item is submitted, and submits it: once it has been killed, a run finds what the server made of it by the
 * `key`. The entry of the accepted item, or what became of it instead.
 */
async function begin(deps: ItemDeps, item: Item, before: NewEntry | undefined): Promise<NewEntry | Outcome> {
  const { manifest } = deps;
  const entry = await toEntry(item, before);
  manifest.write(entry);
  const response = await submit(deps, item, entry);
  if (response?.status === 404 && entry.documentId !== undefined) {
    // It was deleted on the server: the item is loaded as a new one.
    return begin(deps, item, { ...entry, documentId: undefined, key: undefined });
  }
  if (response === undefined) return { kind: "stopped" };
  const jobId = at(response.body, "jobId") ?? at(at(at(response.body, "error"), "details"), "jobId");
  if (response.status >= 300 || typeof jobId !== "string") {
    const reason = response.message === "" ? "it was not submitted" : response.message;
    manifest.write({ ...entry, state: "failed", reason, failures: entry.failures + 1 });
    return { kind: "failed", reason };
  }
  deps.pace.onAccepted();
  deps.onPace(deps.pace.limit());
  const made = at(response.body, "documentId");
  const documentId = typeof made === "string" ? made : entry.documentId;
  const former = entry.former?.filter((id) => id !== documentId);
  const accepted: NewEntry = { ...entry, state: "accepted", jobId, documentId, former };
  manifest.write(accepted);
  return accepted;
}

/** The entry of an item that is about to be submitted: as which document, and what goes once that is there. */
async function toEntry(item: Item, before: NewEntry | undefined): Promise<NewEntry> {
  const { id, file, glob, fingerprint, source } = item;
  const isSame = before?.fingerprint === fingerprint;
  const known = before?.state === "removed" ? undefined : before;
  // A file replaces its document. A line of JSONL says what its document is, so another line is another document.
  const documentId = source.kind === "file" || (source.kind === "json" && isSame) ? known?.documentId : undefined;
  const others = [...(known?.former ?? []), known?.documentId].filter((one) => one !== undefined && one !== documentId);
  return {
    id,
    file,
    glob,
    fingerprint,
    ...(source.kind === "file" ? { hash: await hashOf(source.path) } : {}),
    state: "submitting",
    key: (known?.state === "done" ? undefined : known?.key) ?? `ingest-${randomUUID()}`,
    documentId,
    ...(others.length === 0 ? {} : { former: others.flatMap((one) => one ?? []) }),
    failures: isSame ? (known?.failures ?? 0) : 0,
  };
}

/** Whether an item has no name on the server but the one that we give it. */
function isUnnamed({ source }: Item): boolean {
  if (source.kind !== "json") return source.kind === "file";
  return !["url", "externalId", "documentId"].some((field) => field in source.body);
}

/** Submits until the server has taken or refused the item; undefined when the user stops before. */
async function submit(deps: ItemDeps, item: Item, entry: NewEntry): Promise<ApiResponse | undefined> {
  const { client, signal, onRejected } = deps;
  const { key = "", fingerprint, failures } = entry;
  const documentId = isUnnamed(item) ? entry.documentId : undefined;
  const externalId = isUnnamed(item) && documentId === undefined ? key : undefined;
  const attempt = createHash("sha256").update([key, fingerprint, failures, documentId].join("\n")).digest("hex");
  const submission = { idempotencyKey: `ingest-${attempt}`, documentId, externalId };
  return tryAgain(() => client.submit(item, submission), { signal, onRejected });
}

/** Notes how the job of an accepted item has ended. */
export async function settle(
  { client, manifest, signal }: Pick<LoadDeps, "client" | "manifest" | "signal">,
  { key: _key, former = [], ...accepted }: NewEntry,
  job: JobView | undefined,
): Promise<Outcome> {
  if (job?.status !== "completed" || !job.result) {
    const state = job?.status ?? "not known any more";
    const reason = job?.error ? `${job.error.code}: ${job.error.message}` : `the job is ${state}`;
    manifest.write({ ...accepted, former, state: "failed", reason, failures: accepted.failures + 1 });
    return { kind: "failed", reason };
  }
  const { documentId, chunks, warnings = [] } = job.result;
  // Before it is noted as done: a run that is killed here does it again.
  for (const id of [...former, accepted.documentId]) {
    if (id !== undefined && id !== documentId) await tryAgain(() => client.removeDocument(id), { signal });
  }
  manifest.write({ ...accepted, state: "done", documentId, chunks, failures: 0 });
  return { kind: "done", warnings };
}
