import { isDocument } from "../bson-types.ts";
import type { Document } from "../codec.ts";
import {
  type CommandContext,
  type CommandFamily,
  checkCollation,
  collectionName,
  readBoolean,
  readDeadline,
  readDocument,
  readDocuments,
  readSort,
} from "../command.ts";
import { notImplemented } from "../command-error.ts";
import { type Change, changeDocument, checkChange, insertUpsert } from "../modify.ts";
import { findRow, findRows, type Query } from "../query.ts";
import { failedToParse } from "../refusals.ts";
import { checkBatchSize, errorFields, runParts } from "../write-errors.ts";

export const updateCommands: CommandFamily = {
  update: { fields: ["updates", "ordered", "bypassDocumentValidation", "let"], run: update },
};

type Tally = { n: number; nModified: number; upserted: Document[] };

function update(context: CommandContext, body: Document): Document {
  const name = collectionName(context, "update", body.update);
  if (body.let !== undefined) throw notImplemented("The option let of update");
  const statements = readDocuments(body, "updates");
  checkBatchSize(statements.length);
  const tally: Tally = { n: 0, nModified: 0, upserted: [] };
  const deadline = readDeadline(body);
  const errors = runParts(statements.length, readBoolean(body, "ordered", true), (index) => {
    runStatement(context, name, statements[index] ?? {}, { tally, index, deadline });
  });
  const { n, nModified, upserted } = tally;
  return { n, nModified, ...(upserted.length > 0 ? { upserted } : {}), ...errorFields(errors) };
}

function runStatement(
  context: CommandContext,
  name: string,
  statement: Document,
  { tally, index, deadline }: { tally: Tally; index: number } & Pick<Query, "deadline">,
): void {
  const { storage, catalog } = context.engine;
  checkCollation(statement);
  const isMulti = readBoolean(statement, "multi", false);
  const change = readChange(statement.u, readDocument(statement, "q"), statement);
  checkChange(change, isMulti);
  const collection = catalog.find(context.db, name);
  const query: Query = { filter: change.filter, hint: statement.hint, sort: readSort(statement.sort), deadline };
  const rows = isMulti ? [...findRows(collection, query)] : [findRow(collection, query)];
  let matched = 0;
  for (const row of rows) {
    if (row === undefined || collection === undefined) continue;
    matched++;
    if (changeDocument(storage, collection, row, change) !== undefined) tally.nModified++;
  }
  tally.n += matched;
  if (matched > 0 || !readBoolean(statement, "upsert", false)) return;
  const { id } = insertUpsert(storage, catalog.ensure(context.db, name), change);
  tally.n++;
  tally.upserted.push({ index, _id: id });
}

/** The change that an update statement or a findAndModify asks for. */
export function readChange(update: unknown, filter: Document, options: Document): Change {
  if (!isDocument(update) && !(Array.isArray(update) && update.every(isDocument))) {
    throw failedToParse("Update argument must be either an object or an array");
  }
  const arrayFilters = options.arrayFilters === undefined ? undefined : readDocuments(options, "arrayFilters");
  if (arrayFilters !== undefined && Array.isArray(update)) {
    throw failedToParse("arrayFilters may not be specified for pipeline-style updates");
  }
  return { update, filter, arrayFilters };
}
