import {
  type Collection,
  type Db,
  type Document,
  type Filter,
  MongoError,
  MongoServerError,
  type OptionalUnlessRequiredId,
} from "mongodb";
import { gatherWrites } from "./gather-writes.ts";
import { isDuplicateKey, runWrite } from "./writes.ts";

/** After these errors the driver has waited as long as it may: another attempt would double the wait of the caller. */
const finalErrors = new Set(["MongoServerSelectionError", "MongoOperationTimeoutError"]);

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
  /** The write that failed may have brought it. */
  const insertAlone = async (record: T) => {
    try {
      await collection.insertOne(record as OptionalUnlessRequiredId<T>);
    } catch (error) {
      const { _id, createdAt } = record;
      const same = { _id, createdAt } as Filter<T>;
      if (!isDuplicateKey(error) || (await collection.findOne(same, { projection: { _id: 1 } })) === null) throw error;
    }
  };
  return async (record) => {
    await insertGathered(record).catch((error: unknown) => {
      if (error instanceof MongoError && finalErrors.has(error.name)) throw error;
      return insertAlone(record);
    });
    const duplicate = duplicates.get(record);
    if (duplicate) throw duplicate;
  };
}
