import { Binary } from "bson";
import { toNumber } from "../commands/command.ts";

/** BSON's mark of a vector of 32-bit floats. https://github.com/mongodb/specifications/blob/master/source/bson-binary-vector */
const float32Type = 0x27;

/** A vector as documents and queries hold it: BSON's binary float32 vector, or an array of numbers. */
export function readVector(value: unknown): Float32Array | undefined {
  if (value instanceof Binary) return readBinary(value);
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const vector = new Float32Array(value.length);
  for (const [at, item] of value.entries()) {
    const number = typeof item === "number" ? item : toNumber(item);
    if (number === undefined || !Number.isFinite(number)) return undefined;
    vector[at] = number;
  }
  return vector;
}

function readBinary(value: Binary): Float32Array | undefined {
  if (value.sub_type !== Binary.SUBTYPE_VECTOR || value.buffer[0] !== float32Type) return undefined;
  try {
    return value.toFloat32Array();
  } catch {
    return undefined; // its length is no whole number of floats
  }
}
