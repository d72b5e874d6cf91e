import type { z } from "zod";

/** Fewest fields of a schema with which it is worth while. */
const MANY_FIELDS = 16;
/** Most sets of fields that are remembered of a schema. Callers choose them; for any further one the whole schema is used. */
const MAX_SETS = 32;

/** A schema's optional fields, and the schemas of those sets of them that values had. */
type Parts = { optional: ReadonlySet<string>; bySet: Map<string, z.ZodType> };

const partsOf = new WeakMap<z.ZodType, Parts | null>();

/**
 * The part of an object schema that a value needs: without the optional fields that the value does not have. It gives the same
 * result as the whole schema, which runs the check of every field; most bodies have three of thirty.
 */
export function withPresentFields(schema: z.ZodType, value: unknown): z.ZodType {
  if (typeof value !== "object" || value === null) return schema;
  let parts = partsOf.get(schema);
  if (parts === undefined) {
    parts = findParts(schema);
    partsOf.set(schema, parts);
  }
  if (parts === null) return schema;
  const { optional, bySet } = parts;
  const present = Object.keys(value).filter((name) => optional.has(name));
  const set = present.join();
  const known = bySet.get(set);
  if (known !== undefined || bySet.size === MAX_SETS) return known ?? schema;
  const absent = [...optional].filter((name) => !present.includes(name));
  const part = (schema as z.ZodObject).omit(
    Object.fromEntries(absent.map((name) => [name, true])) as Record<never, true>,
  );
  bySet.set(set, part);
  return part;
}

/** Null for a schema that has to see the whole value, or that has few fields. */
function findParts(schema: z.ZodType): Parts | null {
  const { def } = schema._zod as z.core.$ZodObjectInternals;
  if (def.type !== "object" || def.catchall !== undefined || (def.checks?.length ?? 0) > 0) return null;
  const fields = Object.entries(def.shape);
  if (fields.length < MANY_FIELDS) return null;
  const isOptional = ({ _zod }: z.core.$ZodType) => _zod.optin === "optional" && _zod.optout === "optional";
  const optional = fields.filter(([, field]) => isOptional(field)).map(([name]) => name);
  return { optional: new Set(optional), bySet: new Map() };
}
