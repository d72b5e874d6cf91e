import type { Document } from "../bson/bson-types.ts";
import { notOffered } from "../command-error.ts";
import { findRow } from "../query/query.ts";
import { changeDocument, checkChange, insertUpsert } from "../update/modify.ts";
import { RawDocument } from "../wire/reply.ts";
import { type CommandContext, type CommandFamily, collectionName, readBoolean, readDocument } from "./command.ts";
import { readChange } from "./update.ts";

export const findAndModifyCommands: CommandFamily = {
  findAndModify: { fields: ["query", "update", "new", "upsert", "remove"], run: findAndModify },
};

function findAndModify(context: CommandContext, body: Document): Document {
  const { storage, catalog } = context.engine;
  const name = collectionName(context, "findAndModify", body.findAndModify);
  if (readBoolean(body, "remove", false)) throw notOffered("the option remove of findAndModify");
  const filter = readDocument(body, "query");
  const change = readChange(body.update, filter);
  checkChange(change, false);
  const isNew = readBoolean(body, "new", false);
  const collection = catalog.find(context.db, name);
  const row = findRow(collection, { filter });
  if (row !== undefined && collection !== undefined) {
    const bytes = changeDocument(storage, collection, row, change);
    return answer({ n: 1, updatedExisting: true }, isNew && bytes !== undefined ? bytes : row.bytes);
  }
  if (!readBoolean(body, "upsert", false)) return answer({ n: 0, updatedExisting: false }, undefined);
  const made = insertUpsert(storage, catalog.ensure(context.db, name), change);
  return answer({ n: 1, updatedExisting: false, upserted: made.id }, isNew ? made.bytes : undefined);
}

function answer(lastErrorObject: Document, bytes: Uint8Array | undefined): Document {
  return { lastErrorObject, value: bytes === undefined ? null : new RawDocument(bytes) };
}
