import { bsonTag, isDocument } from "./bson-types.ts";

/** How much of a value an error message quotes, in characters. */
const MAX_SHOWN = 150;

/** A value as MongoDB's messages quote it. */
export function showValue(value: unknown): string {
  const text = show(value, 0);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text;
}

/** `name: value`, as MongoDB's messages quote an element. */
export function showElement(name: string, value: unknown): string {
  return `${name}: ${showValue(value)}`;
}

function show(value: unknown, depth: number): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (value === undefined) return "missing";
  if (depth > 3) return "...";
  if (Array.isArray(value)) {
    return value.length === 0
      ? "[]"
      : `[ ${value
          .slice(0, 10)
          .map((item: unknown) => show(item, depth + 1))
          .join(", ")} ]`;
  }
  if (isDocument(value)) {
    const fields = Object.keys(value).map((name) => `${name}: ${show(value[name], depth + 1)}`);
    return fields.length === 0 ? "{}" : `{ ${fields.join(", ")} }`;
  }
  if (value instanceof Date) return `new Date(${value.getTime()})`;
  if (bsonTag(value) === "ObjectId") return `ObjectId('${String(value)}')`;
  return bsonTag(value) === "Binary" ? "BinData" : String(value);
}
