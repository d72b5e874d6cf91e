const largest = 127;

/** The scale by which all numbers of a vector of length 1 fit into 8 bits, and those that are larger by a part, `room`. */
export function scaleFor(vector: Float32Array, room = 0): number {
  let most = 0;
  for (let at = 0; at < vector.length; at++) most = Math.max(most, Math.abs(vector[at] ?? 0));
  return largest / Math.min(1, most * (1 + room));
}

/** Writes a vector with 8 bits a number, each times the scale. Returns the length of what is lost. */
export function encodeVector(vector: Float32Array, scale: number, code: Int8Array): number {
  let square = 0;
  for (let at = 0; at < vector.length; at++) {
    const value = vector[at] ?? 0;
    const step = Math.round(value * scale);
    code[at] = step;
    square += (value - step / scale) ** 2;
  }
  return Math.sqrt(square);
}

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
