import { type Db, type Document, MongoServerError } from "mongodb";

/** MongoDB's code of a unique value that is there already. */
export const DUPLICATE_KEY = 11000;

/**
 * Runs an `insert` or `update` command as it is, for writes that come many times a second: the driver's helpers cost twice as
 * much before the command is sent (sizes of batches, sessions, retries). So the caller retries, and keeps the command small.
 * Returns how many of its statements failed on a unique key. @throws MongoServerError for any other failure of one.
 * https://www.mongodb.com/docs/manual/reference/command/insert/
 */
export async function runWrite(db: Db, command: Document): Promise<{ duplicates: number }> {
  const reply = await db.command(command);
  const writeErrors: Document[] = reply.writeErrors ?? [];
  const failure = reply.writeConcernError ?? writeErrors.find(({ code }) => code !== DUPLICATE_KEY);
  if (failure !== undefined) throw new MongoServerError(failure);
  return { duplicates: writeErrors.length };
}
