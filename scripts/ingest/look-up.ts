import type { DocumentView, IngestClient } from "./client.ts";
import { Refusal } from "./connect.ts";
import { settle } from "./load.ts";
import type { Entry, Manifest } from "./manifest.ts";
import { tryAgain } from "./try-again.ts";
import { watchJobs } from "./watch-jobs.ts";

/** Above this number documents are looked up in lists instead of one by one. */
const FEW = 50;
/** Clocks of two machines differ by less than this, in ms. */
const CLOCK_SKEW_MS = 86_400_000;
const states = ["indexed", "queued", "processing", "failed"] as const;

type LookUpDeps = { client: IngestClient; signal: AbortSignal };

/** Which of these documents, which were indexed once, the server does not have any more. @throws Refusal when it does not tell. */
export async function findMissing(deps: LookUpDeps, documentIds: readonly string[]): Promise<Set<string>> {
  const missing = new Set(documentIds);
  if (missing.size > FEW) {
    for await (const { documentId } of listDocuments(deps, "indexed")) missing.delete(documentId);
    return missing;
  }
  for (const id of documentIds) {
    const response = await ask(deps, () => deps.client.document(id));
    if (response.status !== 404) missing.delete(id);
  }
  return missing;
}

/**
 * Finds out what became of items that are gone and that a run left behind unfinished: their jobs are waited for, and the
 * documents of those that the server may have taken are looked for. So each of them is done, failed or forgotten.
 */
export async function settleGone(deps: LookUpDeps & { manifest: Manifest }, gone: readonly Entry[]): Promise<void> {
  const { client, manifest } = deps;
  const unknown = gone.filter(({ state, documentId, jobId }) => state !== "done" && !documentId && !jobId);
  const found = unknown.length === 0 ? new Map<string, DocumentView>() : await findUnknown(deps, unknown);
  for (const entry of unknown) {
    const document = found.get(entry.id);
    const { documentId, jobId } = document ?? {};
    if (document) manifest.write({ ...entry, state: "accepted", documentId, jobId });
    else manifest.write({ ...entry, state: "removed" });
  }
  const watch = watchJobs(client, () => undefined);
  const stop = () => watch.stop();
  deps.signal.addEventListener("abort", stop, { once: true });
  for (const { id } of gone) {
    const entry = manifest.find(id);
    if (entry?.state !== "accepted" || !entry.jobId) continue;
    const job = await watch.end(entry.jobId);
    deps.signal.throwIfAborted();
    await settle(deps, entry, job);
  }
  deps.signal.removeEventListener("abort", stop);
  stop();
}

/** The documents of items by the name that they were submitted with: a key of ours, or a URL. */
async function findUnknown(deps: LookUpDeps, entries: readonly Entry[]): Promise<Map<string, DocumentView>> {
  const byName = new Map(entries.flatMap(({ id, key }) => [[id, id] as const, ...(key ? [[key, id] as const] : [])]));
  const since = Math.min(...entries.map((entry) => Date.parse(entry.at))) - CLOCK_SKEW_MS;
  const hasUrls = entries.some(({ id }) => /^https?:/i.test(id)); // the document of a URL may be an old one
  const found = new Map<string, DocumentView>();
  for (const state of states) {
    for await (const document of listDocuments(deps, state)) {
      const id = byName.get(document.externalId ?? "") ?? byName.get(document.source.url ?? "");
      if (id !== undefined) found.set(id, document);
      if (!hasUrls && Date.parse(document.createdAt) < since) break;
    }
  }
  return found;
}

async function* listDocuments(deps: LookUpDeps, state: string): AsyncGenerator<DocumentView> {
  let cursor: string | undefined;
  do {
    const { body, nextCursor } = await ask(deps, () => deps.client.documentPage(state, cursor));
    yield* body as DocumentView[]; // the shape that the interface promises
    cursor = nextCursor;
  } while (cursor !== undefined);
}

/** An answer of the server, be it that there is no such thing. */
async function ask({ signal }: LookUpDeps, call: Parameters<typeof tryAgain>[0]) {
  const response = await tryAgain(call, { signal });
  signal.throwIfAborted();
  if (response?.status === 200 || response?.status === 404) return response;
  throw new Refusal(`The server does not tell what it has: ${response?.message ?? "no answer"}`);
}
