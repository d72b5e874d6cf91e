import type { Db, Document } from "mongodb";
import { idSchema } from "../lib/ids.ts";
import { ofTenant, type TenantOwned } from "./collection.ts";
import { type DocumentRecord, documentCollection, ownSources } from "./document-record.ts";
import { fileBatchCollection, fileCollection } from "./file-store.ts";
import { makeSourceStore, type SourceHead } from "./source-store.ts";

const isId = (kind: Parameters<typeof idSchema>[0], id: string) => idSchema(kind).safeParse(id).success;

/**
 * Removes sources that no record has: the call that wrote them was cut before it wrote the record, and its tenant could neither see nor
 * delete them. Looks once at each source, a day after it was written, at no more than `limit` in a call; returns at how many. Any number
 * of processes may run it.
 */
export function makeUnownedSources(db: Db) {
  const sources = makeSourceStore(db);
  const documents = db.collection<DocumentRecord>(documentCollection.name);
  const others = [fileCollection, fileBatchCollection].map(({ name }) => db.collection<TenantOwned & Document>(name));
  const hasOwner = async ({ tenantId, documentId, ownerId = documentId }: SourceHead): Promise<boolean> => {
    const owner = ofTenant(tenantId, { _id: ownerId });
    if (isId("document", ownerId)) {
      const document = await documents.findOne(owner);
      return document !== null && ownSources(document).includes(documentId);
    }
    const found = await Promise.all(others.map((records) => records.findOne(owner, { projection: { _id: 1 } })));
    return found.some((record) => record !== null);
  };
  return async (before: Date, limit: number): Promise<number> => {
    const heads = await sources.unseen({ before, limit });
    for (const head of heads)
      await ((await hasOwner(head)) ? sources.seen(head) : sources.remove(head.tenantId, head.documentId));
    return heads.length;
  };
}
