import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { defined } from "../lib/defined.ts";
import type { AgentRunRecord } from "../store/agent-run-store.ts";
import type { AuditContent, AuditEntry, AuditStore } from "../store/audit-store.ts";

/** What is wrong with an audit log, and at which place of it. */
export type Breach = { seq: number; problem: string };
export type Verification = { verified: boolean; head: string; entries: number; breach?: Breach };

type Unhashed = Omit<AuditEntry, "_id" | "hash">;

/** The SHA-256, in hex, of an object's canonical JSON (RFC 8785: sorted keys, one form for each number and text). */
function hashOf(value: object): string {
  return createHash("sha256")
    .update(String(canonicalize(value)))
    .digest("hex");
}

/** The hash of an entry, which covers that of the entry before. */
export function hashEntry({ tenantId, runId, seq, at, content, previous }: Unhashed): string {
  return hashOf({ tenantId, runId, seq, at, content, previous });
}

/** The start of a run's chain: its input, its agent, its caller and its time. */
export function hashRun(run: AgentRunRecord): string {
  const { _id: runId, tenantId, agentId, agentVersion, caller, input, history, sessionId, context, parentRunId } = run;
  const optional = defined({ history, sessionId, context, parentRunId });
  const createdAt = run.createdAt.toISOString();
  const { subject, keyId } = caller;
  return hashOf({ runId, tenantId, agentId, agentVersion, subject, keyId, input, createdAt, ...optional });
}

/**
 * Computes a run's chain again from the stored entries, and reports the first place where it is broken: an entry that was
 * changed, removed, moved or inserted, or a run whose own record was changed.
 */
export function verifyAuditLog(run: AgentRunRecord, entries: readonly AuditEntry[]): Verification {
  let head = hashRun(run);
  const broken = (seq: number, problem: string): Verification => ({
    verified: false,
    head,
    entries: entries.length,
    breach: { seq, problem },
  });
  for (const [place, entry] of entries.entries()) {
    if (entry.seq > place) return broken(place, "The entry of this place is missing.");
    if (entry.seq < place) return broken(place, "There is more than one entry of this place.");
    const isFirst =
      place === 0 ? "The run's own record was changed, or this entry was." : "The entry before was replaced.";
    if (hashEntry(entry) !== entry.hash) return broken(place, "The entry was changed.");
    if (entry.previous !== head) return broken(place, isFirst);
    head = entry.hash;
  }
  const { end } = run;
  if (end && entries.length < end.entries) return broken(entries.length, "The entry of this place is missing.");
  if (end && entries.length > end.entries) return broken(end.entries, "The entry was put in after the run's end.");
  if (end && head !== end.head)
    return broken(Math.max(0, entries.length - 1), "The last entry is not the one the run ended with.");
  return { verified: true, head, entries: entries.length };
}

export type AuditLog = Awaited<ReturnType<typeof openAuditLog>>;

/** The audit log of one run, as the worker that runs it writes it. */
export async function openAuditLog(store: AuditStore, run: AgentRunRecord) {
  const { _id: runId, tenantId } = run;
  const earlier = await store.contents(tenantId, runId);
  let head = earlier.at(-1)?.hash ?? hashRun(run);
  let seq = earlier.length;
  let last: Promise<void> = Promise.resolve();
  const write = async (content: AuditContent) => {
    const unhashed = { tenantId, runId, seq, at: new Date().toISOString(), content, previous: head };
    const entry: AuditEntry = { _id: `${runId}:${seq}`, ...unhashed, hash: hashEntry(unhashed) };
    await store.append(entry);
    head = entry.hash;
    seq += 1;
  };
  return {
    /** The entries of earlier workers, in order. */
    recorded: earlier.map(({ content }): AuditContent => content),
    /** Adds an entry; entries that are added at once follow each other. @throws AppError `unavailable` when another worker did. */
    append(content: AuditContent): Promise<void> {
      // One after the other: each entry carries the hash of the one before. After a failure no further one is written.
      last = last.then(() => write(content));
      return last;
    },
    /** How many entries there are, and the hash of the last one. */
    head: () => ({ entries: seq, head }),
  };
}
