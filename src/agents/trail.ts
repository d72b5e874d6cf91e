import type { AgentRunRecord } from "../store/agent-run-store.ts";
import type { AuditContent, AuditEntry, AuditStore } from "../store/audit-store.ts";
import { hashEntry, hashRun } from "./audit.ts";

/** The audit trail of one run, as the worker that runs it writes it. */
export type Trail = {
  /** What an earlier worker recorded, in order. */
  recorded: readonly AuditContent[];
  /** Adds an entry; entries that are added at once follow each other. @throws AppError `unavailable` when another worker did. */
  append(content: AuditContent): Promise<void>;
  /** How many entries there are, and the hash of the last one. */
  head(): { entries: number; head: string };
};

export async function openTrail(store: AuditStore, run: AgentRunRecord): Promise<Trail> {
  const { _id: runId, tenantId } = run;
  const there = await store.list(tenantId, runId);
  let head = there.at(-1)?.hash ?? hashRun(run);
  let seq = there.length;
  let last: Promise<void> = Promise.resolve();
  const write = async (content: AuditContent) => {
    const unhashed = { tenantId, runId, seq, at: new Date().toISOString(), content, previous: head };
    const entry: AuditEntry = { _id: `${runId}:${seq}`, ...unhashed, hash: hashEntry(unhashed) };
    await store.append(entry);
    head = entry.hash;
    seq += 1;
  };
  return {
    recorded: there.map(({ content }) => content),
    append(content) {
      // One after the other: each entry carries the hash of the one before. After a failure none is written any more.
      last = last.then(() => write(content));
      return last;
    },
    head: () => ({ entries: seq, head }),
  };
}
