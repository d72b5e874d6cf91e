import type { Collection, Filter } from "mongodb";
import { firstIdAt } from "../lib/ids.ts";
import { ofTenant } from "./collection.ts";
import { type CollectionNames, inCollections } from "./collection-filter.ts";
import type { DocumentRecord } from "./document-record.ts";

type Sampled = Pick<DocumentRecord, "_id" | "version" | "createdAt">;

export function makeDocumentSample(documents: Collection<DocumentRecord>) {
  const first = (filter: Filter<DocumentRecord>, order: 1 | -1) =>
    documents.find(filter).project<Sampled>({ version: 1, createdAt: 1 }).sort({ _id: order }).limit(1).next();
  return {
    /** At most so many indexed documents, spread over the time in which they were ingested. */
    async sample(tenantId: string, { collections, count }: { collections: CollectionNames; count: number }) {
      const wanted = { ...ofTenant(tenantId, { status: "indexed" as const }), ...inCollections(collections) };
      const [oldest, newest] = await Promise.all([first(wanted, 1), first(wanted, -1)]);
      if (!oldest || !newest) return [];
      const [from, to] = [oldest.createdAt.getTime(), newest.createdAt.getTime()];
      const found = new Map([oldest, newest].map((one) => [one._id, one]));
      for (let at = 1; at < count - 1; at += 1) {
        const time = new Date(from + ((to - from) * at) / (count - 1));
        const one = await first({ ...wanted, _id: { $gte: firstIdAt("document", time) } }, 1);
        if (one) found.set(one._id, one);
      }
      return [...found.values()];
    },
  };
}
