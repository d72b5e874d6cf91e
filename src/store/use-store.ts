import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { gatherWrites } from "./gather-writes.ts";

/** Kinds of bytes that a tenant keeps. They are counted at each write, since summing the records would take too long. */
type UseKind = "sources" | "responses" | "runs" | "callLogs";

/**
 * The bytes that a tenant keeps of a kind, and of runs their number; of what ends by itself a document for each hour, which
 * ends with the last of it.
 */
type UseRecord = TenantOwned & { kind: UseKind; bytes: number; records?: number; expiresAt?: Date };

export const useCollection = defineCollection<UseRecord>({
  name: "use",
  indexes: [
    { name: "tenant", key: { tenantId: 1, kind: 1 } },
    { name: "largest_call_logs", key: { bytes: 1 }, partialFilterExpression: { kind: "callLogs" } },
    { name: "expiry", key: { expiresAt: 1 }, expireAfterSeconds: 0 },
  ],
});

const HOUR_MS = 3_600_000;
/** How often what is added later is written, in ms. A crash leaves the bytes of this time uncounted. */
const LATER_MS = 250;

type UseChange = { tenantId: string; kind: UseKind; bytes: number; records?: number; expiresAt?: Date };

export type UseStore = ReturnType<typeof makeUseStore>;

/** What is written in two steps, the bytes and then their number: a process that ends between the two counts too few, or removed ones still. */
export function makeUseStore(db: Db) {
  const uses = db.collection<UseRecord>(useCollection.name);
  /** Adds bytes; a removal adds a negative number. `expiresAt`: when the bytes expire by themselves. */
  const add = async (change: UseChange): Promise<void> => {
    const { tenantId, kind, bytes, records } = change;
    const hour = hourOf(change);
    const end = hour === undefined ? {} : { expiresAt: new Date(hour * HOUR_MS) };
    const $inc = records === undefined ? { bytes } : { bytes, records };
    const update = { $inc, $setOnInsert: { tenantId, kind, ...end } };
    await uses.updateOne({ _id: idOf(change) }, update, { upsert: true });
  };
  const gathered = gatherWrites<UseChange>((changes) => Promise.all(merge(changes).map(add)), {
    most: Number.POSITIVE_INFINITY,
    everyMs: LATER_MS,
  });
  let adding: Promise<void> | undefined;
  let added = Promise.resolve();
  /** Writes the waiting additions. Resolves when all earlier additions are written. */
  const settle = (): Promise<void> => {
    gathered.hurry();
    return added;
  };
  const sum = async (tenantId: string, kind: UseKind, field: "bytes" | "records") => {
    await settle();
    let total = 0;
    for await (const use of uses.find(ofTenant(tenantId, { kind }))) total += use[field] ?? 0;
    return Math.max(0, total);
  };
  return {
    add,
    /** Adds several at once; those of one document in one write. */
    addAll: async (changes: readonly UseChange[]): Promise<void> => void (await Promise.all(merge(changes).map(add))),
    /** Adds bytes with others that come within a moment, in one write for each document; nothing waits for it. */
    addLater(change: UseChange): void {
      const written = gathered.add(change);
      if (written === adding) return; // with the one before it
      adding = written;
      added = written.catch(() => undefined); // too few bytes are counted, as after a crash
    },
    /** Resolves when what was added before is written; what waits for others is written at once. */
    settled: settle,
    /** The bytes that a tenant keeps. */
    bytes: (tenantId: string, kind: UseKind): Promise<number> => sum(tenantId, kind, "bytes"),
    /** How many records they are, of kinds whose records are counted. */
    records: (tenantId: string, kind: UseKind): Promise<number> => sum(tenantId, kind, "records"),
    /** Tenants whose call logs have more bytes than `limit`, with these bytes: at most `most`, the largest first. */
    callLogsAbove: (limit: number, most: number): Promise<Pick<UseRecord, "tenantId" | "bytes">[]> =>
      uses
        .find({ kind: "callLogs", bytes: { $gt: limit } })
        .sort({ bytes: -1 })
        .limit(most)
        .toArray(),
  };
}

const hourOf = ({ expiresAt }: UseChange) => expiresAt && Math.ceil(expiresAt.getTime() / HOUR_MS);

/** The document that a change is added to. */
function idOf(change: UseChange): string {
  const hour = hourOf(change);
  return `${change.tenantId}:${change.kind}${hour === undefined ? "" : `:${hour}`}`;
}

/** Merges changes of the same document. */
function merge(changes: readonly UseChange[]): UseChange[] {
  const sums = new Map<string, UseChange>();
  let last: UseChange | undefined;
  for (const change of changes) {
    // Most are of the same document as the one before, and to name it costs more than the rest.
    const sum = last && isOfSame(last, change) ? last : sums.get(idOf(change));
    last = sum ?? { ...change };
    if (sum === undefined) sums.set(idOf(change), last);
    else {
      sum.bytes += change.bytes;
      if (change.records !== undefined) sum.records = (sum.records ?? 0) + change.records;
    }
  }
  return [...sums.values()];
}

const isOfSame = (one: UseChange, other: UseChange) =>
  one.tenantId === other.tenantId && one.kind === other.kind && hourOf(one) === hourOf(other);
