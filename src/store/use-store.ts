import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantDocument } from "./collection.ts";
import { gatherWrites } from "./gather-writes.ts";

/** What a tenant keeps in bytes; summing what is there would take too long, so it is counted as it is written. */
type UseKind = "sources" | "responses";

/** The bytes that a tenant keeps of a kind; of what ends by itself a document for each hour, which ends with the last of it. */
type UseDocument = TenantDocument & { kind: UseKind; bytes: number; expiresAt?: Date };

export const useCollection = defineCollection<UseDocument>({
  name: "use",
  indexes: [
    { name: "tenant", key: { tenantId: 1, kind: 1 } },
    { name: "expiry", key: { expiresAt: 1 }, expireAfterSeconds: 0 },
  ],
});

const HOUR_MS = 3_600_000;
/** How often what is added later is written, in ms: the bytes of so long are what a crash leaves uncounted. */
const LATER_MS = 40;

type Change = { tenantId: string; kind: UseKind; bytes: number; expiresAt?: Date };

export type UseStore = ReturnType<typeof makeUseStore>;

/** What is written in two steps, the bytes and then their number: a process that ends between the two counts too few. */
export function makeUseStore(db: Db) {
  const uses = db.collection<UseDocument>(useCollection.name);
  /** Adds bytes, which are negative for what was removed. `expiresAt`: when they end by themselves. */
  const add = async (change: Change): Promise<void> => {
    const { tenantId, kind, bytes } = change;
    const hour = hourOf(change);
    const end = hour === undefined ? {} : { expiresAt: new Date(hour * HOUR_MS) };
    const update = { $inc: { bytes }, $setOnInsert: { tenantId, kind, ...end } };
    await uses.updateOne({ _id: idOf(change) }, update, { upsert: true });
  };
  const addGathered = gatherWrites<Change>((changes) => Promise.all(merge(changes).map(add)), {
    most: Number.POSITIVE_INFINITY,
    everyMs: LATER_MS,
  });
  let added = Promise.resolve();
  return {
    add,
    /** The same with others that come within a moment, in one write for each document; nothing waits for it. */
    addLater(change: Change): void {
      added = addGathered(change).catch(() => undefined); // too few are counted, as of a process that ends
    },
    /** Resolves when what was added before is written. */
    settled: () => added,
    /** The bytes that a tenant keeps. */
    async bytes(tenantId: string, kind: UseKind): Promise<number> {
      await added;
      let sum = 0;
      for await (const { bytes } of uses.find(ofTenant(tenantId, { kind }))) sum += bytes;
      return Math.max(0, sum);
    },
  };
}

const hourOf = ({ expiresAt }: Change) => expiresAt && Math.ceil(expiresAt.getTime() / HOUR_MS);

/** The document that a change is added to. */
function idOf(change: Change): string {
  const hour = hourOf(change);
  return `${change.tenantId}:${change.kind}${hour === undefined ? "" : `:${hour}`}`;
}

/** Changes of one document as one. */
function merge(changes: readonly Change[]): Change[] {
  const sums = new Map<string, Change>();
  for (const change of changes) {
    const id = idOf(change);
    const sum = sums.get(id);
    if (sum) sum.bytes += change.bytes;
    else sums.set(id, { ...change });
  }
  return [...sums.values()];
}
