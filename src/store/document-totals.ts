import type { Collection } from "mongodb";
import { ofTenant } from "./collection.ts";
import { type CollectionNames, collectionOf, inCollections } from "./collection-filter.ts";
import type { DocumentRecord } from "./document-record.ts";
import type { DocumentState } from "./document-state.ts";

/** Number of documents of a collection by state. Documents whose job was cancelled do not count as failed. */
type Totals = { counts: Record<DocumentState, number>; cancelled: number; chunks: number; bytes: number };
/** The totals of each collection, by name. */
export type DocumentTotals = Record<string, Totals>;

/** The totals of an empty collection. */
export const emptyTotals = (): Totals => {
  const counts = { queued: 0, processing: 0, indexed: 0, failed: 0, deleting: 0 };
  return { counts, cancelled: 0, chunks: 0, bytes: 0 };
};

export type TotalsQuery = { collections?: CollectionNames; fileBatchId?: string };

/** Documents that are read at a time, so that other calls come between. */
const BATCH = 500;

/** Counts documents by collection and state. Also returns how many were read. */
export async function countDocuments(
  documents: Collection<DocumentRecord>,
  tenantId: string,
  { collections, fileBatchId }: TotalsQuery,
): Promise<{ totals: DocumentTotals; read: number }> {
  const filter = {
    ...ofTenant(tenantId),
    ...inCollections(collections),
    ...(fileBatchId === undefined ? {} : { fileBatchId }),
  };
  const fields = { collection: 1, status: 1, chunks: 1, "source.bytes": 1, "error.code": 1 } as const;
  type Read = Pick<DocumentRecord, "collection" | "status" | "chunks" | "source"> & { error?: { code: string } };
  const totals = new Map<string, Totals>();
  let read = 0;
  for await (const { status, chunks, source, error, ...place } of documents
    .find(filter)
    .project<Read>(fields)
    .batchSize(BATCH)) {
    read += 1;
    if (status === "deleting") continue;
    const sum = totals.get(collectionOf(place)) ?? emptyTotals();
    totals.set(collectionOf(place), sum);
    if (status === "failed" && error?.code === "cancelled") sum.cancelled += 1;
    else sum.counts[status] += 1;
    sum.chunks += status === "indexed" ? chunks : 0;
    sum.bytes += source?.bytes ?? 0;
  }
  return { totals: Object.fromEntries(totals), read };
}
