import { ObjectId } from "bson";
import { type Document, isDocument } from "../bson/bson-types.ts";
import { decodeDocument, decodeReceived, encodeDocument } from "../bson/codec.ts";
import { CommandError, commandError, failedToParse, notOffered, typeMismatch } from "../command-error.ts";
import { type Fields, readFields } from "../fields.ts";
import { compileProjection } from "../query/projection.ts";
import { findRows } from "../query/query.ts";
import type { Collection } from "../storage/collection.ts";
import { insertDocument, removeDocument, replaceDocument } from "../storage/documents.ts";
import type { Row } from "../storage/storage.ts";
import { applyUpdate, isOperatorUpdate, upsertSeed } from "../update/update.ts";
import { Raw } from "../wire/reply.ts";
import { type CommandContext, type CommandFamily, collectionName, defineCommand, findCollection } from "./command.ts";

const insertShape = { documents: "array", ordered: "flag" } as const;
const updateShape = { updates: "documents", ordered: "flag" } as const;
const deleteShape = { deletes: "documents", ordered: "flag" } as const;
const findAndModifyShape = {
  query: "document",
  update: "any",
  fields: "document",
  new: "flag",
  upsert: "flag",
  remove: "flag",
} as const;

export const writeCommands: CommandFamily = {
  insert: defineCommand("insert", insertShape, insert),
  update: defineCommand("update", updateShape, update),
  delete: defineCommand("delete", deleteShape, remove),
  findAndModify: defineCommand("findAndModify", findAndModifyShape, findAndModify),
};

export const maxWriteBatch = 100_000;

/**
 * Runs the parts of a bulk write one after the other. A part that is refused is noted under its place; unless `isOrdered`
 * is false, the rest is then left undone. Answers the fields of the reply that say so. @throws CommandError 16 for no parts, or too many.
 */
function runParts<T>(
  parts: readonly T[] = [],
  isOrdered = true,
  runPart: (part: T, index: number) => void,
): { writeErrors?: Document[] } {
  if (parts.length === 0 || parts.length > maxWriteBatch) {
    const message = `Write batch sizes must be between 1 and ${maxWriteBatch}. Got ${parts.length} operations.`;
    throw commandError("InvalidLength", message);
  }
  const writeErrors: Document[] = [];
  for (const [index, part] of parts.entries()) {
    try {
      runPart(part, index);
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      writeErrors.push({ index, code: error.code, errmsg: error.message, ...error.details });
      if (isOrdered) break;
    }
  }
  return writeErrors.length === 0 ? {} : { writeErrors };
}

function insert(context: CommandContext, { documents, ordered }: Fields<typeof insertShape>): Document {
  const { storage, catalog } = context.engine;
  const collection = catalog.ensure(context.db, collectionName(context));
  let n = 0;
  const failures = runParts(documents, ordered, (raw) => {
    const { document, bytes } = readInsert(raw);
    insertDocument(storage, collection, document, bytes);
    n++;
  });
  return { n, ...failures };
}

/** The document as it is stored. The bytes of the client are kept where its `_id` comes first. */
function readInsert(raw: unknown): { document: Document; bytes: Uint8Array } {
  if (!(raw instanceof Uint8Array)) throw typeMismatch("BSON field 'insert.documents' expects documents");
  const given = decodeReceived(raw);
  const document = withId(given);
  return { document, bytes: document === given ? raw : encodeDocument(document) };
}

/** The document with its `_id` first, a new one when it has none. @throws CommandError 53 for what cannot be one. */
function withId(document: Document): Document {
  const { _id } = document;
  const isUndefined = _id === undefined && Object.hasOwn(document, "_id");
  if (isUndefined || Array.isArray(_id))
    throw commandError("InvalidIdField", `The '_id' value cannot be of type ${isUndefined ? "undefined" : "array"}`);
  if (Object.keys(document)[0] === "_id") return document;
  const { _id: id = new ObjectId(), ...rest } = document;
  return { _id: id, ...rest };
}

