/** Dot product of `query` and the vector that begins at `start`. */
export function dotProduct(block: Float32Array, start: number, query: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < query.length; at++) sum += (block[start + at] ?? 0) * (query[at] ?? 0);
  return sum;
}

/** The vector with length 1; undefined when it has no direction. */
export function toUnitLength(vector: Float32Array): Float32Array | undefined {
  const length = Math.sqrt(dotProduct(vector, 0, vector));
  if (length === 0 || !Number.isFinite(length)) return undefined;
  return vector.map((value) => value / length);
}
