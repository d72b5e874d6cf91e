import type { Document } from "../bson/bson-types.ts";
import { typeMismatch } from "../command-error.ts";
import { insertDocument } from "../storage/documents.ts";
import { readInsert } from "../storage/insert-document.ts";
import { type CommandContext, type CommandFamily, collectionName, readBoolean } from "./command.ts";
import { checkBatchSize, errorFields, runParts } from "./write-errors.ts";

export const insertCommands: CommandFamily = {
  insert: { fields: ["documents", "ordered"], run: insert },
};

function insert(context: CommandContext, body: Document): Document {
  const { engine, db } = context;
  const name = collectionName(context, "insert", body.insert);
  const documents: unknown = body.documents;
  if (!Array.isArray(documents))
    throw typeMismatch("BSON field 'insert.documents' is the wrong type, expected type 'array'");
  checkBatchSize(documents.length);
  const collection = engine.catalog.ensure(db, name);
  let inserted = 0;
  const errors = runParts(documents.length, readBoolean(body, "ordered", true), (index) => {
    const { document, bytes } = readInsert(documents[index]);
    insertDocument(engine.storage, collection, document, bytes);
    inserted++;
  });
  return { n: inserted, ...errorFields(errors) };
}
