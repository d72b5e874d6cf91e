import type { Document } from "../codec.ts";
import {
  type CommandContext,
  type CommandFamily,
  checkCollation,
  findCollection,
  readCount,
  readDeadline,
  readDocument,
  toNumber,
} from "../command.ts";
import { encodeValue } from "../index-keys.ts";
import { valuesAt } from "../path-values.ts";
import { countRows, findRows } from "../query.ts";
import { typeMismatch } from "../refusals.ts";

export const countDistinctCommands: CommandFamily = {
  count: { fields: ["query", "limit", "skip", "hint", "collation", "fields"], run: count },
  distinct: { fields: ["key", "query", "collation", "hint"], run: distinct },
};

function count(context: CommandContext, body: Document): Document {
  checkCollation(body);
  const collection = findCollection(context, "count", body.count);
  const query = {
    filter: readDocument(body, "query"),
    limit: Math.abs(toNumber(body.limit) ?? 0),
    skip: readCount(body, "skip"),
    hint: body.hint,
    deadline: readDeadline(body),
  };
  return { n: countRows(collection, query) };
}

function distinct(context: CommandContext, body: Document): Document {
  checkCollation(body);
  const collection = findCollection(context, "distinct", body.distinct);
  const { key } = body;
  if (typeof key !== "string")
    throw typeMismatch("BSON field 'distinct.key' is the wrong type, expected type 'string'");
  const values = new Map<string, unknown>();
  const query = { filter: readDocument(body, "query"), hint: body.hint, deadline: readDeadline(body) };
  for (const row of findRows(collection, query)) {
    for (const value of valuesAt(row.document(), key)) {
      if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
      const identity = encodeValue(value).toString("latin1");
      if (!values.has(identity)) values.set(identity, value);
    }
  }
  return { values: [...values.values()] };
}
