import { type Document, encodeDocument } from "../codec.ts";
import type { Collection } from "../collection.ts";
import {
  type CommandContext,
  type CommandFamily,
  checkCollation,
  collectionName,
  readBoolean,
  readDeadline,
  readDocument,
  readSort,
} from "../command.ts";
import { notImplemented } from "../command-error.ts";
import { type Row, removeDocument } from "../documents.ts";
import { changeDocument, checkChange, insertUpsert } from "../modify.ts";
import { compileProjection } from "../projection.ts";
import { findRow } from "../query.ts";
import { failedToParse } from "../refusals.ts";
import { RawDocument } from "../reply.ts";
import { makeRow } from "../scan.ts";
import { readChange } from "./update.ts";

const fields = [
  "query",
  "sort",
  "hint",
  "collation",
  "arrayFilters",
  "remove",
  "update",
  "upsert",
  "new",
  "fields",
  "let",
  "bypassDocumentValidation",
]; // prettier-ignore

export const findAndModifyCommands: CommandFamily = {
  findAndModify: { fields, run: (context, body) => findAndModify(context, body, "findAndModify") },
  findandmodify: { fields, run: (context, body) => findAndModify(context, body, "findandmodify") },
};

function findAndModify(context: CommandContext, body: Document, verb: string): Document {
  const name = collectionName(context, verb, body[verb]);
  checkCollation(body);
  if (body.let !== undefined) throw notImplemented("The option let of findAndModify");
  const filter = readDocument(body, "query");
  const show = readShow(body, filter);
  const collection = context.engine.catalog.find(context.db, name);
  const query = { filter, sort: readSort(body.sort), hint: body.hint, deadline: readDeadline(body) };
  if (readBoolean(body, "remove", false)) {
    if (body.update !== undefined) throw failedToParse("Cannot specify both an update and remove=true");
    if (readBoolean(body, "new", false)) {
      throw failedToParse("Cannot specify both new=true and remove=true; 'remove' always returns the deleted document");
    }
    if (readBoolean(body, "upsert", false)) throw failedToParse("Cannot specify both upsert=true and remove=true");
    return removeFound(context, collection, findRow(collection, query), show);
  }
  if (body.update === undefined) throw failedToParse("Either an update or remove=true must be specified");
  const change = readChange(body.update, filter, body);
  checkChange(change, false);
  const isNew = readBoolean(body, "new", false);
  const row = findRow(collection, query);
  if (row !== undefined && collection !== undefined) {
    const bytes = changeDocument(context.engine.storage, collection, row, change);
    return answer({ n: 1, updatedExisting: true }, show(isNew && bytes !== undefined ? makeRow(row.rid, bytes) : row));
  }
  if (!readBoolean(body, "upsert", false)) return answer({ n: 0, updatedExisting: false }, null);
  const made = insertUpsert(context.engine.storage, context.engine.catalog.ensure(context.db, name), change);
  const value = isNew ? show(makeRow(0, made.bytes)) : null;
  return answer({ n: 1, updatedExisting: false, upserted: made.id }, value);
}

function removeFound(
  context: CommandContext,
  collection: Collection | undefined,
  row: Row | undefined,
  show: Show,
): Document {
  if (row === undefined || collection === undefined) return answer({ n: 0 }, null);
  removeDocument(context.engine.storage, collection, row);
  return answer({ n: 1 }, show(row));
}

type Show = (row: Row) => RawDocument;

function readShow(body: Document, filter: Document): Show {
  const projection = readDocument(body, "fields");
  if (Object.keys(projection).length === 0) return (row) => new RawDocument(row.bytes);
  const project = compileProjection(projection, filter);
  return (row) => new RawDocument(encodeDocument(project(row.document())));
}

function answer(lastErrorObject: Document, value: RawDocument | null): Document {
  return { lastErrorObject, value };
}
