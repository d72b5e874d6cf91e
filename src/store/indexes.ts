import type { Db } from "mongodb";
import type { CollectionDeclaration } from "./collection.ts";

/** What `createIndexes` needs of a declaration; the shape of the documents does not matter to it. */
type Declared = Pick<CollectionDeclaration<never>, "name" | "indexes">;

/** Creates every declared collection and index that does not exist yet. Safe to run in many processes at once. */
export async function createIndexes(db: Db, declarations: readonly Declared[]): Promise<void> {
  for (const { name, indexes } of declarations) {
    if (indexes.length > 0) await db.collection(name).createIndexes([...indexes]);
  }
}
