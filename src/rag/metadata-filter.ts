import type { Filter } from "mongodb";
import { z } from "zod";
import type { DocumentMetadata, DocumentRecord } from "../store/document-record.ts";

/** Maximum conditions of a filter, and maximum depth of nesting. */
const MAX_CONDITIONS = 100;
const MAX_LEVELS = 3;
const MAX_VALUES = 64;

const key = z.string().min(1).max(64);
const scalar = z.union([z.string().max(512), z.number(), z.boolean()]);

/** Comparisons of OpenAI's vector stores: https://platform.openai.com/docs/guides/retrieval#attribute-filtering. */
const comparison = z.union([
  z.strictObject({ type: z.enum(["eq", "ne", "gt", "gte", "lt", "lte"]), key, value: scalar }),
  z.strictObject({ type: z.enum(["in", "nin"]), key, value: z.array(scalar).min(1).max(MAX_VALUES) }),
]);
type Comparison = z.output<typeof comparison>;

/** A filter of attributes: a comparison, or several that are joined. */
export type AttributeFilter = Comparison | { type: "and" | "or"; filters: AttributeFilter[] };

const conditionsOf = (filter: AttributeFilter): number =>
  "filters" in filter ? filter.filters.reduce((sum, each) => sum + conditionsOf(each), 1) : 1;

function nested(levels: number): z.ZodType<AttributeFilter> {
  if (levels === 0) return comparison;
  const filters = z
    .array(nested(levels - 1))
    .min(1)
    .max(MAX_CONDITIONS);
  return z.union([comparison, z.strictObject({ type: z.enum(["and", "or"]), filters })]);
}

export const attributeFilterSchema = nested(MAX_LEVELS).refine(
  (filter) => conditionsOf(filter) <= MAX_CONDITIONS,
  `must not have more than ${MAX_CONDITIONS} conditions`,
);

/** Whether a document's metadata fulfil a filter. An attribute that is absent is not equal to anything, and in no order. */
export function fulfils(metadata: DocumentMetadata, filter: AttributeFilter): boolean {
  if ("filters" in filter) {
    const holds = (each: AttributeFilter) => fulfils(metadata, each);
    return filter.type === "and" ? filter.filters.every(holds) : filter.filters.some(holds);
  }
  const found = metadata[filter.key];
  switch (filter.type) {
    case "eq":
      return found === filter.value;
    case "ne":
      return found !== filter.value;
    case "in":
      return found !== undefined && filter.value.includes(found);
    case "nin":
      return found === undefined || !filter.value.includes(found);
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return isInOrder(filter.type, difference(found, filter.value));
    default:
      return filter satisfies never;
  }
}

function isInOrder(type: "gt" | "gte" | "lt" | "lte", order: number): boolean {
  if (type === "gt") return order > 0;
  if (type === "gte") return order >= 0;
  return type === "lt" ? order < 0 : order <= 0;
}

/** Above 0 if `a` is greater than `b`; NaN if they have no order. Numbers have an order, and dates, which are texts. */
function difference(a: unknown, b: unknown): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return typeof a === "string" && typeof b === "string" ? timeOf(a) - timeOf(b) : Number.NaN;
}

/** A date, or a date and time, as ISO 8601 writes it: without a time it is midnight, without a zone UTC. */
const isoDate = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?)?$/;

function timeOf(text: string): number {
  const found = isoDate.exec(text);
  if (found === null) return Number.NaN;
  const [, time, , , zone] = found;
  return Date.parse(time !== undefined && zone === undefined ? `${text}Z` : text);
}

/** Keys that need no escaping in a path of the store. All keys of metadata are of this kind. */
const plainKey = /^[\w-]+$/;

/**
 * The part of a filter that the store can test: values, lists of values and ranges of numbers, which a document must all
 * fulfil. It matches every document that fulfils the filter, and perhaps others.
 */
export function toStoreFilter(filter: AttributeFilter): Filter<DocumentRecord> {
  const conditions = toConditions(filter);
  return conditions.length > 0 ? { $and: conditions } : {};
}

function toConditions(filter: AttributeFilter): Filter<DocumentRecord>[] {
  if ("filters" in filter) return filter.type === "and" ? filter.filters.flatMap(toConditions) : [];
  if (!plainKey.test(filter.key)) return [];
  const path = `metadata.${filter.key}`;
  if (filter.type === "in") return [{ [path]: { $in: filter.value } }];
  if (filter.type === "eq") return [{ [path]: filter.value }];
  // A date is a text, and compares as a time.
  const isOfNumbers = filter.type !== "ne" && filter.type !== "nin" && typeof filter.value === "number";
  return isOfNumbers ? [{ [path]: { [`$${filter.type}`]: filter.value } }] : [];
}

/** Groups of key-value pairs, of which a document must have one each. An index finds such documents. */
export function requiredValues(filter: AttributeFilter): { key: string; values: (string | number | boolean)[] }[] {
  if (filter.type === "eq") return [{ key: filter.key, values: [filter.value] }];
  if (filter.type === "in") return [{ key: filter.key, values: filter.value }];
  return filter.type === "and" ? filter.filters.flatMap(requiredValues) : [];
}

/** Whether the required values are all that the filter says. */
export const isOfValues = (filter: AttributeFilter): boolean =>
  filter.type === "and" ? filter.filters.every(isOfValues) : filter.type === "eq" || filter.type === "in";

/** A range of numbers or dates in the filter of a query. */
const bound = z.union([z.number(), z.string().regex(isoDate, "must be a number or a date in ISO 8601")]);
export const rangeSchema = z
  .strictObject({ gt: bound.optional(), gte: bound.optional(), lt: bound.optional(), lte: bound.optional() })
  .refine((range) => Object.keys(range).length > 0, "must have one of gt, gte, lt and lte");
type Range = z.output<typeof rangeSchema>;

type Scalar = string | number | boolean;

/** The filter of a query as attribute filters have it: each field has a value, one of a list, or lies in a range. */
export function toAttributeFilter(filter: Readonly<Record<string, Scalar | Scalar[] | Range>>): AttributeFilter {
  const filters = Object.entries(filter).flatMap(([key, value]): AttributeFilter[] => {
    if (Array.isArray(value)) return [{ type: "in", key, value }];
    if (typeof value !== "object") return [{ type: "eq", key, value }];
    const bounds = Object.entries(value) as [keyof Range, string | number | undefined][]; // the schema has no other fields
    return bounds.flatMap(([type, limit]) => (limit === undefined ? [] : [{ type, key, value: limit }]));
  });
  return { type: "and", filters };
}
