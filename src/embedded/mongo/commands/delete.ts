import type { Document } from "../bson/bson-types.ts";
import { failedToParse } from "../command-error.ts";
import { findRows } from "../query/query.ts";
import { removeDocument } from "../storage/documents.ts";
import {
  type CommandContext,
  type CommandFamily,
  checkOptions,
  findCollection,
  readBoolean,
  readDocument,
  readDocuments,
  toNumber,
} from "./command.ts";
import { checkBatchSize, errorFields, runParts } from "./write-errors.ts";

export const deleteCommands: CommandFamily = {
  delete: { fields: ["deletes", "ordered"], run: remove },
};
const statementFields = ["q", "limit"];

function remove(context: CommandContext, body: Document): Document {
  const collection = findCollection(context, "delete", body.delete);
  const statements = readDocuments(body, "deletes");
  checkBatchSize(statements.length);
  let n = 0;
  const errors = runParts(statements.length, readBoolean(body, "ordered", true), (index) => {
    const statement = statements[index] ?? {};
    checkOptions("deletes", statementFields, statement);
    const limit = toNumber(statement.limit);
    if (limit !== 0 && limit !== 1) {
      throw failedToParse(`The limit field in delete objects must be 0 or 1. Got ${String(statement.limit)}`);
    }
    const rows = [...findRows(collection, { filter: readDocument(statement, "q"), limit })];
    if (collection === undefined) return;
    for (const row of rows) removeDocument(context.engine.storage, collection, row);
    n += rows.length;
  });
  return { n, ...errorFields(errors) };
}
