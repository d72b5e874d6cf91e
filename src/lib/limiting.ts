import type { z } from "zod";

/** How a field is read beside its own name. */
type Reading = {
  /** Other names that mean the same. Case, `_`, `-` and a plural's `s` never make a difference. */
  also?: readonly string[];
  /** Names of something near that is not the same: they are refused, not taken. */
  unlike?: readonly string[];
  /** Whether a value under another name means something else, and so is refused. */
  isOther?(value: unknown): boolean;
};

const readings = new WeakMap<z.core.$ZodType, Reading>();

/**
 * Marks an optional field that narrows or bounds what a request may do, in an object that takes unknown fields: to drop it would
 * do more than was asked for. Under a near name it is taken or refused, and null is refused. Call it last: a schema that is
 * made from this one has no mark. The fields of a strict object need none.
 */
export function limiting<S extends z.ZodType>(schema: S, reading: Reading = {}): S {
  readings.set(schema, reading);
  return schema;
}

/** How a field that is marked is read; undefined: it is not marked. */
export const readingOf = (schema: z.core.$ZodType): Reading | undefined => readings.get(schema);
