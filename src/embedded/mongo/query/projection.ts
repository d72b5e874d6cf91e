import { type Document, isDocument, setField } from "../bson/bson-types.ts";
import { pickFields } from "../bson/stored-fields.ts";
import { located, notOffered } from "../command-error.ts";

type Projection = {
  ofDocument(document: Document): Document;
  /** The same of a stored one, which is not decoded. Undefined where parts of fields are kept, or all fields. */
  ofBytes?: ((stored: Uint8Array, score?: Score) => Uint8Array) | undefined;
};

/** The fields that are kept: each as a whole, or what is kept below it. */
type Kept = Map<string, Kept | undefined>;
type ReadScore = (score: Score | undefined) => number;

/** The operators of a projection: what is not here is refused. */
export const projectionOperators: Readonly<Record<string, (operand: unknown) => ReadScore>> = { $meta: meta };

/**
 * The projection of a find or of `$project`: the fields that are kept, by dotted paths, always with the `_id`, and scores
 * of a search by `$meta`. https://www.mongodb.com/docs/manual/reference/method/db.collection.find/#projection
 * @throws CommandError for colliding paths (31249, 31250) and for anything that is not offered (238).
 */
export function compileProjection(projection: Document): Projection {
  const kept: Kept = new Map();
  const scores: { path: string; read: ReadScore }[] = [];
  for (const [path, value] of Object.entries(projection)) {
    if (isDocument(value)) scores.push({ path, read: compileOperator(path, value) });
    else addPath(kept, path, value);
  }
  const keepsAll = kept.size === 0; // scores alone come beside all fields
  if (!kept.has("_id")) kept.set("_id", undefined);
  const isWhole = !keepsAll && kept.values().every((below) => below === undefined);
  return {
    ofDocument: (document) => {
      const result = keepsAll ? { ...document } : keep(kept, document);
      for (const { path, read } of scores) setField(result, path, read((document as Scored)[scoreKey]));
      return keepScore(document, result);
    },
    ofBytes: isWhole
      ? (stored, score) => pickFields(stored, kept, new Map(scores.map(({ path, read }) => [path, read(score)])))
      : undefined,
  };
}

function compileOperator(path: string, value: Document): ReadScore {
  const [name = ""] = Object.keys(value);
  const compile = Object.hasOwn(projectionOperators, name) ? projectionOperators[name] : undefined;
  if (compile === undefined) throw notOffered(name.startsWith("$") ? `${name} in a projection` : "nested projections");
  if (path.includes(".")) throw notOffered(`${name} below a field`);
  return compile(value[name]);
}

/** `$meta` reads the score that a search stage attached. */
function meta(operand: unknown): ReadScore {
  if (operand !== "searchScore" && operand !== "vectorSearchScore")
    throw located(17308, `Unsupported argument to $meta: ${String(operand)}`);
  return (score) => {
    if (score?.name !== operand) throw located(40218, `query requires ${operand} metadata, but it is not available`);
    return score.value;
  };
}

/** Files a path that is kept; two on one path, or one inside another, collide. */
function addPath(root: Kept, path: string, value: unknown): void {
  const parts = path.split(".");
  if (parts.includes("")) throw located(40353, "FieldPath must not end with a '.' or have empty parts.");
  if (parts.some((part) => part.startsWith("$"))) throw notOffered(`"${path}" in a projection`);
  if (value === false || value === 0) throw notOffered("a projection that leaves fields out");
  if (value !== true && typeof value !== "number") throw notOffered("a computed field in a projection");
  const last = parts.pop() ?? "";
  let node = root;
  for (const part of parts) {
    const next: Kept | undefined = node.has(part) ? node.get(part) : new Map();
    if (next === undefined) throw located(31249, `Path collision at ${path} remaining portion ${last}`);
    node.set(part, next);
    node = next;
  }
  if (node.has(last)) throw located(31250, `Path collision at ${path}`);
  node.set(last, undefined);
}

function keep(kept: Kept, document: Document): Document {
  const result: Document = {};
  for (const name of Object.keys(document)) {
    if (!kept.has(name)) continue;
    const below = kept.get(name);
    const value = below === undefined ? document[name] : keepBelow(below, document[name]);
    if (value !== undefined) setField(result, name, value);
  }
  return result;
}

/** What is kept of a document, and of every document in an array, however deeply nested; other values are not. */
function keepBelow(kept: Kept, value: unknown): unknown {
  if (isDocument(value)) return keep(kept, value);
  if (!Array.isArray(value)) return undefined;
  return value.map((item: unknown) => keepBelow(kept, item)).filter((item) => item !== undefined);
}

/** The score that a search stage gives to a document, with the name under which `$meta` reads it. */
export type Score = { name: "vectorSearchScore" | "searchScore"; value: number };

/** The score travels under a symbol: no field's name can meet it, `bson` does not write it, `keepScore` hands it on. */
const scoreKey: unique symbol = Symbol("search score");
type Scored = Document & { [scoreKey]?: Score };

/** Attaches the score that `$vectorSearch` or `$search` found. */
export function attachScore(document: Document, score: Score): Document {
  (document as Scored)[scoreKey] = score;
  return document;
}

/** Hands the score of `from` on to `to`, and returns `to`. */
function keepScore(from: Document, to: Document): Document {
  const held = (from as Scored)[scoreKey];
  if (held !== undefined && from !== to) (to as Scored)[scoreKey] = held;
  return to;
}
