import { bsonTag, typeName } from "./bson-types.ts";
import { numberKind } from "./numbers.ts";
import { located } from "./refusals.ts";

/** A value as the string operators see it: null and missing are the empty string, numbers and dates their text. */
export function toText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (value instanceof Date) return value.toISOString();
  if (numberKind(value) !== undefined || bsonTag(value) === "BSONSymbol") return String(value);
  throw located(16007, `can't convert from BSON type ${typeName(value)} to String`);
}
