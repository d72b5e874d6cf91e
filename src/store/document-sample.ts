import type { Collection, Filter } from "mongodb";
import { firstIdAt, timeOfId } from "../lib/ids.ts";
import { ofTenant } from "./collection.ts";
import { type CollectionNames, inCollections } from "./collection-filter.ts";
import type { DocumentRecord } from "./document-record.ts";

export type SampledDocument = Pick<DocumentRecord, "_id" | "version">;
type Wanted = { collections: CollectionNames; count: number };

export function makeDocumentSample(documents: Collection<DocumentRecord>) {
  const indexed = (tenantId: string, collections: CollectionNames): Filter<DocumentRecord> => ({
    ...ofTenant(tenantId, { status: "indexed" as const }),
    ...inCollections(collections),
  });
  const read = (filter: Filter<DocumentRecord>, order: 1 | -1, limit: number) =>
    documents.find(filter).project<SampledDocument>({ version: 1 }).sort({ _id: order }).limit(limit);

  return {
    /** All indexed documents of some collections if there are at most `count` of them, else undefined. */
    async fewIndexed(tenantId: string, { collections, count }: Wanted): Promise<SampledDocument[] | undefined> {
      const found = await read(indexed(tenantId, collections), -1, count + 1).toArray();
      return found.length > count ? undefined : found;
    },
    /** About `count` indexed documents: the time between two of them is halved at its middle, also where many came at once. */
    async sample(tenantId: string, { collections, count }: Wanted): Promise<SampledDocument[]> {
      const wanted = indexed(tenantId, collections);
      const [[oldest], [newest]] = await Promise.all([read(wanted, 1, 1).toArray(), read(wanted, -1, 1).toArray()]);
      if (!oldest || !newest) return [];
      const found = new Map([oldest, newest].map((one) => [one._id, one]));
      const gaps = [{ from: oldest, to: newest }];
      for (const { from, to } of gaps) {
        if (found.size >= count) break;
        const middle = firstIdAt("document", new Date(Math.ceil((timeOfId(from._id) + timeOfId(to._id)) / 2)));
        const [[before = from], [after = to]] = await Promise.all([
          read({ ...wanted, _id: { $gt: from._id, $lt: middle } }, -1, 1).toArray(),
          read({ ...wanted, _id: { $gte: middle, $lt: to._id } }, 1, 1).toArray(),
        ]);
        for (const one of [before, after]) found.set(one._id, one);
        for (const gap of [
          { from, to: before },
          { from: after, to },
        ])
          if (timeOfId(gap.to._id) > timeOfId(gap.from._id)) gaps.push(gap);
      }
      return [...found.values()];
    },
  };
}
