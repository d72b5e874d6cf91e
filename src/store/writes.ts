import {
  type Collection,
  type Db,
  type Document,
  type Filter,
  MongoServerError,
  type OptionalUnlessRequiredId,
  type UpdateFilter,
  type WithId,
} from "mongodb";

/** MongoDB's code of a unique value that is there already. */
export const DUPLICATE_KEY = 11000;

/** Whether a write failed because a unique value is there already. */
export function isDuplicateKey(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === DUPLICATE_KEY;
}

/** What a write returns; null when it failed because a unique value is there already. */
export async function unlessDuplicate<R>(write: Promise<R>): Promise<R | null> {
  try {
    return await write;
  } catch (error) {
    if (isDuplicateKey(error)) return null;
    throw error;
  }
}

/** Inserts a record again, of which the write that failed may have brought it. @throws the error 11000 when another has its id. */
export async function insertAgain<T extends Document & { _id: string; createdAt?: Date }>(
  collection: Collection<T>,
  record: T,
): Promise<void> {
  try {
    await collection.insertOne(record as OptionalUnlessRequiredId<T>);
  } catch (error) {
    const { _id, createdAt } = record;
    const same = { _id, createdAt } as Filter<T>;
    const isThere = async () => (await collection.findOne(same, { projection: { _id: 1 } })) !== null;
    if (!isDuplicateKey(error) || createdAt === undefined || !(await isThere())) throw error;
  }
}

/** Inserts a document. Returns false if a document with the same unique value exists, which stays unchanged. */
export async function insertIfAbsent<T extends Document>(
  collection: Collection<T>,
  document: OptionalUnlessRequiredId<T>,
): Promise<boolean> {
  return (await unlessDuplicate(collection.insertOne(document))) !== null;
}

/** Inserts a document, or finds the existing one. @throws the driver's error 11000 if `same` finds none. */
export async function insertOrFind<T extends Document>(
  collection: Collection<T>,
  document: OptionalUnlessRequiredId<T> & T,
  same: Filter<T>,
): Promise<T> {
  try {
    await collection.insertOne(document);
    return document;
  } catch (error) {
    const found = isDuplicateKey(error) ? await collection.findOne<T>(same) : null;
    if (found) return found;
    throw error;
  }
}

/** Changes the document that matches. Returns false, and changes nothing, if none does. */
export async function updateIf<T extends Document>(
  collection: Collection<T>,
  filter: Filter<T>,
  update: UpdateFilter<T>,
): Promise<boolean> {
  return (await collection.updateOne(filter, update)).matchedCount === 1;
}

/** Changes the document that matches and returns it. Returns null, and changes nothing, if none does. */
export function changeOne<T extends Document>(
  collection: Collection<T>,
  filter: Filter<T>,
  update: UpdateFilter<T>,
): Promise<WithId<T> | null> {
  return collection.findOneAndUpdate(filter, update, { returnDocument: "after" });
}

/**
 * Runs an `insert` or `update` command as it is, for writes that come many times a second: the driver's helpers cost twice as
 * much before the command is sent (sizes of batches, sessions, retries). So the caller retries, and keeps the command small.
 * Returns how many of its statements failed on a unique key, and how. @throws MongoServerError for any other failure of one.
 * https://www.mongodb.com/docs/manual/reference/command/insert/
 */
export async function runWrite(
  db: Db,
  command: Document,
): Promise<{ duplicates: number; writeErrors: readonly Document[] }> {
  const reply = await db.command(command);
  const writeErrors: Document[] = reply.writeErrors ?? [];
  const failure = reply.writeConcernError ?? writeErrors.find(({ code }) => code !== DUPLICATE_KEY);
  if (failure !== undefined) throw new MongoServerError(failure);
  return { duplicates: writeErrors.length, writeErrors };
}