const updateStatement = { q: "document", u: "any", multi: "flag", upsert: "flag" } as const;

function update(context: CommandContext, { updates, ordered }: Fields<typeof updateShape>): Document {
  const tally = { n: 0, nModified: 0 };
  const upserted: Document[] = [];
  const failures = runParts(updates, ordered, (statement, index) => {
    const { q: filter = {}, u, multi = false, upsert } = readFields("updates", statement, updateStatement);
    const change = readUpdate(u);
    if (multi && !isOperatorUpdate(change))
      throw failedToParse("multi update is not supported for replacement-style update");
    const collection = findCollection(context);
    const rows = [...findRows(collection, { filter, ...(multi ? {} : { limit: 1 }) })];
    for (const row of rows) if (collection && changeRow(context, collection, row, change)) tally.nModified++;
    tally.n += rows.length;
    if (rows.length > 0 || !upsert) return;
    upserted.push({ index, _id: insertUpsert(context, filter, change).id });
    tally.n++;
  });
  return { ...tally, ...(upserted.length > 0 ? { upserted } : {}), ...failures };
}

function readUpdate(update: unknown): Document {
  if (isDocument(update)) return update;
  if (Array.isArray(update)) throw notOffered("a pipeline as an update");
  throw failedToParse("Update argument must be either an object or an array");
}

/** Changes a stored document. Answers the new bytes, undefined when nothing has changed. */
function changeRow({ engine }: CommandContext, collection: Collection, row: Row, change: Document) {
  return replaceDocument(engine.storage, collection, row, applyUpdate(row.document(), change));
}

/** Inserts the document that an upsert makes of its filter and its change. */
function insertUpsert(context: CommandContext, filter: Document, change: Document): { id: unknown; bytes: Uint8Array } {
  const { storage, catalog } = context.engine;
  const document = withId(applyUpdate(upsertSeed(filter), change, { isInsert: true }));
  const bytes = encodeDocument(document);
  insertDocument(storage, catalog.ensure(context.db, collectionName(context)), document, bytes);
  return { id: document._id, bytes };
}

const deleteStatement = { q: "document", limit: "count" } as const;

function remove(context: CommandContext, { deletes, ordered }: Fields<typeof deleteShape>): Document {
  const collection = findCollection(context);
  let n = 0;
  const failures = runParts(deletes, ordered, (statement) => {
    const { q: filter = {}, limit } = readFields("deletes", statement, deleteStatement);
    if (limit !== 0 && limit !== 1)
      throw failedToParse(`The limit field in delete objects must be 0 or 1. Got ${statement.limit}`);
    for (const row of [...findRows(collection, { filter, limit })]) {
      if (collection) removeDocument(context.engine.storage, collection, row);
      n++;
    }
  });
  return { n, ...failures };
}

function findAndModify(context: CommandContext, fields: Fields<typeof findAndModifyShape>): Document {
  const { query: filter = {}, fields: projection, new: isNew, upsert, remove: isRemoval } = fields;
  if (isRemoval) throw notOffered("the option remove of findAndModify");
  const change = readUpdate(fields.update);
  const project = projection && compileProjection(projection).ofDocument;
  const response = (lastErrorObject: Document, bytes?: Uint8Array): Document => {
    if (bytes === undefined) return { lastErrorObject, value: null };
    return { lastErrorObject, value: project ? project(decodeDocument(bytes)) : new Raw(bytes) };
  };
  const collection = findCollection(context);
  const [row] = findRows(collection, { filter, limit: 1 });
  if (row !== undefined && collection !== undefined) {
    const bytes = changeRow(context, collection, row, change) ?? row.bytes;
    return response({ n: 1, updatedExisting: true }, isNew ? bytes : row.bytes);
  }
  if (!upsert) return response({ n: 0, updatedExisting: false });
  const { id, bytes } = insertUpsert(context, filter, change);
  return response({ n: 1, updatedExisting: false, upserted: id }, isNew ? bytes : undefined);
}
