import { type Collection, type Db, type Document, MongoServerError } from "mongodb";
import { gatherWrites } from "./gather-writes.ts";
import { isWaitOver } from "./store-errors.ts";
import { insertAgain, runWrite } from "./writes.ts";

type Created = Document & { _id: string; createdAt: Date };

/**
 * Inserts records, those that come at the same time in one write of at most `most`. When that write fails, each record is
 * inserted alone, so that one does not fail the others and the driver retries. Throws what `insertOne` throws, as the error
 * 11000 for an id that another record has.
 */
export function gatherInserts<T extends Created>(
  db: Db,
  collection: Collection<T>,
  most: number,
): (record: T) => Promise<void> {
  const insert = collection.collectionName;
  const duplicates = new WeakMap<T, MongoServerError>();
  const { add: insertGathered } = gatherWrites<T>(
    async (documents) => {
      const { writeErrors } = await runWrite(db, { insert, documents: [...documents], ordered: false });
      for (const error of writeErrors) {
        const record = documents[error.index];
        if (record) duplicates.set(record, new MongoServerError(error));
      }
    },
    { most, everyMs: 0 },
  );
  return async (record) => {
    await insertGathered(record).catch((error: unknown) => {
      if (isWaitOver(error)) throw error;
      return insertAgain(collection, record);
    });
    const duplicate = duplicates.get(record);
    if (duplicate) throw duplicate;
  };
}
