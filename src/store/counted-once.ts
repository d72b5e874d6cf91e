import type { Db, Document, Filter } from "mongodb";
import { ofTenant } from "./collection.ts";
import { runWrite } from "./writes.ts";

/** A document of counters remembers what was added to it, so that a repeated write adds nothing twice. */
export type CountedRecord = {
  _id: string;
  tenantId: string;
  /** The last batch of each writer, by the writer's id: one a process that added to it. */
  last?: Record<string, number>;
  /** The single records that were added. */
  records?: string[];
};

/** A batch of one writer, whose next one has the next number once this one is added. */
export type UsageBatch = { writer: string; number: number };
/** An addition to the document of this key. The document is created from `fields` if it does not exist. */
export type Addition = { key: readonly string[]; tenantId: string; fields: Document; counts: Record<string, number> };

/** Statements of one command. */
const MAX_STATEMENTS = 500;

/** Adds to documents of counters, each addition exactly once. */
export function makeCountedOnce(db: Db, name: string) {
  const collection = db.collection<CountedRecord>(name);
  const toStatement = ({ key, tenantId, fields, counts }: Addition, memory: Memory) => {
    const _id = JSON.stringify([...key, ...memory.place]);
    const update = { ...memory.note, $inc: counts, $setOnInsert: fields };
    return { q: { _id, tenantId, ...memory.isNew }, u: update, upsert: true };
  };
  const addOnce = async (addition: Addition, memory: Memory, attemptsLeft = 3): Promise<void> => {
    const statement = toStatement(addition, memory);
    const { duplicates } = await runWrite(db, { update: name, updates: [statement] });
    if (duplicates === 0) return;
    // The document exists and did not match: the addition was made before, or another process has just created the document.
    const { _id, tenantId } = statement.q;
    const isAdded = (await collection.findOne({ _id, tenantId, ...memory.isOld })) !== null;
    if (isAdded) return;
    if (attemptsLeft <= 1) throw new Error("a usage document is made and removed again and again");
    await addOnce(addition, memory, attemptsLeft - 1);
  };
  const addAll = async (additions: readonly Addition[], memory: Memory) => {
    const updates = additions.map((addition) => toStatement(addition, memory));
    const { duplicates } = await runWrite(db, { update: name, updates, ordered: false });
    // The reply need not say which of them failed, since additions are never made twice.
    if (duplicates > 0) await Promise.all(additions.map((addition) => addOnce(addition, memory)));
  };
  return {
    /** Adds the additions of a batch, each exactly once however often the batch is written before its writer's next one. */
    async add(batch: UsageBatch, additions: readonly Addition[]): Promise<void> {
      const memory = ofBatch(batch);
      const parts: Addition[][] = [];
      for (let at = 0; at < additions.length; at += MAX_STATEMENTS)
        parts.push(additions.slice(at, at + MAX_STATEMENTS));
      await Promise.all(parts.map((part) => addAll(part, memory)));
    },
    /** Adds what one log record counts for, exactly once however often and however late it is written. */
    addRecord: (logId: string, addition: Addition): Promise<void> => addOnce(addition, ofRecord(logId)),
    /** Whether a log record was added to the document of this key. */
    async hasRecord(logId: string, { key, tenantId }: Pick<Addition, "key" | "tenantId">): Promise<boolean> {
      const { place, isOld } = ofRecord(logId);
      const _id = JSON.stringify([...key, ...place]);
      return (await collection.findOne(ofTenant(tenantId, { _id, ...isOld }))) !== null;
    },
  };
}

/** The marker against double counting: its place in the key, the filters for "not yet" and "already added", the update that sets it. */
type Memory = { place: string[]; isNew: Filter<CountedRecord>; isOld: Filter<CountedRecord>; note: Document };

/** A writer adds its batches in order: one that is not after the last has been added. */
function ofBatch({ writer, number }: UsageBatch): Memory {
  const field = `last.${writer}`;
  const isAdded = { $gte: number };
  return {
    place: [],
    isNew: { [field]: { $not: isAdded } },
    isOld: { [field]: isAdded },
    note: { $set: { [field]: number } },
  };
}

/** Characters of a ULID's time: half a minute shares documents. The last, random character spreads a burst over 32. */
const SPAN_CHARACTERS = 7;

/** A record may be repeated at any time, so the ids of all are kept, in documents that stay small. */
function ofRecord(logId: string): Memory {
  const ulid = logId.slice(logId.indexOf("_") + 1);
  return {
    place: [`${ulid.slice(0, SPAN_CHARACTERS)}${ulid.at(-1)}`],
    isNew: { records: { $ne: logId } },
    isOld: { records: logId },
    note: { $push: { records: logId } },
  };
}
