import { cutText } from "./offline-rank.ts";

/** Schemas and properties that are looked at for one value: a caller's references may multiply. */
const MAX_VISITS = 20_000;
const MAX_LEVELS = 12;
const MAX_ITEMS = 100;
const MAX_TEXT = 300;
/** Characters of one value, so that a constant that is referred to often makes no large response. */
const MAX_CHARACTERS = 64 << 10;

type Schema = Record<string, unknown>;

/** A text of each format. */
const formats: Readonly<Record<string, string>> = {
  date: "1970-01-01",
  "date-time": "1970-01-01T00:00:00Z",
  time: "00:00:00Z",
  email: "nobody@example.com",
  uri: "https://example.com/",
  uuid: "00000000-0000-0000-0000-000000000000",
  ipv4: "192.0.2.1",
};

/** What is left for one value: schemas and properties to look at, and characters to write. */
type Room = { visits: number; characters: number };

/**
 * The smallest value that a JSON Schema allows, with `text` as its texts. It does not look at `pattern`, and a schema with more
 * than 20,000 parts gets a value that may not match.
 */
export function minimalValue(root: Schema, text: string): unknown {
  const room: Room = { visits: MAX_VISITS, characters: MAX_CHARACTERS };
  const flatten = makeFlatten(root, room);
  const isOver = () => room.visits < 0 || room.characters <= 0;

  const keep = (value: unknown): unknown => {
    if (room.characters > 0) room.characters -= JSON.stringify(value)?.length ?? 0;
    return room.characters > 0 ? value : null;
  };

  const fill = (given: Schema, level: number): unknown => {
    const schema = flatten(given);
    if ("const" in schema) return keep(schema.const);
    if (Array.isArray(schema.enum)) return keep(schema.enum[0]);
    switch (typeOf(schema)) {
      case "object":
        return fillObject(schema, level);
      case "array":
        return fillList(schema, level);
      case "null":
        return null;
      case "boolean":
        return false;
      case "number":
      case "integer":
        return toNumber(schema);
      default:
        return keep(toText(schema, text));
    }
  };

  const fillObject = ({ properties, required }: Schema, level: number) => {
    const known = toSchema(properties);
    const names = Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
    const fields: [string, unknown][] = [];
    for (const name of names.length > 0 ? new Set(names) : Object.keys(known)) {
      if (isOver() || level > MAX_LEVELS) break;
      room.characters -= name.length;
      fields.push([name, fill(toSchema(Object.hasOwn(known, name) ? known[name] : undefined), level + 1)]);
    }
    return Object.fromEntries(fields);
  };

  const fillList = ({ items, minItems }: Schema, level: number) => {
    const least = Math.min(numberOr(minItems, 0), MAX_ITEMS);
    const list: unknown[] = [];
    while (list.length < least && !isOver() && level <= MAX_LEVELS) list.push(fill(toSchema(items), level + 1));
    return list;
  };

  return fill(root, 0);
}

/**
 * Makes what reads a schema without its references, unions and `allOf`; of a union it takes the first branch that is more than
 * null. Each reference is read once, so that references to references do not multiply.
 */
function makeFlatten(root: Schema, room: Room) {
  const known = new Map<string, Schema>();
  const follow = (reference: string, level: number): Schema => {
    const found = known.get(reference);
    if (found) return found;
    known.set(reference, {}); // a reference to itself ends here
    const flat = flatten(resolve(root, reference), level + 1);
    known.set(reference, flat);
    return flat;
  };
  const merge = (parts: Iterable<Schema>): Schema => {
    const merged: Schema = {};
    const properties: Schema = {};
    for (const part of parts) {
      const own = toSchema(part.properties);
      room.visits -= Object.keys(own).length;
      if (room.visits < 0) break;
      Object.assign(properties, own);
      Object.assign(merged, part);
    }
    return { ...merged, allOf: undefined, properties };
  };
  const flatten = (given: Schema, level = 0): Schema => {
    room.visits -= 1;
    if (room.visits < 0 || level > MAX_LEVELS) return {};
    if (typeof given.$ref === "string") return follow(given.$ref, level);
    const branches = [given.anyOf, given.oneOf].find(Array.isArray)?.map(toSchema) ?? [];
    const branch = branches.find((one) => typeOf(one) !== "null");
    if (branch) return flatten({ ...given, anyOf: undefined, oneOf: undefined, ...branch }, level + 1);
    if (!Array.isArray(given.allOf)) return given;
    const parts = new Set(given.allOf.map((one) => flatten(toSchema(one), level + 1)));
    return merge([...parts, given]);
  };
  return flatten;
}

function toNumber({ type, multipleOf, minimum, exclusiveMinimum, maximum, exclusiveMaximum }: Schema): number {
  const step = numberOr(multipleOf, type === "integer" ? 1 : 0);
  const lowest = Math.max(numberOr(minimum, -Infinity), numberOr(exclusiveMinimum, -Infinity) + (step || 1));
  const highest = Math.min(numberOr(maximum, Infinity), numberOr(exclusiveMaximum, Infinity) - (step || 1));
  const value = Math.min(Math.max(0, lowest), highest);
  return step > 0 ? Math.ceil(value / step) * step : value;
}

function toText({ format, minLength, maxLength }: Schema, text: string): string {
  const inFormat = typeof format === "string" && Object.hasOwn(formats, format) ? formats[format] : undefined;
  if (inFormat !== undefined) return inFormat;
  const longest = numberOr(maxLength, MAX_TEXT);
  return cutText(text, longest).padEnd(Math.min(numberOr(minLength, 0), MAX_TEXT), ".");
}

/** What a reference within the schema points at. */
function resolve(root: Schema, pointer: string): Schema {
  const keys = pointer.replace(/^#\/?/, "").split("/");
  const plain = (key: string) => key.replaceAll("~1", "/").replaceAll("~0", "~");
  return keys.reduce<Schema>((at, key) => (key === "" ? at : toSchema(at[plain(key)])), root);
}

function typeOf({ type, properties, items }: Schema): string {
  const named = Array.isArray(type) ? type.find((one) => one !== "null") : type;
  if (typeof named === "string") return named;
  return properties !== undefined ? "object" : items !== undefined ? "array" : "string";
}

const numberOr = (value: unknown, other: number) => (typeof value === "number" ? value : other);

/** A part of a schema as the caller gave it; what is no object counts as empty. */
function toSchema(value: unknown): Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Schema) : {};
}
