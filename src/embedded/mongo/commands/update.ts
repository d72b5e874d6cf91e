import { type Document, isDocument } from "../bson/bson-types.ts";
import { failedToParse } from "../command-error.ts";
import { findRow, findRows } from "../query/query.ts";
import { type Change, changeDocument, checkChange, insertUpsert } from "../update/modify.ts";
import {
  type CommandContext,
  type CommandFamily,
  checkOptions,
  collectionName,
  readBoolean,
  readDocument,
  readDocuments,
} from "./command.ts";
import { checkBatchSize, errorFields, runParts } from "./write-errors.ts";

export const updateCommands: CommandFamily = {
  update: { fields: ["updates", "ordered"], run: update },
};
const statementFields = ["q", "u", "multi", "upsert"];

type Tally = { n: number; nModified: number; upserted: Document[] };

function update(context: CommandContext, body: Document): Document {
  const name = collectionName(context, "update", body.update);
  const statements = readDocuments(body, "updates");
  checkBatchSize(statements.length);
  const tally: Tally = { n: 0, nModified: 0, upserted: [] };
  const errors = runParts(statements.length, readBoolean(body, "ordered", true), (index) => {
    runStatement(context, name, statements[index] ?? {}, { tally, index });
  });
  const { n, nModified, upserted } = tally;
  return { n, nModified, ...(upserted.length > 0 ? { upserted } : {}), ...errorFields(errors) };
}

function runStatement(
  context: CommandContext,
  name: string,
  statement: Document,
  { tally, index }: { tally: Tally; index: number },
): void {
  const { storage, catalog } = context.engine;
  checkOptions("updates", statementFields, statement);
  const isMulti = readBoolean(statement, "multi", false);
  const change = readChange(statement.u, readDocument(statement, "q"));
  checkChange(change, isMulti);
  const collection = catalog.find(context.db, name);
  const query = { filter: change.filter };
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
export function readChange(update: unknown, filter: Document): Change {
  if (!isDocument(update) && !(Array.isArray(update) && update.every(isDocument))) {
    throw failedToParse("Update argument must be either an object or an array");
  }
  return { update, filter };
}
