import { type Document, isDocument } from "../bson/bson-types.ts";
import { numberKind, toDouble } from "../bson/numbers.ts";
import { commandError, notOffered, typeMismatch } from "../command-error.ts";
import type { Engine } from "../engine.ts";
import type { Collection } from "../storage/collection.ts";

/** What one call of a command has at hand. */
export type CommandContext = { engine: Engine; db: string; connectionId: number };

/** A command of the server. Its name is the key it is registered under, in lower and upper case as MongoDB has it. */
export type Command = {
  /** The fields it knows beside those that every command may have; undefined: MongoDB does not check this one. */
  fields?: readonly string[];
  run(context: CommandContext, body: Document): Document;
};
export type CommandFamily = Record<string, Command>;

/** Fields that any command may carry. Sessions are accepted and need nothing: there are no transactions. */
const genericFields: ReadonlySet<string> = new Set([
  "$db",
  "$readPreference",
  "lsid",
  "readConcern",
  "writeConcern",
  "comment",
]);

/** Refuses fields that the command does not offer, as MongoDB does those that it does not know. @throws CommandError 40415. */
export function checkFields(name: string, command: Command, body: Document): void {
  if (command.fields === undefined) return;
  for (const field of Object.keys(body)) {
    if (field === name || command.fields.includes(field) || genericFields.has(field)) continue;
    throw notOffered(`the option ${field} of ${name}`, "Location40415");
  }
}

/** The same for a statement inside a command. */
export function checkOptions(name: string, known: readonly string[], statement: Document): void {
  const stranger = Object.keys(statement).find((option) => !known.includes(option));
  if (stranger !== undefined) throw notOffered(`the option ${stranger} of ${name}`, "Location40415");
}

/** Refuses transactions, as a MongoDB that is no replica set does. @throws CommandError 20. */
export function checkSession(body: Document): void {
  if (body.txnNumber === undefined && body.startTransaction === undefined && body.autocommit === undefined) return;
  throw commandError("IllegalOperation", "Transaction numbers are only allowed on a replica set member or mongos");
}

/** The collection that `body[name]` names. @throws CommandError 73 when that is no name. */
export function collectionName(context: CommandContext, name: string, value: unknown): string {
  if (typeof value === "string" && value !== "") return value;
  throw commandError("InvalidNamespace", `Invalid namespace specified '${context.db}.': ${name} expects a name`);
}

export function findCollection(context: CommandContext, name: string, value: unknown): Collection | undefined {
  return context.engine.catalog.find(context.db, collectionName(context, name, value));
}

/** A number of any BSON type as JavaScript's; undefined when it is not a number. */
export function toNumber(value: unknown): number | undefined {
  return numberKind(value) === undefined ? undefined : toDouble(value);
}

/** A whole number that is not negative. @throws CommandError 14 or 2 otherwise. */
export function readCount(body: Document, field: string): number | undefined {
  const value: unknown = body[field];
  if (value === undefined || value === null) return undefined;
  const number = toNumber(value);
  if (number === undefined) throw typeMismatch(`BSON field '${field}' is the wrong type, expected a number`);
  if (number < 0) {
    throw commandError("BadValue", `BSON field '${field}' value must be >= 0, actual value '${number}'`);
  }
  return Math.trunc(number);
}

/** A document, `fallback` when there is none. @throws CommandError 14 when it is something else. */
export function readDocument(body: Document, field: string, fallback: Document = {}): Document {
  const value: unknown = body[field];
  if (value === undefined || value === null) return fallback;
  if (isDocument(value)) return value;
  throw typeMismatch(`BSON field '${field}' is the wrong type, expected type 'object'`);
}

/** An array of documents. @throws CommandError 14 when it is something else. */
export function readDocuments(body: Document, field: string): Document[] {
  const value: unknown = body[field];
  if (Array.isArray(value) && value.every(isDocument)) return value;
  throw typeMismatch(`BSON field '${field}' is the wrong type, expected an array of documents`);
}

export function readBoolean(body: Document, field: string, fallback: boolean): boolean {
  const value: unknown = body[field];
  if (value === undefined || value === null) return fallback;
  if (typeof value === "boolean") return value;
  const number = toNumber(value);
  if (number !== undefined) return number !== 0;
  throw typeMismatch(`BSON field '${field}' is the wrong type, expected type 'bool'`);
}
